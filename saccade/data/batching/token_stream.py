"""Documents as one stream of tokens, wherever they lie, and pieces of it: nothing is copied."""

import hashlib
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from saccade.data.batching.ragged import AT_ONCE, Sequences


class TokenStream:
    """Documents one after another; an end stands between two and thus also begins the next.

    A single one has no end.
    """

    def __init__(self, texts: Sequences, end: int) -> None:
        whole = texts.end_to_end()
        self._flat, self._starts, self._end = whole.flat, whole.starts, end
        self._ends = len(whole) if len(whole) > 1 else 0
        self._size = len(self._flat) + self._ends

    def __len__(self) -> int:
        return self._size

    def take(
        self, first: Int[Tensor, " runs"], lengths: Int[Tensor, " runs"]
    ) -> Int[Tensor, " total"]:
        """Runs of tokens, none of them empty, end to end.

        A place is looked up in the document that it is in: the one in which its run begins, and one
        further for each end on the way.
        """
        before = lengths.cumsum(0) - lengths
        places = torch.arange(int(lengths.sum())) + torch.repeat_interleave(first - before, lengths)
        if not self._ends:
            return self._flat[places].long()
        document, last = self._document(first), self._document(first + lengths - 1)
        many = last - document + 1
        run = torch.repeat_interleave(torch.arange(len(first)), many)
        ended = torch.arange(len(run)) + (document - (many.cumsum(0) - many))[run]
        at = self._end_of(ended) - first[run]
        inside = at < lengths[run]
        ends = torch.zeros(len(places), dtype=torch.long)
        ends[(at + before[run])[inside]] = 1
        passed = ends.cumsum(0) - ends
        offset = torch.repeat_interleave(document - passed[before], lengths)
        tokens, word = torch.full_like(places, self._end), ends == 0
        tokens[word] = self._flat[(places - passed - offset)[word]].long()
        return tokens

    def _end_of(self, document: Int[Tensor, "*any"]) -> Int[Tensor, "*any"]:
        """Where its end stands, the ends before it counted."""
        return self._starts[document + 1] + document

    def _document(self, places: Int[Tensor, " n"]) -> Int[Tensor, " n"]:
        """The first that ends there or later, found by halves: there may be too many to hold."""
        first, last = torch.zeros_like(places), torch.full_like(places, self._ends - 1)
        for _ in range(self._ends.bit_length()):
            middle = (first + last) // 2
            later = self._end_of(middle) < places
            first = torch.where(later, middle + 1, first).clamp(max=self._ends - 1)
            last = torch.where(later, last, middle)
        return first


@dataclass(frozen=True)
class StreamPieces:
    """A stream cut into pieces of so many tokens, of which the last may have fewer."""

    stream: TokenStream
    size: int

    def __len__(self) -> int:
        return (len(self.stream) + self.size - 1) // self.size

    @property
    def lengths(self) -> Int[Tensor, " pieces"]:
        return self.lengths_of(torch.arange(len(self)))

    def lengths_of(self, rows: Int[Tensor, " n"]) -> Int[Tensor, " n"]:
        """Of some of the pieces."""
        return (len(self.stream) - rows * self.size).clamp(max=self.size)

    def take(self, rows: Int[Tensor, " B"]) -> tuple[Int[Tensor, " total"], Int[Tensor, " B"]]:
        """Some of the pieces, end to end, and their lengths."""
        lengths = self.lengths_of(rows)
        return self.stream.take(rows * self.size, lengths), lengths

    def fingerprint(self) -> str:
        """That of a copy."""
        digest = hashlib.sha256()
        for rows in torch.arange(len(self)).split(AT_ONCE):
            digest.update(self.take(rows)[0].numpy().astype(np.int32).data)
        starts = np.concatenate([[0], self.lengths.numpy()]).cumsum()
        digest.update(starts.astype(np.int64).data)
        return digest.hexdigest()
