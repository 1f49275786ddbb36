"""The largest of each row: only the groups with the largest maxima are searched."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

FEWEST_GROUPS = 32  # below, maxima are no longer taken across rows of memory
MANY_THREADS = 8  # so many share torch's selection that it is faster than one that sorts
PLACE = (1 << 28) - 1  # the bits that tell a place; half of what rounding to a float drops


@dataclass(frozen=True)
class GroupShape:
    """How keys are grouped in the search for the largest: about as many groups as candidates."""

    size: int
    unit: int  # keys come in multiples of it: whole groups, whole cells of a map

    @classmethod
    def of(cls, keys: int, top: int, cell: int) -> "GroupShape":
        size = 1
        while size * size * top < keys and 2 * size * FEWEST_GROUPS <= keys:
            size *= 2
        return cls(size, max(size, cell))


def largest(
    values: Float[Tensor, "h t s"], many: int, group: int
) -> tuple[Float[Tensor, "h t many"], Int[Tensor, "h t many"]]:
    """The largest of each row in order, and where they are."""
    if group == 1:
        return _select(values, min(many, values.shape[-1]))
    rows = values.unflatten(-1, (group, -1))  # (h, t, group, groups)
    maxima = rows.amax(dim=-2)
    _, chosen = _select(maxima, min(many, maxima.shape[-1]))
    few = chosen.shape[-1]
    inside = rows.gather(-1, chosen[:, :, None].expand(-1, -1, group, -1)).flatten(-2)
    best, index = _select(inside, min(many, inside.shape[-1]))
    return best, index // few * maxima.shape[-1] + chosen.gather(-1, index % few)


def _select(
    values: Float[Tensor, "h t s"], many: int
) -> tuple[Float[Tensor, "h t many"], Int[Tensor, "h t many"]]:
    """The same of few values; on few threads numpy's sorting takes a fifth of torch's time.

    A float leaves 29 bits of a double empty: the place is written there, and goes where it goes.
    """
    if many == 1:
        found = values.max(dim=-1, keepdim=True)
        return found.values, found.indices
    few = values.device.type == "cpu" and torch.get_num_threads() < MANY_THREADS
    if values.dtype != torch.float32 or not few:
        best = values.topk(many)
        return best.values, best.indices
    packed = values.double()
    packed.view(torch.int64).bitwise_or_(torch.arange(values.shape[-1]))
    packed.numpy().sort(axis=-1)
    best = packed[..., -many:].flip(-1)
    return best.float(), best.view(torch.int64) & PLACE
