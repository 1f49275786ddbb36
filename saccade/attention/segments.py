"""Sequences laid end to end in one long row: nothing is padded, and none sees another."""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Int
from torch import Tensor


@dataclass(frozen=True)
class Segments:
    """Stretch i of the queries may look at stretch i of the keys, and nowhere else.

    Stretch i reaches from `starts[i]` to `starts[i + 1]`, may be empty, and is not longer than
    `longest_…`. Together they cover the whole row.
    """

    query_starts: Int[Tensor, " boundaries"]
    key_starts: Int[Tensor, " boundaries"]
    longest_query: int
    longest_key: int

    @classmethod
    def among(cls, starts: Int[Tensor, " boundaries"], longest: int) -> "Segments":
        """Every sequence looks at itself."""
        return cls(starts, starts, longest, longest)

    def mask(self, queries: int, keys: int) -> Bool[Tensor, "1 1 T S"]:
        """The same as a mask, for whoever needs one."""
        t, s = (
            torch.bucketize(torch.arange(size, device=starts.device), starts, right=True)
            for starts, size in ((self.query_starts, queries), (self.key_starts, keys))
        )
        return (t[:, None] == s)[None, None]

    @cached_property
    def runs(self) -> list[tuple[int, int, int]]:
        """Neighbours of equal lengths together: (how many, queries of each, keys of each)."""
        found: list[tuple[int, int, int]] = []
        pairs = zip(self.query_starts.diff().tolist(), self.key_starts.diff().tolist())
        for queries, keys in pairs:
            if found and found[-1][1:] == (queries, keys):
                found[-1] = (found[-1][0] + 1, queries, keys)
            else:
                found.append((1, queries, keys))
        return found
