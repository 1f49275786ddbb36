"""A decoding step's memory at fixed places, so that the step can be captured and replayed.

Room for so many sentences, beams, source words and steps is taken once; a batch is filled in, and
what it does not need stays empty. How far a search has come is a number in the same memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from saccade.attention.cache import KeyValues
from saccade.blocks.decoder import LayerMemory


@dataclass(frozen=True, kw_only=True)
class Room:
    """How much fits: sentences, beams of each, steps, and entries from before the first step."""

    sentences: int
    beams: int
    steps: int
    source: int = 0
    prompt: int = 0


class Slots:
    """A `Memory` for one more position of every beam, by kernels that read the clock."""

    def __init__(
        self, room: Room, *, depth: int, heads: int, width: int, like: Float[Tensor, "..."]
    ) -> None:
        self.room = room
        pool = room.sentences, heads, room.prompt + room.steps * room.beams, width
        source = room.sentences, heads, room.source, width
        self.keys, self.values = ([like.new_zeros(pool) for _ in range(depth)] for _ in range(2))
        self.source_keys, self.source_values = (
            [like.new_zeros(source) for _ in range(depth)] for _ in range(2)
        )
        whole = like.new_zeros(0, dtype=torch.int32)
        self.lengths = whole.new_zeros(room.sentences)
        self.writers = whole.new_zeros(room.sentences, room.beams, room.steps)
        self.clock = whole.new_zeros(2)  # steps done, entries from before them
        self.tokens = torch.zeros(room.sentences * room.beams, dtype=torch.long, device=like.device)

    @property
    def bytes(self) -> int:
        """How much memory keys and values take."""
        held = (self.keys, self.values, self.source_keys, self.source_values)
        return sum(x.nbytes for layers in held for x in layers)

    def fill(
        self,
        first: Int[Tensor, " B"],
        sources: Sequence[LayerMemory] = (),
        lengths: Int[Tensor, " B"] | None = None,
        prompts: Sequence[KeyValues] = (),
    ) -> None:
        """Begin anew with a batch; the sentences that it lacks have nothing to look at."""
        self.clock.zero_()
        self.lengths.zero_()
        self.tokens.zero_()
        self.tokens.view(-1, self.room.beams)[: len(first)] = first[:, None]
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

    def look_back(self, layer: int, qkv: Float[Tensor, "R joined"]) -> Float[Tensor, "R D"]:
        from saccade.attention.kernels import step

        keys, values = self.keys[layer], self.values[layer]
        return step.look_back(qkv, keys, values, self.writers, self.clock)

    def look_across(self, layer: int, q: Float[Tensor, "R D"]) -> Float[Tensor, "R D"]:
        from saccade.attention.kernels import step

        keys, values = self.source_keys[layer], self.source_values[layer]
        return step.look_across(q, keys, values, self.lengths)

    def go_on(self, words: Int[Tensor, "B k"], parents: Int[Tensor, "B k"] | None = None) -> None:
        """The step is over: these are the next words, of beams that follow these parents."""
        if parents is not None:
            index = parents[:, :, None].expand_as(self.writers)
            self.writers.copy_(self.writers.gather(1, index))
            self.writers.index_copy_(2, self.clock[:1].long(), parents[:, :, None].int())
        self.tokens.copy_(words.flatten())
        self.clock[:1] += 1
