"""Scores to loss and gradient, each read from far memory once: one program to a row."""
# Triton's language is not Python's: its functions have no types that a checker could follow.
# pyright: basic, reportGeneralTypeIssues=false, reportArgumentType=false
# pyright: reportAssignmentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# ruff: noqa: ANN001, ANN202

import torch
import triton
import triton.language as tl
from jaxtyping import Float, Int
from torch import Tensor

BLOCK = 8192


def score_loss_by_kernel(
    scores: Float[Tensor, "rows V"],
    labels: Int[Tensor, " rows"],
    *,
    words: int,
    smoothing: float,
) -> Float[Tensor, ""]:
    """What `score_loss` computes: the second pass over a row finds it in the cache."""
    losses = torch.empty(len(scores), dtype=torch.float32, device=scores.device)
    _loss_and_gradient[(len(scores),)](
        scores, labels, losses, words, scores.stride(0), smoothing,
        SMOOTH=smoothing > 0, BLOCK=BLOCK, num_warps=16,
    )  # fmt: skip
    return losses.sum()


@triton.jit
def _loss_and_gradient(
    scores, labels, losses, vocabulary, stride, smoothing,
    SMOOTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """∂z = softmax(z) − ε/V − (1 − ε) [v = label]."""
    row = tl.program_id(0)
    label = tl.load(labels + row)
    at, column = scores + row.to(tl.int64) * stride, tl.arange(0, BLOCK)
    highest, total, plain = -float("inf"), 0.0, 0.0
    for start in range(0, vocabulary, BLOCK):
        inside = start + column < vocabulary
        z = tl.load(at + start + column, mask=inside, other=-float("inf")).to(tl.float32)
        higher = tl.maximum(highest, tl.max(z, 0))
        total = total * tl.exp(highest - higher) + tl.sum(tl.exp(z - higher), 0)
        if SMOOTH:
            plain += tl.sum(tl.where(inside, z, 0.0), 0)
        highest = higher
    lse = highest + tl.log(total)
    counts = label >= 0
    chosen = tl.load(at + tl.maximum(label, 0)).to(tl.float32)
    loss = lse - (1 - smoothing) * chosen - smoothing * plain / vocabulary
    tl.store(losses + row, tl.where(counts, loss, 0.0))
    for start in range(0, stride, BLOCK):
        inside = start + column < vocabulary
        z = tl.load(at + start + column, mask=inside, other=0.0).to(tl.float32)
        gradient = tl.exp(z - lse)
        if SMOOTH:
            gradient -= smoothing / vocabulary
        gradient = tl.where(counts & inside, gradient, 0.0)
        filled = gradient.to(scores.dtype.element_ty)
        tl.store(at + start + column, filled, mask=start + column < stride)
    if counts:
        tl.debug_barrier()  # the label's place has been written by another thread
        gradient = tl.exp(chosen - lse) - 1
        if SMOOTH:
            gradient += smoothing - smoothing / vocabulary
        tl.store(at + label, gradient.to(scores.dtype.element_ty))
