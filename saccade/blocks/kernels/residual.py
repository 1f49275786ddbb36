"""A residual connection in one pass: dropout, sum and LayerNorm read and write each number once."""
# Triton's language is not Python's: its functions have no types that a checker could follow.
# pyright: basic, reportGeneralTypeIssues=false, reportArgumentType=false
# pyright: reportAssignmentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# ruff: noqa: ANN001, ANN202

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

from saccade.blocks.kernels.chance import chances, draw_seed, kept

PROGRAMS = 1056  # eight to each of an H200's processors; each sums its rows' part of ∂w and ∂b


def add_norm(
    x: Float[Tensor, "*batch D"],
    change: Float[Tensor, "*batch D"],
    weight: Float[Tensor, " D"],
    bias: Float[Tensor, " D"],
    epsilon: float,
    *,
    rate: float,
) -> Float[Tensor, "*batch D"]:
    """norm(x + dropout(change)).

    Means and variances are in float32; the result is in the precision that products take.
    """
    return _AddNorm.apply(x, change, weight, bias, rate, epsilon, _wanted(x))


def norm_beside(
    x: Float[Tensor, "*batch D"],
    weight: Float[Tensor, " D"],
    bias: Float[Tensor, " D"],
    epsilon: float,
) -> tuple[Float[Tensor, "*batch D"], Float[Tensor, "*batch D"]]:
    """norm(x), and x itself: on the way back their gradients meet here in one pass."""
    return _NormBeside.apply(x, weight, bias, epsilon, _wanted(x))


def add_norm_beside(
    x: Float[Tensor, "*batch D"],
    change: Float[Tensor, "*batch D"],
    deferred: Float[Tensor, " D"] | None,
    weight: Float[Tensor, " D"],
    bias: Float[Tensor, " D"],
    epsilon: float,
    *,
    rate: float,
) -> tuple[Float[Tensor, "*batch D"], Float[Tensor, "*batch D"]]:
    """norm(s), and s = x + dropout(change) itself, in the precision of x.

    `deferred` is a bias that is in `change` already and has yet to get its gradient: Σ ∂change.
    """
    return _AddNormBeside.apply(x, change, deferred, weight, bias, rate, epsilon, _wanted(x))


def _wanted(x: Tensor) -> torch.dtype:
    kind = x.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else x.dtype


def add_dropped(
    x: Float[Tensor, "*batch D"], change: Float[Tensor, "*batch D"], *, rate: float
) -> Float[Tensor, "*batch D"]:
    """The sum of x and dropout(change)."""
    return _AddDropped.apply(x, change, rate)


class _AddNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        change: Tensor,
        weight: Tensor,
        bias: Tensor,
        rate: float,
        epsilon: float,
        dtype: torch.dtype,
    ) -> Tensor:
        seed = draw_seed(x.device) if rate else x
        drop = _Drop(seed, rate)
        into = torch.empty(x.shape, dtype=dtype, device=x.device)
        y, total, scale = _normed(x, (change, into), weight, bias, epsilon, dtype, drop)
        ctx.save_for_backward(total, weight, scale, seed)
        ctx.rate, ctx.dtypes = rate, (x.dtype, change.dtype)
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        total, weight, scale, seed = ctx.saved_tensors
        x_dtype, change_dtype = ctx.dtypes
        dx = torch.empty(total.shape, dtype=x_dtype, device=total.device)
        apart = ctx.rate > 0 or change_dtype != x_dtype
        change = torch.empty(dx.shape, dtype=change_dtype, device=dx.device) if apart else dx
        drop = _Drop(seed, ctx.rate)
        sums = _gradients(grads[0], None, total, weight, scale, drop, dx, change)
        return dx, change, *sums, None, None, None


class _AddNormBeside(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        change: Tensor,
        deferred: Tensor | None,
        weight: Tensor,
        bias: Tensor,
        rate: float,
        epsilon: float,
        dtype: torch.dtype,
    ) -> tuple[Tensor, Tensor]:
        seed = draw_seed(x.device) if rate else x
        into = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        drop = _Drop(seed, rate)
        y, total, scale = _normed(x, (change, into), weight, bias, epsilon, dtype, drop)
        ctx.save_for_backward(total, weight, scale, seed)
        ctx.rate, ctx.dtype, ctx.defers = rate, change.dtype, deferred is not None
        return y, total

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        total, weight, scale, seed = ctx.saved_tensors
        dx, drop = torch.empty_like(total), _Drop(seed, ctx.rate)
        apart = ctx.rate > 0 or ctx.dtype != dx.dtype
        change = torch.empty(dx.shape, dtype=ctx.dtype, device=dx.device) if apart else dx
        by_weight, by_bias, *deferred = _gradients(
            grads[0], grads[1], total, weight, scale, drop, dx, change, defers=ctx.defers
        )
        by_deferred = deferred[0] if deferred else None
        return dx, change, by_deferred, by_weight, by_bias, None, None, None


class _NormBeside(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, epsilon: float, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        y, total, scale = _normed(x, None, weight, bias, epsilon, dtype, _Drop(x, 0.0))
        ctx.save_for_backward(total, weight, scale)
        return y, x

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        total, weight, scale = ctx.saved_tensors
        dx = torch.empty_like(total)
        sums = _gradients(grads[0], grads[1], total, weight, scale, _Drop(total, 0.0), dx, dx)
        return dx, *sums, None, None


class _Drop(NamedTuple):
    """Which elements of a change are dropped; any tensor stands for a seed nobody reads."""

    seed: Tensor
    rate: float


def _normed(
    x: Tensor,
    added: tuple[Tensor, Tensor] | None,
    weight: Tensor,
    bias: Tensor,
    epsilon: float,
    dtype: torch.dtype,
    drop: _Drop,
) -> tuple[Tensor, Tensor, Tensor]:
    """The norm of the sum, the sum, and its mean and 1 / deviation.

    `added` is the change, and where the sum is to be written; without, x is the sum.
    """
    x, width = x.contiguous(), x.shape[-1]
    rows = x.numel() // width
    y = torch.empty(x.shape, dtype=dtype, device=x.device)
    change, total = (x, x) if added is None else (added[0].contiguous(), added[1])
    scale = torch.empty(2, rows, dtype=torch.float32, device=x.device)
    _forward[(triton.cdiv(rows, 4),)](
        x, change, weight, bias, y, total, scale, drop.seed,
        rows, width, epsilon, *chances(drop.rate), ADD=added is not None, DROP=drop.rate > 0,
        ROWS=4, WIDTH=triton.next_power_of_2(width), num_warps=max(4, _warps(width)),
    )  # fmt: skip
    return y, total, scale


def _gradients(
    dy: Tensor,
    beside: Tensor | None,
    total: Tensor,
    weight: Tensor,
    scale: Tensor,
    drop: _Drop,
    dx: Tensor,
    change: Tensor,
    *,
    defers: bool = False,
) -> list[Tensor]:
    """Write the gradients to x and change (unless these are one).

    Given are those to weight and bias, and if it `defers` them the sum of the change's.
    """
    dy, width = dy.contiguous(), dy.shape[-1]
    rows = dy.numel() // width
    programs = min(PROGRAMS, triton.cdiv(rows, 4))
    sums = torch.empty(2 + defers, programs, width, dtype=torch.float32, device=dy.device)
    _backward[(programs,)](
        dy, dy if beside is None else beside.contiguous(), total, weight, scale, drop.seed,
        dx, change, sums, rows, width, programs, *chances(drop.rate),
        BESIDE=beside is not None, APART=change is not dx, DROP=drop.rate > 0, OWES=defers,
        ROWS=4, WIDTH=triton.next_power_of_2(width), num_warps=_warps(width),
    )  # fmt: skip
    return list(sums.sum(dim=1).to(weight.dtype))


def _warps(width: int) -> int:
    """Enough for four rows to lie in registers, and no more: they would only wait."""
    return 2 if width <= 1024 else min(16, (1 << (width - 1).bit_length()) // 256)


@triton.jit
def _forward(
    x_at, change_at, weight, bias, y_at, total_at, scale, seed,
    rows, width, epsilon, dropped, scale_up,
    ADD: tl.constexpr, DROP: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, WIDTH)
    inside = (row[:, None] < rows) & (column < width)[None, :]
    at = row[:, None].to(tl.int64) * width + column[None, :]
    x = tl.load(x_at + at, mask=inside, other=0.0).to(tl.float32)
    if ADD:
        change = tl.load(change_at + at, mask=inside, other=0.0).to(tl.float32)
        if DROP:
            change *= kept(seed, at, dropped, scale_up)
        x += change
        tl.store(total_at + at, x.to(total_at.dtype.element_ty), mask=inside)
    mean = tl.sum(x, 1) / width
    apart = tl.where(inside, x - mean[:, None], 0.0)
    steep = tl.rsqrt(tl.sum(apart * apart, 1) / width + epsilon)
    w = tl.load(weight + column, mask=column < width, other=0.0).to(tl.float32)
    b = tl.load(bias + column, mask=column < width, other=0.0).to(tl.float32)
    y = apart * steep[:, None] * w[None, :] + b[None, :]
    tl.store(y_at + at, y.to(y_at.dtype.element_ty), mask=inside)
    tl.store(scale + row, mean, mask=row < rows)
    tl.store(scale + rows + row, steep, mask=row < rows)


@triton.jit
def _backward(
    dy_at, beside_at, total_at, weight, scale, seed, dx_at, change_at, sums,
    rows, width, programs, dropped, scale_up,
    BESIDE: tl.constexpr, APART: tl.constexpr, DROP: tl.constexpr, OWES: tl.constexpr,
    ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """∂x = (∂n − mean(∂n) − n · mean(∂n n)) / deviation        n = (x − mean) / deviation."""
    column = tl.arange(0, WIDTH)
    w = tl.load(weight + column, mask=column < width, other=0.0).to(tl.float32)
    by_weight = tl.zeros([WIDTH], tl.float32)
    by_bias = tl.zeros([WIDTH], tl.float32)
    by_change = tl.zeros([WIDTH], tl.float32)
    for start in range(tl.program_id(0) * ROWS, rows, programs * ROWS):
        row = start + tl.arange(0, ROWS)
        inside = (row[:, None] < rows) & (column < width)[None, :]
        at = row[:, None].to(tl.int64) * width + column[None, :]
        dy = tl.load(dy_at + at, mask=inside, other=0.0).to(tl.float32)
        x = tl.load(total_at + at, mask=inside, other=0.0).to(tl.float32)
        mean = tl.load(scale + row, mask=row < rows, other=0.0)
        steep = tl.load(scale + rows + row, mask=row < rows, other=0.0)
        n = tl.where(inside, (x - mean[:, None]) * steep[:, None], 0.0)
        dn = dy * w[None, :]
        by_weight += tl.sum(dy * n, 0)
        by_bias += tl.sum(dy, 0)
        level, slope = tl.sum(dn, 1) / width, tl.sum(dn * n, 1) / width
        dx = (dn - level[:, None] - n * slope[:, None]) * steep[:, None]
        if BESIDE:
            dx += tl.load(beside_at + at, mask=inside, other=0.0).to(tl.float32)
        tl.store(dx_at + at, dx.to(dx_at.dtype.element_ty), mask=inside)
        if APART:
            if DROP:
                dx *= kept(seed, at, dropped, scale_up)
            tl.store(change_at + at, dx.to(change_at.dtype.element_ty), mask=inside)
        if OWES:
            by_change += tl.sum(dx, 0)
    own = sums + tl.program_id(0) * width + column
    tl.store(own, by_weight, mask=column < width)
    tl.store(own + programs * width, by_bias, mask=column < width)
    if OWES:
        tl.store(own + 2 * programs * width, by_change, mask=column < width)


class _AddDropped(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, change: Tensor, rate: float) -> Tensor:
        x, change = x.contiguous(), change.contiguous()
        y, seed = torch.empty_like(x), draw_seed(x.device) if rate else x
        _drop[(triton.cdiv(x.numel(), 2048),)](
            change, x, y, seed, x.numel(), *chances(rate), ADD=True, DROP=rate > 0, BLOCK=2048
        )
        ctx.save_for_backward(seed)
        ctx.rate, ctx.dtype = rate, change.dtype
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        dy = grads[0].contiguous()
        if not ctx.rate:
            return dy, dy.to(ctx.dtype), None
        change = torch.empty(dy.shape, dtype=ctx.dtype, device=dy.device)
        _drop[(triton.cdiv(dy.numel(), 2048),)](
            dy,
            dy,
            change,
            *ctx.saved_tensors,
            dy.numel(),
            *chances(ctx.rate),
            ADD=False,
            DROP=True,
            BLOCK=2048,
        )
        return dy, change, None


@triton.jit
def _drop(
    change_at, x_at, y_at, seed, size, dropped, scale_up,
    ADD: tl.constexpr, DROP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(change_at + at, mask=at < size).to(tl.float32)
    if DROP:
        y *= kept(seed, at, dropped, scale_up)
    if ADD:
        y += tl.load(x_at + at, mask=at < size).to(tl.float32)
    tl.store(y_at + at, y.to(y_at.dtype.element_ty), mask=at < size)
