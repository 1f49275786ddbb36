"""Keys and values of the positions already decoded, so that a step computes only the new one."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor


@dataclass
class KeyValues:
    """One layer's memory. `room` is allocated ahead and doubled when full; `length` is in use."""

    keys: Float[Tensor, "R N room K"]
    values: Float[Tensor, "R N room Kv"]
    length: int = 0

    @classmethod
    def empty(cls, like: Float[Tensor, "R D"], *, heads: int, width: int) -> "KeyValues":
        """No positions yet, for as many rows as `like` has, on its device and in its precision."""
        nothing = like.new_empty(len(like), heads, 0, width)
        return cls(nothing, nothing)

    def append(
        self, keys: Float[Tensor, "R N T K"], values: Float[Tensor, "R N T Kv"]
    ) -> tuple[Float[Tensor, "R N S K"], Float[Tensor, "R N S Kv"]]:
        """Remember new positions and return all there are."""
        end = self.length + keys.shape[2]
        if end > self.keys.shape[2]:
            room = max(2 * self.keys.shape[2], end, 16)
            self.keys, self.values = (
                _grown(self.keys, room, keys),
                _grown(self.values, room, values),
            )
        self.keys[:, :, self.length : end] = keys
        self.values[:, :, self.length : end] = values
        self.length = end
        return self.keys[:, :, :end], self.values[:, :, :end]

    def select(self, rows: Int[Tensor, " R2"]) -> "KeyValues":
        """Keep these rows, in this order; a row may be kept more than once."""
        return KeyValues(self.keys[rows], self.values[rows], self.length)


def _grown(
    held: Float[Tensor, "R N room K"], room: int, like: Float[Tensor, "R N T K"]
) -> Float[Tensor, "R N more K"]:
    bigger = torch.empty(*held.shape[:2], room, held.shape[3], dtype=like.dtype, device=like.device)
    bigger[:, :, : held.shape[2]] = held
    return bigger
