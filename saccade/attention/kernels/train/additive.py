"""The additive score block by block, so that the (T, S, F) in between never leaves the cache.

On the CPU it takes the tanh from torch's sigmoid, tanh x = 2σ(2x) − 1, which is six times as fast.
"""

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

CACHED = 1 << 18  # elements: 1 MiB of float32, a core's second-level cache


def additive_score(
    q: Float[Tensor, "B T F"], k: Float[Tensor, "B S F"], w: Float[Tensor, " F"]
) -> Float[Tensor, "B T S"]:
    """Every query against every key.

    eₜᵢ = wᵀ tanh(qₜ + kᵢ)
    """
    # Not in half precision, where the difference to ½ would have few digits left.
    wide = q.dtype == k.dtype == w.dtype and q.dtype in (torch.float32, torch.float64)
    if wide and q.device.type == "cpu" and not torch.compiler.is_compiling():
        return BlockwiseScore.apply(q, k, w)
    return (q.unsqueeze(-2) + k.unsqueeze(-3)).tanh() @ w


def doubled_score(
    q: Float[Tensor, "B T F"], k: Float[Tensor, "B S F"], w: Float[Tensor, " F"]
) -> Float[Tensor, "B T S"]:
    """The score of halves of q, k and w, but for a constant, which no softmax sees.

    (2w)ᵀ σ(2qₜ + 2kᵢ) = wᵀ tanh(qₜ + kᵢ) + Σw
    """
    e = q.new_empty(*q.shape[:2], k.shape[1])
    for rows, queries in _blocks(q, k):
        e[rows, queries] = _sums(q[rows, queries], k[rows]).sigmoid_() @ w
    return e


def doubled_gradient(
    grad: Float[Tensor, "B T S"],
    q: Float[Tensor, "B T F"],
    k: Float[Tensor, "B S F"],
    *,
    onto: tuple[Float[Tensor, "B S F"], Float[Tensor, " F"]],
) -> Float[Tensor, "B T F"]:
    """The gradient of q, for halves of q and k; those of k and w are added `onto` what is there.

        dqₜ = Σᵢ gₜᵢ(1 − y²ₜᵢ)        dkᵢ = Σₜ gₜᵢ(1 − y²ₜᵢ)        dw = Σₜᵢ gₜᵢ yₜᵢ
        1 − y² = 4 σ (1 − σ)        y = 2 σ − 1

    Those of q and k are still to be multiplied with w.
    """
    (dk, dw), dq = onto, torch.empty_like(q)
    for rows, queries in _blocks(q, k):
        g = grad[rows, queries]
        sigma = _sums(q[rows, queries], k[rows]).sigmoid_()  # (b, t, S, F)
        dw.add_(g.flatten() @ sigma.flatten(0, 2), alpha=2)
        slope = torch.ops.aten.sigmoid_backward(g.unsqueeze(-1), sigma)
        dq[rows, queries] = slope.sum(dim=2)
        dk[rows].add_(slope[:, 0] if slope.shape[1] == 1 else slope.sum(dim=1), alpha=4)
    dw.sub_(grad.sum())
    return dq.mul_(4)


class BlockwiseScore(torch.autograd.Function):
    """Keeps queries and keys for the gradient, and computes what is between them again."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, w: Tensor) -> Tensor:
        ctx.save_for_backward(q, k, w)
        q, k, w = 2 * q, 2 * k, 2 * w
        e = q.new_empty(*q.shape[:2], k.shape[1])
        for rows, queries in _blocks(q, k):  # tanh(x) / 2 = σ(2x) − ½
            e[rows, queries] = _sums(q[rows, queries], k[rows]).sigmoid_().sub_(0.5) @ w
        return e

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, *grads: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        q, k, w = ctx.saved_tensors
        dk, dw = torch.zeros_like(k), torch.zeros_like(w)
        dq = doubled_gradient(grads[0], 2 * q, 2 * k, onto=(dk, dw))
        return dq.mul_(w), dk.mul_(w), dw


def _sums(q: Float[Tensor, "b t F"], k: Float[Tensor, "b S F"]) -> Float[Tensor, "b t S F"]:
    return q.unsqueeze(-2) + k.unsqueeze(-3)


def _blocks(q: Float[Tensor, "B T F"], k: Float[Tensor, "B S F"]) -> Iterator[tuple[slice, slice]]:
    """Some rows with all their queries, or where these are too many some queries of one row.

    A GPU takes all at once.
    """
    total, length = q.shape[:2]
    cached = CACHED if q.device.type == "cpu" else q.shape[:2].numel() * k.shape[1:].numel()
    at_once = max(1, cached // max(1, k.shape[1] * k.shape[2]))
    rows, queries = max(1, at_once // max(1, length)), min(length, at_once)
    return (
        (slice(row, row + rows), slice(query, query + queries))
        for row in range(0, total, rows)
        for query in range(0, length, max(1, queries))
    )
