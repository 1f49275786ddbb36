"""Who may look where. Boolean, True = may look, broadcast to (B, N, T, S); built only here."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor


def causal(
    queries: int, keys: int, *, device: torch.device | None = None
) -> Bool[Tensor, "1 1 T S"]:
    """A position sees itself and what came before.

    With fewer queries than keys, the queries are the last positions (decoding with a cache).
    """
    t = torch.arange(keys - queries, keys, device=device)[:, None]
    return (torch.arange(keys, device=device)[None, :] <= t)[None, None]


def padding(lengths: Int[Tensor, " B"], size: int) -> Bool[Tensor, "B 1 1 S"]:
    """The first `lengths[b]` keys are real, the rest is padding."""
    return (torch.arange(size, device=lengths.device) < lengths[:, None])[:, None, None]


def window(
    queries: int, keys: int, *, reach: int, device: torch.device | None = None
) -> Bool[Tensor, "1 1 T S"]:
    """A position sees at most `reach` positions to either side of itself."""
    t = torch.arange(keys - queries, keys, device=device)[:, None]
    return ((torch.arange(keys, device=device)[None, :] - t).abs() <= reach)[None, None]


def both(
    one: Bool[Tensor, "..."] | None, other: Bool[Tensor, "..."] | None
) -> Bool[Tensor, "..."] | None:
    """What both allow; None allows everything."""
    if one is None or other is None:
        return one if other is None else other
    return one & other
