"""Many token sequences of different lengths in one flat tensor."""

import hashlib
from dataclasses import dataclass

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

    @property
    def lengths(self) -> Int[Tensor, " rows"]:
        return self.starts.diff()

    def fingerprint(self) -> str:
        """Changes when any token or any boundary does."""
        digest = hashlib.sha256(self.flat.numpy().tobytes())
        digest.update(self.starts.numpy().tobytes())
        return digest.hexdigest()
