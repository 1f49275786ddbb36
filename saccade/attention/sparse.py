"""Layers that look at some of what came before, each layer by a mask of its own."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

MakeMask = Callable[[torch.device], Bool[Tensor, "1 1 L L"]]


class SeenPositions(NamedTuple):
    """Of each position those that it sees, in order, itself the last; filled up with zeros."""

    positions: Int[Tensor, "L most"]
    counts: Int[Tensor, " L"]


class LayerMasks:
    """Who may look where in each layer of a decoder, whose positions all have a fixed place.

    A layer names its mask; masks are made when they are first asked for, and kept: a captured step
    goes on reading them.
    """

    def __init__(self, masks: Sequence[MakeMask], of_layers: Sequence[int]) -> None:
        self.of_layers = tuple(of_layers)
        self._makers = tuple(masks)
        self.mask, self._seen = cache(self._make), cache(self._find)
        self._counts = cache(self._count)

    def between(
        self, layer: int, start: int, count: int, device: torch.device
    ) -> Bool[Tensor, "1 1 T S"]:
        """For `count` queries from position `start` on, and all keys up to the last of them."""
        mask = self.mask(self.of_layers[layer], device)
        return mask[:, :, start : start + count, : start + count]

    def seen_at(self, layer: int, position: int, device: torch.device) -> Int[Tensor, " n"]:
        """What one position sees, itself the last."""
        number = self.of_layers[layer]
        count = self._counts(number, device)[position]
        return self._seen(number, device).positions[position, :count]

    def seen(self, layer: int, device: torch.device) -> SeenPositions:
        """What every position sees."""
        return self._seen(self.of_layers[layer], device)

    def _make(self, number: int, device: torch.device) -> Bool[Tensor, "1 1 L L"]:
        return self._makers[number](device)

    def _count(self, number: int, device: torch.device) -> list[int]:
        return self._seen(number, device).counts.tolist()

    def _find(self, number: int, device: torch.device) -> SeenPositions:
        mask = self.mask(number, torch.device("cpu"))[0, 0]
        counts = mask.sum(dim=1)
        row, seen = mask.nonzero(as_tuple=True)
        place = torch.arange(len(seen)) - (counts.cumsum(0) - counts)[row]
        positions = torch.zeros(len(mask), int(counts.max()), dtype=torch.int32)
        positions[row, place] = seen.int()
        return SeenPositions(positions.to(device), counts.int().to(device))
