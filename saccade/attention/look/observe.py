"""One meaning, several ways to compute it: what a look is, by whatever serves best here."""

from dataclasses import replace

import torch
from jaxtyping import Bool
from torch import Tensor

from saccade.attention.kernels import HAS_TRITON
from saccade.attention.kernels.look import blocks, dense
from saccade.attention.look.glance import ROWS, Glance, Keep, half
from saccade.attention.look.padding import Seen, observe_tokens
from saccade.attention.look.view import View

MOST_TOP = 16  # keys that the Triton kernel can sort beside its work


@torch.no_grad()
def observe(
    seen: Seen,
    keep: Keep,
    *,
    queries: Bool[Tensor, "B T"] | None = None,
    keys: Bool[Tensor, "B S"] | None = None,
) -> Glance:
    """Statistics of weights that are there, or of those that a view would have.

    `queries` and `keys` say which positions are tokens, where some are padding.
    """
    seen = seen.detach() if isinstance(seen, Tensor) else _detached(seen)
    if queries is None and keys is None:
        glance = _observe(seen, keep)
    else:
        glance = observe_tokens(seen, keep, _observe, queries, keys)
    if not keep.zoom or isinstance(seen, Tensor):
        return glance
    return replace(glance, zoom=_zoom(seen, blind=glance.where < 0))


def _zoom(view: View, *, blind: Bool[Tensor, "B N T"]) -> View:
    """Queries and keys rounded, with the log-sum-exp of just these; who looks nowhere stays so."""
    rounded = half(view)
    lse = _observe(rounded, ROWS).lse
    assert lse is not None  # a view knows its scores
    return replace(rounded, lse=lse.float().masked_fill(blind, -torch.inf))


def _observe(seen: Seen, keep: Keep) -> Glance:
    """Long inputs by the Triton kernel on CUDA; all else in blocks."""
    if isinstance(seen, Tensor):
        return dense.observe(seen.to(torch.promote_types(seen.dtype, torch.float32)), keep)
    if not keep.holds(*seen.shape[2:]) and 0 not in seen.shape and _suits_triton(seen, keep):
        from saccade.attention.kernels.look import tiles

        return tiles.observe(seen, keep)
    return blocks.observe(seen, keep)


def _suits_triton(view: View, keep: Keep) -> bool:
    """Whether the kernel is there and made for this: not for doubles, nor for many top keys."""
    if not view.q.is_cuda or view.q.dtype == torch.float64 or keep.top > MOST_TOP:
        return False
    return HAS_TRITON


def _detached(view: View) -> View:
    sides = {"q": view.q, "k": view.k, "bias": view.bias, "sink": view.sink, "lse": view.lse}
    return replace(view, **{n: t.detach() for n, t in sides.items() if t is not None})
