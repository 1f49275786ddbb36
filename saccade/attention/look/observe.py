"""One meaning, several ways to compute it: what a look is, by whatever serves best here."""

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from saccade.attention.kernels import HAS_TRITON
from saccade.attention.kernels.look import blocks, dense
from saccade.attention.look.glance import Glance, Keep, half
from saccade.attention.look.view import View

MOST_TOP = 16  # keys that the Triton kernel can sort beside its work


@torch.no_grad()
def observe(seen: View | Float[Tensor, "B N T S"], keep: Keep) -> Glance:
    """Statistics of weights that are there, or of those that a view would have.

    Short inputs are looked at directly; long ones by the Triton kernel on CUDA, else in blocks.
    """
    if isinstance(seen, Tensor):
        weights = seen.detach()
        return dense.observe(weights.to(torch.promote_types(weights.dtype, torch.float32)), keep)
    view = _detached(seen)
    _, _, queries, keys = view.shape
    if max(queries, keys) <= keep.dense or queries * keys == 0:
        glance = _directly(view, keep)
    elif _suits_triton(view, keep):
        from saccade.attention.kernels.look import tiles

        glance = tiles.observe(view, keep)
    else:
        glance = blocks.observe(view, keep)
    return replace(glance, zoom=half(view, glance.lse)) if keep.zoom else glance


def _suits_triton(view: View, keep: Keep) -> bool:
    """Whether the kernel is there and made for this: not for doubles, nor for many top keys."""
    if not view.q.is_cuda or view.q.dtype == torch.float64 or keep.top > MOST_TOP:
        return False
    return HAS_TRITON


def _directly(view: View, keep: Keep) -> Glance:
    scores = view.scores()
    lse = view.normaliser(scores)
    weights = (scores - lse.masked_fill(lse == -torch.inf, 0.0)[..., None]).exp()
    return dense.observe(weights, keep, lse=lse, causal=view.causal, reach=view.reach)


def _detached(view: View) -> View:
    sides = {"q": view.q, "k": view.k, "bias": view.bias, "sink": view.sink, "lse": view.lse}
    return replace(view, **{n: t.detach() for n, t in sides.items() if t is not None})
