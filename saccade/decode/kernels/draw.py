"""Drawing the next word of every row in one kernel on the GPU.

Does what `Sampler` does, where it cuts nothing off, in some twenty operations, each of which would
take longer to start than to run.
"""
# Triton's language is not Python's: its functions have no types that a checker could follow.
# pyright: basic, reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false
# pyright: reportAttributeAccessIssue=false
# ruff: noqa: ANN001, ANN202

import torch
import triton
import triton.language as tl
from jaxtyping import Float, Int
from torch import Tensor

AT_ONCE = 8192  # words


def draw_rows(
    logits: Float[Tensor, "R V"],
    uniforms: Float[Tensor, "R T"],
    time: Int[Tensor, " 1"],
    temperature: float,
) -> tuple[Int[Tensor, " R"], Float[Tensor, " R"]]:
    """Words drawn by the numbers of this time, and log p of each at temperature 1.

    p ∝ exp(logits / temperature)        word = the first w with Σ_{v ≤ w} p(v) ≥ 1 − u
    """
    rows, size = logits.shape
    words = torch.empty(rows, dtype=torch.long, device=logits.device)
    log_p = torch.empty(rows, device=logits.device)
    block = min(AT_ONCE, triton.next_power_of_2(size))
    _draw_rows[(rows,)](
        logits, uniforms, time, words, log_p, size, logits.stride(0), uniforms.stride(0),
        temperature, BLOCK=block, num_warps=16 if block > 2048 else 4,
    )  # fmt: skip
    return words, log_p


@triton.jit
def _draw_rows(
    logits_at, uniforms_at, time_at, words_at, log_p_at, size, stride, drawn, temperature,
    BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    at, inside = logits_at + row * stride, tl.arange(0, BLOCK)
    top = float("-inf")
    for start in tl.range(0, size, BLOCK):
        x = tl.load(at + start + inside, mask=start + inside < size, other=float("-inf"))
        top = tl.maximum(top, tl.max(x.to(tl.float32), axis=0))
    # Sums of what words are drawn by in double precision, as the plain way has them.
    plain, total, last = 0.0, tl.full((), 0.0, tl.float64), 0
    for start in tl.range(0, size, BLOCK):
        word = start + inside
        x = tl.load(at + word, mask=word < size, other=float("-inf")).to(tl.float32) - top
        weight = tl.exp(x / temperature)
        plain += tl.sum(tl.exp(x), axis=0)
        total += tl.sum(weight.to(tl.float64), axis=0)
        last = tl.maximum(last, tl.max(tl.where(weight > 0, word, 0), axis=0))
    u = tl.load(uniforms_at + row * drawn + tl.load(time_at)).to(tl.float64)
    # Summed in another order it may not be reached: then it is the last word that can be.
    wanted, before, found = (1 - u) * total, tl.full((), 0.0, tl.float64), last
    for start in tl.range(0, size, BLOCK):
        word = start + inside
        x = tl.load(at + word, mask=word < size, other=float("-inf")).to(tl.float32) - top
        weight = tl.exp(x / temperature)
        reached = before + tl.cumsum(weight.to(tl.float64), axis=0)
        found = tl.minimum(found, tl.min(tl.where(reached >= wanted, word, size), axis=0))
        before += tl.sum(weight.to(tl.float64), axis=0)
    score = tl.load(at + found).to(tl.float32) - top
    tl.store(words_at + row, found.to(tl.int64))
    tl.store(log_p_at + row, score - tl.log(plain))
