"""The RNN translators with attention as decoding runs them: the same function, packed once.

What does not wait for a step's result is joined into one product with what does not either: a
state's query goes with another layer of that state, and layers of a word are looked up. Beams share
keys and values; only the states of the recurrence change places with them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from saccade.blocks.inference.affine import Precision, affine, scores
from saccade.blocks.inference.lean_look import Asking, Look, joined
from saccade.blocks.inference.lean_rnn import Carried, LeanRnn, Words
from saccade.blocks.inference.slots import Places, Room
from saccade.blocks.kernels import runs_kernels
from saccade.blocks.recurrent.attending_rnn import Looked
from saccade.models.text.rnn_attention import (
    ContextInInput,
    ContextInLayer,
    ContextInReadout,
    Reader,
    RnnAttention,
)

Stepped = tuple[Float[Tensor, "R D"], Carried]


class LeanDecoder(ABC):
    """One more word of every beam; where given, the new states are put `into` their places."""

    words: Words
    look: Look

    def values(self, values: Float[Tensor, "B S D"]) -> Float[Tensor, "B S D"]:
        """What the memory gives where it is looked at, made once for all steps."""
        return values

    @abstractmethod
    def __call__(
        self,
        tokens: Int[Tensor, " R"],
        memory: Looked,
        before: Carried,
        into: Carried | None = None,
    ) -> Stepped: ...


class LeanReadout(LeanDecoder):
    """`ContextInReadout`; the values are those of the mixing layer, made once for all steps.

    W [s; Σᵢ aᵢ vᵢ] = Wₛ s + Σᵢ aᵢ (W_c vᵢ)
    """

    def __init__(self, model: RnnAttention, decoder: ContextInReadout, how: Precision) -> None:
        self.rnn = LeanRnn(decoder.rnn, how, past=decoder.rnn.depth)
        w, _, b, _ = decoder.rnn.weights(0)
        self.words = Words(model.target_embedding.weight, w, b, how)
        self.look = Look(decoder.cross_attention.score, self.words.table.dtype)
        of_state, self._of_context = decoder.mix.weight.chunk(2, dim=1)
        self.ask = _asking(of_state, decoder.mix.bias, decoder.cross_attention, how)

    def values(self, values: Float[Tensor, "B S D"]) -> Float[Tensor, "B S D"]:
        return F.linear(values, self._of_context)

    def __call__(
        self,
        tokens: Int[Tensor, " R"],
        memory: Looked,
        before: Carried,
        into: Carried | None = None,
    ) -> Stepped:
        s, after = self.rnn(self.words(tokens), self.rnn.past(before), before, into)
        mixed, q = self.ask(s)
        return self.look(q, memory, onto=mixed), after


class LeanLayer(LeanDecoder):
    """`ContextInLayer`."""

    def __init__(self, model: RnnAttention, decoder: ContextInLayer, how: Precision) -> None:
        self.first = LeanRnn(decoder.first, how, past=1)
        self.rest = LeanRnn(decoder.rest, how, past=decoder.rest.depth)
        w, _, b, _ = decoder.first.weights(0)
        self.words = Words(model.target_embedding.weight, w, b, how)
        self.look = Look(decoder.cross_attention.score, self.words.table.dtype)
        w, _, b, _ = decoder.rest.weights(0)
        of_state, of_context = w.chunk(2, dim=1)
        self.ask = _asking(of_state, b, decoder.cross_attention, how)
        self.of_context = affine(of_context, None, precision=how)

    def __call__(
        self,
        tokens: Int[Tensor, " R"],
        memory: Looked,
        before: Carried,
        into: Carried | None = None,
    ) -> Stepped:
        below, above = before.layers(slice(None, 1)), before.layers(slice(1, None))
        to_below, to_above = (into and into.layers(w) for w in (slice(None, 1), slice(1, None)))
        s, below = self.first(self.words(tokens), self.first.past(below), below, to_below)
        x, q = self.ask(s)
        x = self.of_context(self.look(q, memory)).add_(x)
        features, above = self.rest(x, self.rest.past(above), above, to_above)
        return features, Carried(below.hidden + above.hidden, below.cells + above.cells)


class LeanInput(LeanDecoder):
    """`ContextInInput`; the highest state looks, so its query goes with its part of the gates."""

    def __init__(self, model: RnnAttention, decoder: ContextInInput, how: Precision) -> None:
        last = decoder.rnn.depth - 1
        self.rnn = LeanRnn(decoder.rnn, how, past=last)
        w, _, b, _ = decoder.rnn.weights(0)
        of_word, of_context = w.chunk(2, dim=1)
        of_state, mix_word, mix_context = decoder.mix.weight.chunk(3, dim=1)
        words = joined((of_word, b), (mix_word, decoder.mix.bias))
        self.gates = len(w)
        self.words = Words(model.target_embedding.weight, *words, how)
        self.look = Look(decoder.cross_attention.score, self.words.table.dtype)
        self.of_context = affine(torch.cat([of_context, mix_context]), None, precision=how)
        self.mix = affine(of_state, None, precision=how)
        _, u, _, d = decoder.rnn.weights(last)
        self.ask = _asking(u, d, decoder.cross_attention, how)

    def __call__(
        self,
        tokens: Int[Tensor, " R"],
        memory: Looked,
        before: Carried,
        into: Carried | None = None,
    ) -> Stepped:
        u, q = self.ask(before.hidden[-1])
        x = self.of_context(self.look(q, memory)).add_(self.words(tokens))
        s, after = self.rnn(x[:, : self.gates], [*self.rnn.past(before), u], before, into)
        return self.mix(s).add_(x[:, self.gates :]).tanh_(), after


def _asking(weight: Tensor, bias: Tensor, reader: Reader, how: Precision) -> Asking:
    return Asking(weight, bias, reader.query, reader.score, how)


LEAN: dict[type[Any], Callable[..., LeanDecoder]] = {
    ContextInReadout: LeanReadout,
    ContextInLayer: LeanLayer,
    ContextInInput: LeanInput,
}


@dataclass
class LeanRnnState:
    """Implements `SharedState`: a memory for each sentence, states for each of its beams."""

    memory: Looked
    carried: Carried
    beams: int = 1

    def spread(self, beams: int) -> "LeanRnnState":
        rows = torch.arange(len(self.memory.keys), device=self.memory.keys.device)
        rows = rows.repeat_interleave(beams)
        return LeanRnnState(self.memory, self.carried.select(rows), beams)

    def follow(self, parents: Int[Tensor, "B k"]) -> "LeanRnnState":
        sentences = torch.arange(len(parents), device=parents.device)
        return LeanRnnState(self.memory, self._of(sentences, parents), self.beams)

    def select(self, sentences: Int[Tensor, " B2"]) -> "LeanRnnState":
        memory = self.memory.select(sentences)
        every = torch.arange(self.beams, device=sentences.device)[None]
        return LeanRnnState(memory, self._of(sentences, every), self.beams)

    def _of(self, sentences: Int[Tensor, " B2"], beams: Int[Tensor, "#B2 k"]) -> Carried:
        return self.carried.select((sentences[:, None] * self.beams + beams).flatten())


class RnnSlots(Places):
    """A `LeanRnnState` at fixed places."""

    def __init__(self, room: Room, memory: Looked, parts: Float[Tensor, "parts R H"]) -> None:
        super().__init__(room, parts.device)
        self.memory, self.parts = memory, parts

    @property
    def bytes(self) -> int:
        return self.parts.nbytes + sum(x.nbytes for x in self.memory if x is not None)

    def fill(self, first: Int[Tensor, " B"], state: LeanRnnState) -> None:
        """Begin anew with a batch; sentences that it lacks look at whatever is there."""
        self.begin(first)
        keys, values, hide = self.memory
        assert hide is not None
        count, size = state.memory.keys.shape[:2]
        keys[:count, :size], values[:count, :size] = state.memory.keys, state.memory.values
        hide[:count] = -torch.inf
        hide[:count, :, :size] = 0.0 if state.memory.hide is None else state.memory.hide
        hide[count:] = 0.0
        by_sentence = self.parts.unflatten(1, (-1, self.room.beams))
        by_sentence[:, :count] = torch.stack(state.carried.parts)[:, :, None]

    def moved(self, depth: int) -> Carried:
        """The states of the rows that those of this step come from."""
        return Carried.at(self.parts.index_select(1, self.origins), depth)


class LeanRnnAttention:
    """An RNN translator with attention for decoding only."""

    def __init__(self, model: RnnAttention, precision: Precision) -> None:
        self.model, self.precision = model, precision
        self.decoder = LEAN[type(model.decoder)](model, model.decoder, precision)
        self.output = scores(model.readout.weight, model.readout.bias, precision=precision)
        self.dtype = self.decoder.words.table.dtype
        self.depth = model.config.depth + (model.config.context == "layer")

    @property
    def can_be_captured(self) -> bool:
        """Whether `at` runs here: on a GPU."""
        return runs_kernels(self.decoder.words.table[:, :1])

    @torch.inference_mode()
    def start(self, source: Int[Tensor, "B S"], lengths: Int[Tensor, " B"]) -> LeanRnnState:
        """Read the source once; nothing decoded yet."""
        state = self.model.start(source, lengths)
        keys, values = self.decoder.look.keys(state.memory.keys), state.memory.values
        memory = Looked(keys, self.decoder.values(values), state.memory.hide).to(self.dtype)
        return LeanRnnState(memory, Carried.of(state.rnn, self.dtype))

    @torch.inference_mode()
    def step(
        self, tokens: Int[Tensor, " R"], state: LeanRnnState
    ) -> tuple[Float[Tensor, "R V"], LeanRnnState]:
        features, carried = self.decoder(tokens, state.memory, state.carried)
        return self.output(features), LeanRnnState(state.memory, carried, state.beams)

    def sizes(self, state: LeanRnnState) -> dict[str, int]:
        """How much of a `Room` a state takes before the first step."""
        return {"source": state.memory.keys.shape[1]}

    def slots(self, room: Room) -> RnnSlots:
        """A memory at fixed places for `at`."""
        width, like = self.model.config.width, self.decoder.words.table
        shape = room.sentences, room.source, width
        hide = like.new_zeros(room.sentences, 1, room.source)
        memory = Looked(like.new_zeros(shape), like.new_zeros(shape), hide)
        parts = self.depth * (2 if self.model.config.cell == "lstm" else 1)
        return RnnSlots(room, memory, like.new_zeros(parts, room.sentences * room.beams, width))

    def fill(self, slots: RnnSlots, first: Int[Tensor, " B"], state: LeanRnnState) -> None:
        """Put a state that has just started into fixed places."""
        slots.fill(first, state)

    def at(self, slots: RnnSlots) -> Float[Tensor, "R V"]:
        """A step whose every place in memory is fixed: the scores that follow `slots.tokens`."""
        into = Carried.at(slots.parts, self.depth)
        before = into if slots.room.beams == 1 else slots.moved(self.depth)
        return self.output(self.decoder(slots.tokens, slots.memory, before, into)[0])
