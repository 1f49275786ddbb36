"""Our weights in others' modules, so that they compute what ours do."""

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn


@torch.no_grad()
def copy_modules(
    ours: Iterable[nn.Module], theirs: Iterable[nn.Module], names: Mapping[str, str]
) -> None:
    """Layer by layer, what has one name in ours to what has another in theirs."""
    for layer, to in zip(ours, theirs, strict=True):
        for mine, there in names.items():
            to.get_submodule(there).load_state_dict(layer.get_submodule(mine).state_dict())


def fused(attention: Any) -> tuple[Tensor, Tensor]:
    """One weight and one bias for the queries, keys and values."""
    three = (attention.to_q, attention.to_k, attention.to_v)
    return torch.cat([one.weight for one in three]), torch.cat([one.bias for one in three])
