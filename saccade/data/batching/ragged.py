"""Many token sequences of different lengths in one flat tensor, in memory or mapped from a file."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int, Integer
from torch import Tensor

AT_ONCE = 1 << 16  # sequences that are looked through together


@dataclass(frozen=True)
class Ragged:
    """Sequence i is `flat[starts[i] : starts[i + 1]]`."""

    flat: Integer[Tensor, " tokens"]
    starts: Int[Tensor, " boundaries"]

    @classmethod
    def of(cls, rows: list[list[int]]) -> "Ragged":
        flat = torch.tensor([token for row in rows for token in row], dtype=torch.int32)
        starts = torch.tensor([0, *map(len, rows)]).cumsum(0)
        return cls(flat, starts)

    @classmethod
    def joined(cls, parts: Iterable["Ragged"]) -> "Ragged":
        """Sequences after each other, of one part after those of the last."""
        flats, lengths = zip(*((part.flat.numpy(), part.lengths.numpy()) for part in parts))
        ends = np.concatenate([[0], *lengths]).astype(np.int64).cumsum()
        return cls(torch.from_numpy(np.concatenate(flats)), torch.from_numpy(ends))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, row: int) -> Int[Tensor, " T"]:
        return self.flat[self.starts[row] : self.starts[row + 1]].long()

    def take(self, rows: Int[Tensor, " B"]) -> tuple[Int[Tensor, " total"], Int[Tensor, " B"]]:
        """Some of the sequences, end to end, and their lengths."""
        starts, ends = self.starts[rows].numpy(), self.starts[rows + 1].numpy()
        lengths = ends - starts
        before = lengths.cumsum() - lengths
        index = np.arange(lengths.sum()) + np.repeat(starts - before, lengths)
        taken = self.flat.numpy()[index].astype(np.int64)
        return torch.from_numpy(taken), torch.from_numpy(lengths)

    def where(self, kept: Bool[Tensor, " rows"]) -> "Ragged | RaggedRows":
        """Some of the sequences, without a copy of their tokens."""
        return self.some(kept.nonzero()[:, 0])

    def some(self, rows: Int[Tensor, " n"]) -> "Ragged | RaggedRows":
        """Those of these numbers, which rise, without a copy of their tokens."""
        first, last = (int(rows[0]), int(rows[-1])) if len(rows) else (0, -1)
        if last - first + 1 > len(rows):
            return RaggedRows(self, rows)
        return self.stretch(first, last + 1)

    def stretch(self, first: int, end: int) -> "Ragged":
        """From one sequence up to another."""
        starts = self.starts[first : end + 1]
        before = int(starts[0])
        return Ragged(self.flat[before : int(starts[-1])], starts - before if before else starts)

    def end_to_end(self) -> "Ragged":
        """As one flat tensor, which it is."""
        return self

    @property
    def lengths(self) -> Int[Tensor, " rows"]:
        return self.starts.diff()

    def lengths_of(self, rows: Int[Tensor, " n"]) -> Int[Tensor, " n"]:
        """Of some of the sequences."""
        return self.starts[rows + 1] - self.starts[rows]

    def fingerprint(self) -> str:
        """Changes when any token or any boundary does; how many bytes hold a token is all one."""
        digest = hashlib.sha256()
        for piece in self.flat.split(1 << 24):
            digest.update(piece.numpy().astype(np.int32).data)
        digest.update(self.starts.numpy().data)
        return digest.hexdigest()


@dataclass(frozen=True)
class RaggedRows:
    """A choice of the sequences of another; what they say lies there."""

    whole: Ragged
    rows: Int[Tensor, " rows"]

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, rows: Int[Tensor, " B"]) -> tuple[Int[Tensor, " total"], Int[Tensor, " B"]]:
        return self.whole.take(self.rows[rows])

    def where(self, kept: Bool[Tensor, " rows"]) -> "RaggedRows":
        return RaggedRows(self.whole, self.rows[kept])

    @property
    def lengths(self) -> Int[Tensor, " rows"]:
        return self.whole.lengths_of(self.rows)

    def lengths_of(self, rows: Int[Tensor, " n"]) -> Int[Tensor, " n"]:
        return self.whole.lengths_of(self.rows[rows])

    def fingerprint(self) -> str:
        """That of a copy."""
        digest = hashlib.sha256()
        for rows in self.rows.split(AT_ONCE):
            digest.update(self.whole.take(rows)[0].numpy().astype(np.int32).data)
        starts = np.concatenate([[0], self.lengths.numpy()]).cumsum()
        digest.update(starts.astype(np.int64).data)
        return digest.hexdigest()

    def end_to_end(self) -> Ragged:
        """As one flat tensor: a copy."""
        return Ragged.joined(self._pieces())

    def _pieces(self) -> Iterator[Ragged]:
        for rows in self.rows.split(AT_ONCE):
            flat, lengths = self.whole.take(rows)
            starts = torch.cat([torch.zeros(1, dtype=torch.long), lengths.cumsum(0)])
            yield Ragged(flat.to(self.whole.flat.dtype), starts)


Sequences = Ragged | RaggedRows


def token_type(size: int) -> np.dtype[Any]:
    """The smallest of two kinds of integers that counts so many tokens."""
    return np.dtype(np.uint16 if size <= 1 << 16 else np.int32)
