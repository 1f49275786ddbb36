"""Many token sequences of different lengths in one flat tensor."""

import hashlib
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor


@dataclass(frozen=True)
class Ragged:
    """Sequence i is `flat[starts[i] : starts[i + 1]]`."""

    flat: Int[Tensor, " tokens"]
    starts: Int[Tensor, " boundaries"]

    @classmethod
    def of(cls, rows: list[list[int]]) -> "Ragged":
        flat = torch.tensor([token for row in rows for token in row], dtype=torch.int32)
        starts = torch.tensor([0, *map(len, rows)]).cumsum(0)
        return cls(flat, starts)

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

    @property
    def lengths(self) -> Int[Tensor, " rows"]:
        return self.starts.diff()

    def fingerprint(self) -> str:
        """Changes when any token or any boundary does."""
        digest = hashlib.sha256(self.flat.numpy().tobytes())
        digest.update(self.starts.numpy().tobytes())
        return digest.hexdigest()
