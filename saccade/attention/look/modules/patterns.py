"""A mask as short as it can be said: full, causal, a window, hidden keys."""

import weakref
from typing import NamedTuple

import torch
from jaxtyping import Bool
from torch import Tensor

from saccade.attention import masks


class MaskPattern(NamedTuple):
    """A mask in the words of a View."""

    causal: bool = False
    reach: int | None = None
    mask: Bool[Tensor, "#B #N #T #S"] | None = None


_last: tuple[weakref.ref[Tensor], MaskPattern] | None = None  # every layer is given the same mask


def shortest(given: Tensor | None, mask: Bool[Tensor, "#B #N #T #S"]) -> MaskPattern:
    """The same mask, but said by `causal`, `reach` and the keys alone where these say it all."""
    global _last  # noqa: PLW0603
    known = _last
    if known is None or known[0]() is not given or given is None:
        known = (weakref.ref(mask if given is None else given), pattern(mask))
        _last = known
    return known[1]


def forget() -> None:
    """Let go of the last mask."""
    global _last  # noqa: PLW0603
    _last = None


def pattern(mask: Bool[Tensor, "#B #N #T #S"]) -> MaskPattern:
    """Full, causal or windowed, perhaps with keys that are hidden from all; else the mask."""
    queries, keys = mask.shape[-2:]
    seen = mask.any(dim=-2, keepdim=True)  # (B, N, 1, S)
    hidden = None if bool(seen.all()) else seen
    if torch.equal(mask, seen.expand_as(mask)):
        return MaskPattern(mask=hidden)
    most = int(mask.sum(dim=-1).max())
    causal = masks.causal(queries, keys, device=mask.device) & seen
    if torch.equal(mask, causal.expand_as(mask)):
        return MaskPattern(causal=True, mask=hidden)
    for behind, reach in ((True, most - 1), (False, (most - 1) // 2)):
        near = masks.window(queries, keys, reach=max(reach, 0), device=mask.device)
        if torch.equal(mask, (near & (causal if behind else seen)).expand_as(mask)):
            return MaskPattern(causal=behind, reach=reach, mask=hidden)
    return MaskPattern(mask=mask)
