"""The writing half of every Transformer as decoding runs it, one word at a time from caches.

It runs the stack of blocks that training runs, packed once in a precision of choice, or without a
precision the model's own layers. Nobody can look into it: teacher-forced, the model shows all.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from saccade.attention.cache import KeyValues
from saccade.blocks.inference.affine import Precision, scores
from saccade.blocks.inference.memories import NextToken, Prefill, SourceKeys
from saccade.blocks.inference.packed import embed, joint_product
from saccade.blocks.inference.slots import DecoderShape, Slots
from saccade.blocks.kernels import runs_kernels
from saccade.blocks.stack import Attending, LookAcross, stack_for, sublayers
from saccade.models.text.word_decoder import DecoderState, WordDecoder


class Encoded(NamedTuple):
    """What was read: the hidden state of every real position, and where these lie."""

    hidden: Float[Tensor, "R D"] | None  # none where a model reads nothing before it writes
    prefill: Prefill


class CachedDecoder:
    """Implements `Decodable` and `Fixed` for whatever a `WordDecoder` declares.

    `encode` reads what is to be translated or described, in the same precision.
    """

    def __init__(
        self, words: WordDecoder, precision: Precision | None, encode: Callable[..., Encoded]
    ) -> None:
        self.words, self.precision, self.encode = words, precision, encode
        parts = sublayers(words.layers)
        looks = [part for part in parts if isinstance(part, Attending)]
        across = [look.site for look in looks if look.look is LookAcross]
        self.depth, self.heads = len(looks) - len(across), looks[0].site.heads
        self.head_width = looks[0].site.head_width
        self.table = words.embedding.weight.detach()
        self.dtype = decoding_dtype(words, precision)
        self.stack = stack_for(parts, words.norm, precision, self.table)
        # What was read is projected for all layers at once.
        kv = [layer for site in across for layer in (site.to_k, site.to_v)]
        self.source = joint_product(kv, precision) if kv else None
        self.output = words.output
        if precision is not None:
            self.output = scores(*words.output, precision=precision)
        self._tables: dict[int, Tensor] = {}

    @property
    def can_be_captured(self) -> bool:
        """Whether `at` runs here: on a GPU, with positions that do not depend on the length."""
        positions = self.words.positions
        free = positions is None or not positions.positions.depends_on_length
        return runs_kernels(self.table) and free

    @torch.inference_mode()
    def start(self, *inputs: Tensor | int) -> DecoderState:
        """Read what the model reads, once; nothing decoded yet."""
        hidden, prefill = self.encode(*inputs)
        like = self.table.new_empty(prefill.shape[0], 0, dtype=self.dtype)
        sources: list[SourceKeys] = []
        if self.source is not None:
            assert hidden is not None
            kv = prefill.padded(self.source(hidden))
            kv = kv.view(*prefill.shape, self.depth, 2, self.heads, -1)
            kv = kv.permute(2, 3, 0, 4, 1, 5).contiguous()  # (depth, 2, B, N, S, K)
            sources = [SourceKeys(keys, values) for keys, values in kv]
        caches = [
            KeyValues.empty(like, heads=self.heads, width=self.head_width)
            for _ in range(self.depth)
        ]
        return DecoderState(caches, sources, prefill.mask)

    @torch.inference_mode()
    def read(
        self, tokens: Int[Tensor, "B T"], state: DecoderState | None
    ) -> tuple[Float[Tensor, "B T D"], DecoderState]:
        """Go on from a state, which is changed, with several words at once."""
        state = state or self.start(len(tokens))
        shape = tokens.shape[0], tokens.shape[1]
        memory = Prefill(shape, caches=state.caches, layer_masks=self.words.layer_masks)
        hidden = self.stack(self._embed(tokens, state), memory)
        state.position += tokens.shape[1]
        return hidden.view(*shape, -1), state

    @torch.inference_mode()
    def step(
        self, tokens: Int[Tensor, " R"], state: DecoderState
    ) -> tuple[Float[Tensor, "R V"], DecoderState]:
        sources = state.sources, state.source_mask
        memory = NextToken(state.caches, *sources, self.words.layer_masks)
        hidden = self.stack(self._embed(tokens[:, None], state), memory)
        state.position += 1
        return self.output(hidden), state

    def _embed(self, tokens: Int[Tensor, "B T"], state: DecoderState) -> Float[Tensor, "R D"]:
        return self.words.at_positions(tokens, start=state.position).flatten(0, 1).to(self.dtype)

    def sizes(self, state: DecoderState) -> dict[str, int]:
        """How much of a `DecoderShape` a state takes before the first step."""
        source = state.sources[0].source_keys.shape[2] if state.sources else 0
        return {"source": source, "prompt": state.position}

    def slots(self, room: DecoderShape) -> Slots:
        """A memory at fixed places for `at`."""
        like = self.table.new_empty(0, dtype=self.dtype)
        return Slots(
            room,
            depth=self.depth,
            heads=self.heads,
            width=self.head_width,
            like=like,
            layer_masks=self.words.layer_masks,
        )

    def fill(self, slots: Slots, first: Int[Tensor, " B"], state: DecoderState) -> None:
        """Put a state that has just started, or read a prompt, into fixed places."""
        lengths = None
        if state.sources:
            keys = state.sources[0].source_keys
            lengths = torch.full((len(keys),), keys.shape[2], device=keys.device)
        if state.source_mask is not None:
            lengths = state.source_mask.flatten(1).sum(dim=1)
        slots.fill(first, state.sources, lengths, state.caches if state.position else ())

    def at(self, slots: Slots) -> Float[Tensor, "R V"]:
        """A step whose every place in memory is fixed: the scores that follow `slots.tokens`."""
        positions = self._positions(slots.room.prompt + slots.room.steps)
        x = embed(slots.tokens, self.table, self.words.scale, positions, slots.clock, self.dtype)
        return self.output(self.stack(x, slots))

    def _positions(self, count: int) -> Float[Tensor, "T D"]:
        """A table that stays where it is, for captured steps read it there."""
        if count not in self._tables:
            positions, count_there = self.words.positions, min(count, self.words.longest)
            nothing = self.table.new_zeros(1, count_there, self.table.shape[1])
            encoded = nothing if positions is None else positions(nothing)
            self._tables[count] = encoded[0].detach()
        return self._tables[count]


def decoding_dtype(words: WordDecoder, precision: Precision | None) -> torch.dtype:
    """That of the vectors between the layers."""
    return torch.bfloat16 if precision == "bfloat16" else words.embedding.weight.dtype
