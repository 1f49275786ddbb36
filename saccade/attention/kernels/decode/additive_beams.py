"""What the beams of each sentence read by the additive score, one kernel: a step of decoding.

Keys and values are there once for a sentence, however many beams it has; those that ask one after
another find them in the cache. Queries, keys and w come doubled: see `additive.doubled_score`.
"""
# Triton's language is not Python's: its functions have no types that a checker could follow.
# pyright: basic, reportGeneralTypeIssues=false, reportArgumentType=false
# pyright: reportAssignmentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# ruff: noqa: ANN001, ANN202

import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

TILE = 8192  # elements of keys or values at once
WARPS = 4


def read(
    q: Float[Tensor, "R F"],
    keys: Float[Tensor, "B S F"],
    values: Float[Tensor, "B S D"],
    hide: Float[Tensor, "B 1 S"] | None,
    w: Float[Tensor, " F"],
    onto: Float[Tensor, "R D"] | None,
) -> Float[Tensor, "R D"]:
    """What each row reads of its sentence, or, given something to add it onto, the bent sum.

    a = softmax over i of wᵀ σ(q + kᵢ)        c = Σᵢ aᵢ vᵢ        or        tanh(onto + c)
    """
    sentences, places, width = values.shape
    c = q.new_empty(len(q), width)
    tall = max(16, triton.next_power_of_2(places))
    _read[(len(q),)](
        q, keys, values, c if hide is None else hide, w, c if onto is None else onto, c, places,
        q.stride(0), 0 if onto is None else onto.stride(0), hidden=q.shape[1], width=width,
        BEAMS=len(q) // sentences, HIDES=hide is not None, BENDS=onto is not None, TALL=tall,
        WIDE=max(16, TILE // tall), num_warps=WARPS,
    )  # fmt: skip
    return c


@triton.jit
def _read(
    q_at, k_at, v_at, hide_at, w_at, onto_at, c_at, places, q_stride, onto_stride,
    hidden: tl.constexpr, width: tl.constexpr, BEAMS: tl.constexpr, HIDES: tl.constexpr,
    BENDS: tl.constexpr, TALL: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    row, s = tl.program_id(0).to(tl.int64), tl.arange(0, TALL)
    sentence, real = row // BEAMS, s < places
    e = tl.zeros([TALL], tl.float32)
    for start in range(0, hidden, WIDE):
        f = start + tl.arange(0, WIDE)
        inside = f < hidden
        w = tl.load(w_at + f, mask=inside, other=0.0).to(tl.float32)
        q = tl.load(q_at + row * q_stride + f, mask=inside, other=0.0).to(tl.float32)
        at = (sentence * places + s[:, None]) * hidden + f[None, :]
        k = tl.load(k_at + at, mask=real[:, None] & inside[None, :], other=0.0).to(tl.float32)
        e += tl.sum(w[None, :] / (1.0 + tl.exp(-q[None, :] - k)), axis=1)
    if HIDES:
        e += tl.load(hide_at + sentence * places + s, mask=real, other=0.0).to(tl.float32)
    e = tl.where(real, e, float("-inf"))
    a = tl.exp(e - tl.max(e, axis=0))
    a = a / tl.sum(a, axis=0)
    for start in range(0, width, WIDE):
        d = start + tl.arange(0, WIDE)
        inside = d < width
        at = (sentence * places + s[:, None]) * width + d[None, :]
        v = tl.load(v_at + at, mask=real[:, None] & inside[None, :], other=0.0).to(tl.float32)
        c = tl.sum(a[:, None] * v, axis=0)
        if BENDS:
            c += tl.load(onto_at + row * onto_stride + d, mask=inside, other=0.0).to(tl.float32)
            c = 1.0 - 2.0 / (1.0 + tl.exp(2.0 * c))
        tl.store(c_at + row * width + d, c.to(c_at.dtype.element_ty), mask=inside)
