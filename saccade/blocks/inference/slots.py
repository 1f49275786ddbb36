"""A decoding step's memory at fixed places, so that the step can be captured and replayed.

Space for so many sentences, beams, source words and steps is taken once; a batch is filled in, and
what it does not need stays empty. How far a search has come is a number in the same memory.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from saccade.attention.cache import KeyValues
from saccade.attention.sparse import LayerMasks
from saccade.blocks.inference.memories import SourceKeys


@dataclass(frozen=True, kw_only=True)
class DecoderShape:
    """How much fits: sentences, beams of each, steps, and entries from before the first step."""

    sentences: int
    beams: int
    steps: int
    source: int = 0
    prompt: int = 0


class Places(ABC):
    """What every decoder keeps at fixed places: the last words, the time, and who wrote what.

    `writers[b, i, t]` is the beam that wrote position t of beam i's past; `origins` are the rows
    that the rows of the next step come from.
    """

    def __init__(self, room: DecoderShape, device: torch.device) -> None:
        self.room = room
        rows = room.sentences * room.beams
        self.writers = torch.zeros(
            room.sentences, room.beams, room.steps, dtype=torch.int32, device=device
        )
        self.clock = self.writers.new_zeros(2)  # steps done, entries from before them
        self.tokens = torch.zeros(rows, dtype=torch.long, device=device)
        self.origins = torch.arange(rows, device=device)

    @property
    @abstractmethod
    def bytes(self) -> int:
        """How much memory all that is remembered takes."""

    def begin(self, first: Int[Tensor, " B"]) -> None:
        """A new batch: the beams of a sentence are equal, and rows that it lacks say nothing."""
        self.clock.zero_()
        self.tokens.zero_()
        self.tokens.view(-1, self.room.beams)[: len(first)] = first[:, None]
        torch.arange(len(self.origins), out=self.origins)

    def go_on(self, words: Int[Tensor, "B k"], parents: Int[Tensor, "B k"] | None = None) -> None:
        """The step is over: these are the next words, of beams that follow these parents."""
        if parents is not None:
            index = parents[:, :, None].expand_as(self.writers)
            self.writers.copy_(self.writers.gather(1, index))
            self.writers.index_copy_(2, self.clock[:1].long(), parents[:, :, None].int())
            firsts = torch.arange(0, len(self.origins), self.room.beams, device=parents.device)
            self.origins.copy_((parents + firsts[:, None]).flatten())
        self.tokens.copy_(words.flatten())
        self.clock[:1] += 1


class Slots(Places):
    """An `AttentionContext` for one more position of every beam, by kernels that read the clock."""

    def __init__(
        self,
        room: DecoderShape,
        *,
        depth: int,
        heads: int,
        width: int,
        like: Float[Tensor, "..."],
        layer_masks: LayerMasks | None = None,
    ) -> None:
        super().__init__(room, like.device)
        self.layer_masks = layer_masks
        pool = room.sentences, heads, room.prompt + room.steps * room.beams, width
        source = room.sentences, heads, room.source, width
        self.keys, self.values = ([like.new_zeros(pool) for _ in range(depth)] for _ in range(2))
        self.source_keys, self.source_values = (
            [like.new_zeros(source) for _ in range(depth)] for _ in range(2)
        )
        self.lengths = self.clock.new_zeros(room.sentences)

    @property
    def bytes(self) -> int:
        """How much memory keys and values take."""
        held = (self.keys, self.values, self.source_keys, self.source_values)
        return sum(x.nbytes for layers in held for x in layers)

    def fill(
        self,
        first: Int[Tensor, " B"],
        sources: Sequence[SourceKeys] = (),
        lengths: Int[Tensor, " B"] | None = None,
        prompts: Sequence[KeyValues] = (),
    ) -> None:
        """Begin anew with a batch; the sentences that it lacks have nothing to look at."""
        self.begin(first)
        self.lengths.zero_()
        if lengths is not None:
            self.lengths[: len(first)] = lengths.to(self.lengths)
        for layer, source in enumerate(sources):
            size = source.source_keys.shape[2]
            self.source_keys[layer][: len(first), :, :size] = source.source_keys
            self.source_values[layer][: len(first), :, :size] = source.source_values
        for layer, prompt in enumerate(prompts):
            size = prompt.length
            self.keys[layer][: len(first), :, :size] = prompt.keys[:, :, :size]
            self.values[layer][: len(first), :, :size] = prompt.values[:, :, :size]
            self.clock[1:] = size

    def look_back(self, layer: int, site: Any, x: Float[Tensor, "R D"]) -> Float[Tensor, "R D"]:
        from saccade.attention.kernels.decode import decode_kernel

        keys, values = self.keys[layer], self.values[layer]
        if self.layer_masks is not None:
            assert self.room.beams == 1, "beams of sparse layers are not told apart"
            seen = self.layer_masks.seen(layer, x.device)
            return decode_kernel.look_back_at(site.qkv(x), keys, values, *seen, self.clock)
        return decode_kernel.look_back(site.qkv(x), keys, values, self.writers, self.clock)

    def look_across(self, layer: int, site: Any, x: Float[Tensor, "R D"]) -> Float[Tensor, "R D"]:
        from saccade.attention.kernels.decode import decode_kernel

        keys, values = self.source_keys[layer], self.source_values[layer]
        return decode_kernel.look_across(site.q(x), keys, values, self.lengths)
