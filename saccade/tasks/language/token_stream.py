"""Documents as one stream of tokens, wherever they lie: none of them is copied."""

import torch
from jaxtyping import Int
from torch import Tensor

from saccade.data.batching.ragged import Sequences


class TokenStream:
    """Documents one after another; an end stands between two and thus also begins the next.

    A single one has no end.
    """

    def __init__(self, texts: Sequences, end: int) -> None:
        whole = texts.end_to_end()
        self._flat, self._end = whole.flat, end
        count = len(whole)
        # Where each document ends, the ends before it counted.
        self._ends = whole.starts[1:] + torch.arange(count) if count > 1 else None
        self._size = len(self._flat) + (count if count > 1 else 0)

    def __len__(self) -> int:
        return self._size

    def at(self, places: Int[Tensor, "*any"]) -> Int[Tensor, "*any"]:
        """The tokens at these places."""
        if self._ends is None:
            return self._flat[places].long()
        document = torch.searchsorted(self._ends, places)
        ends = self._ends[document] == places
        tokens = torch.full_like(places, self._end)
        tokens[~ends] = self._flat[(places - document)[~ends]].long()
        return tokens
