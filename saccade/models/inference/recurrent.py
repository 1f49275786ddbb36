"""Recurrent decoders with attention as decoding runs them: the same function, packed once.

A model packs its step; here are the states that it goes through. Beams share keys and values; only
the states of the recurrence change places with them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from saccade.blocks.inference.affine import Precision, scores
from saccade.blocks.inference.recurrent import WordTable
from saccade.blocks.inference.slots import DecoderShape, Places
from saccade.blocks.kernels import runs_kernels
from saccade.blocks.output import OutputLayer
from saccade.blocks.recurrent.memory import AttentionMemory
from saccade.blocks.recurrent.rnn import RnnState

Stepped = tuple[Float[Tensor, "R D"], RnnState]
StepFunction = Callable[[Int[Tensor, " R"], AttentionMemory, RnnState, RnnState | None], Stepped]


class StateSizes(NamedTuple):
    """How wide keys, values and states are, how many layers there are, and if of an LSTM."""

    keys: int
    values: int
    hidden: int
    layers: int
    has_cell: bool


class PackedStep(NamedTuple):
    """One more word of every beam: the function, and what it looks up and attends to.

    `step` takes the last words, the memory, the states before, and where given the places that the
    states after are put into. `prepare` makes a memory what `step` wants, once for all steps.
    """

    step: StepFunction
    words: WordTable
    prepare: Callable[[AttentionMemory], AttentionMemory]
    sizes: StateSizes


@runtime_checkable
class RecurrentDecodable(Protocol):
    """A model whose state holds a memory and the states of a recurrence, and whose step packs."""

    @property
    def output(self) -> OutputLayer: ...

    @property
    def start(self) -> Callable[..., Any]: ...

    def packed(self, precision: Precision) -> PackedStep: ...


@dataclass(frozen=True)
class BeamStates:
    """Implements `SharedState`: a memory for each sentence, states for each of its beams."""

    memory: AttentionMemory
    rnn: RnnState
    beams: int = 1

    def spread(self, beams: int) -> "BeamStates":
        rows = torch.arange(len(self.memory.keys), device=self.memory.keys.device)
        return replace(self, rnn=self.rnn.select(rows.repeat_interleave(beams)), beams=beams)

    def follow(self, parents: Int[Tensor, "B k"]) -> "BeamStates":
        sentences = torch.arange(len(parents), device=parents.device)
        return replace(self, rnn=self._of(sentences, parents))

    def select(self, sentences: Int[Tensor, " B2"]) -> "BeamStates":
        every = torch.arange(self.beams, device=sentences.device)[None]
        return replace(self, memory=self.memory.select(sentences), rnn=self._of(sentences, every))

    def _of(self, sentences: Int[Tensor, " B2"], beams: Int[Tensor, "#B2 k"]) -> RnnState:
        return self.rnn.select((sentences[:, None] * self.beams + beams).flatten())


class RecurrentSlots(Places):
    """`BeamStates` at fixed places, layer by layer: a layer's rows lie together."""

    def __init__(self, room: DecoderShape, sizes: StateSizes, like: Tensor) -> None:
        super().__init__(room, like.device)
        self.layers, sentences, source = sizes.layers, room.sentences, room.source
        self.memory = AttentionMemory(
            like.new_zeros(sentences, source, sizes.keys),
            like.new_zeros(sentences, source, sizes.values),
            like.new_zeros(sentences, 1, source),
        )
        parts = sizes.layers * (2 if sizes.has_cell else 1)
        self.parts = like.new_zeros(parts, sentences * room.beams, sizes.hidden)

    @property
    def bytes(self) -> int:
        return self.parts.nbytes + sum(x.nbytes for x in self.memory if x is not None)

    def fill(self, first: Int[Tensor, " B"], state: BeamStates) -> None:
        """Begin anew with a batch; sentences that it lacks look at whatever is there."""
        self.begin(first)
        keys, values, bias = self.memory
        assert bias is not None
        count, size = state.memory.keys.shape[:2]
        keys[:count, :size], values[:count, :size] = state.memory.keys, state.memory.values
        bias[:count] = -torch.inf
        bias[:count, :, :size] = 0.0 if state.memory.bias is None else state.memory.bias
        bias[count:] = 0.0
        by_sentence = self.parts.unflatten(1, (-1, self.room.beams))
        parts = torch.cat([part for part in state.rnn if part is not None], dim=1)
        by_sentence[:, :count] = parts.transpose(0, 1)[:, :, None]

    def states(self, rows: Int[Tensor, " R"] | None = None) -> RnnState:
        """The states at their places, or copies of those of some rows."""
        parts = self.parts if rows is None else self.parts.index_select(1, rows)
        hidden, cell = parts[: self.layers], parts[self.layers :]
        return RnnState(hidden.transpose(0, 1), cell.transpose(0, 1) if len(cell) else None)


class RecurrentDecoding:
    """A recurrent model with attention for decoding only."""

    def __init__(self, model: RecurrentDecodable, precision: Precision) -> None:
        self.model, self.decoder = model, model.packed(precision)
        self.output = scores(*model.output, precision=precision)
        self.like = self.decoder.words.table

    @property
    def can_be_captured(self) -> bool:
        """Whether `at` runs here: on a GPU."""
        return runs_kernels(self.like[:, :1])

    @torch.inference_mode()
    def start(self, *inputs: Any) -> BeamStates:
        """Read the source or the images once; nothing decoded yet."""
        state, dtype = self.model.start(*inputs), self.like.dtype
        return BeamStates(self.decoder.prepare(state.memory).to(dtype), state.rnn.to(dtype))

    @torch.inference_mode()
    def step(
        self, tokens: Int[Tensor, " R"], state: BeamStates
    ) -> tuple[Float[Tensor, "R V"], BeamStates]:
        scores, after = self._scores(tokens, state.memory, state.rnn, None)
        return scores, replace(state, rnn=after)

    def sizes(self, state: BeamStates) -> dict[str, int]:
        """How much of a `DecoderShape` a state takes before the first step."""
        return {"source": state.memory.keys.shape[1]}

    def slots(self, room: DecoderShape) -> RecurrentSlots:
        """A memory at fixed places for `at`."""
        return RecurrentSlots(room, self.decoder.sizes, self.like)

    def fill(self, slots: RecurrentSlots, first: Int[Tensor, " B"], state: BeamStates) -> None:
        """Put a state that has just started into fixed places."""
        slots.fill(first, state)

    def at(self, slots: RecurrentSlots) -> Float[Tensor, "R V"]:
        """A step whose every place in memory is fixed: the scores that follow `slots.tokens`."""
        into = slots.states()
        before = into if slots.room.beams == 1 else slots.states(slots.origins)
        return self._scores(slots.tokens, slots.memory, before, into)[0]

    def _scores(self, *inputs: Any) -> tuple[Float[Tensor, "R V"], RnnState]:
        """In the precision that was packed, also where autocast would have another."""
        with torch.autocast(self.like.device.type, enabled=False):
            features, after = self.decoder.step(*inputs)
            return self.output(features), after
