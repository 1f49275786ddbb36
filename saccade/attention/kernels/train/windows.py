"""Attention within windows of one size by kernels: the map is neither rolled nor cut nor copied.

A sequence is a map of one row that is one window. Scores are held in registers and never written.
"""
# Triton's kernels have no types that a checker could follow.
# pyright: basic, reportGeneralTypeIssues=false, reportArgumentType=false
# pyright: reportAttributeAccessIssue=false, reportCallIssue=false

from math import isqrt
from typing import Any, NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from saccade.attention.kernels.train import window_kernels as kernels
from saccade.attention.tables import kept_table
from saccade.data.batching.rows import few


class Launch(NamedTuple):
    """How a kernel runs: queries at a time, warps of a program, loads ahead, programs in all."""

    tile: int
    warps: int
    stages: int = 1
    programs: int = 4224
    registers: int | None = None  # at most, of a thread


# By the number of keys that a program holds.
FORWARD = {
    16: Launch(16, 1, programs=8448),
    32: Launch(32, 2),
    64: Launch(64, 4, stages=2, programs=1584),
    80: Launch(32, 2),
    96: Launch(32, 2),
    128: Launch(64, 4),
}
BACKWARD = {
    16: Launch(16, 1, programs=8448),
    32: Launch(32, 2),
    64: Launch(64, 4, stages=2, programs=1584),
    80: Launch(32, 2, registers=168),
    96: Launch(32, 2, registers=168),
    128: Launch(32, 4),
}
BACKWARD_WIDE = {**BACKWARD, 80: Launch(32, 8), 96: Launch(32, 8), 128: Launch(32, 8)}
WIDE = 32  # a head that is wider asks for more threads on the way back


class _Windows(NamedTuple):
    """Windows over a batch of maps, each rolled by a shift before it is cut into them."""

    maps: int
    heads: int
    width: int
    height: int
    breadth: int
    high: int
    wide: int
    down: int
    across: int

    @classmethod
    def over(cls, qkv: Tensor, window: list[int], shift: list[int]) -> "_Windows":
        maps, height, breadth, _, heads, width = qkv.shape
        return cls(maps, heads, width, height, breadth, *window, *shift)

    @property
    def cells(self) -> int:
        return self.high * self.wide

    @property
    def of_a_map(self) -> int:
        return -(-self.height // self.high) * -(-self.breadth // self.wide)

    @property
    def count(self) -> int:
        return self.maps * self.of_a_map

    @property
    def all(self) -> bool:
        """Whether a window is all of its map."""
        return (self.height, self.breadth) == (self.high, self.wide)

    @property
    def regions(self) -> bool:
        """Whether some cells of a window lie elsewhere on the map, or are none."""
        tiled = self.height % self.high == 0 and self.breadth % self.wide == 0
        return not tiled or (self.down, self.across) != (0, 0)

    def places(self, device: torch.device) -> Tensor | None:
        return None if self.all else _places(*self[3:], device)

    def launch(self, table: dict[int, Launch], *, biased: bool) -> tuple[Launch, dict[str, Any]]:
        """How to run, and sizes that are compiled for.

        Keys beyond 64 are a rest by themselves if they are few. With a bias, whose gradient is
        summed in registers, all queries are computed at once.
        """
        keys, rest = few(self.cells), 0
        if 64 < self.cells <= 96 and not biased:
            keys, rest = 64, few(self.cells - 64)
        launch = table[keys + rest]
        tile = keys if biased else min(launch.tile, keys)
        return launch, {
            "REGIONS": self.regions,
            "BIASED": biased,
            "ALL": self.all,
            "TILE": tile,
            "TILES": -(-self.cells // tile),
            "S": keys,
            "REST": rest,
            "width": self.width,
            "WIDTH": few(self.width),
            "num_warps": max(launch.warps, 8) if tile == 128 else launch.warps,
            "num_stages": launch.stages,
            "maxnreg": launch.registers,
        }

    def programs(self, launch: Launch) -> int:
        """For each head: so many that all have the same number of windows, or nearly."""
        each = -(-self.count * self.heads // launch.programs)
        return -(-self.count // each)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Cells and windows of a map, cells of a window."""
        return self.height * self.breadth, self.of_a_map, self.cells

    def spread(self, offsets: Tensor | None, *, itself: bool) -> Tensor | None:
        """The number of each pair of cells, filled up to what a program holds."""
        if offsets is None:
            return None
        keys = few(self.cells)
        biases = offsets.new_empty(self.heads, keys, keys, dtype=torch.float32)
        kernels.spread[(self.heads,)](
            offsets.contiguous(), biases, self.heads, self.cells, self.wide, _side(offsets),
            ITSELF=itself, S=keys, num_warps=4,
        )  # fmt: skip
        return biases

    def gathered(self, by_pair: Tensor, offsets: Tensor) -> Tensor:
        """The way back."""
        by_offset = by_pair.new_empty(offsets.shape)
        kernels.gather[(len(offsets), self.heads)](
            by_pair, by_offset, self.heads, self.cells, self.wide, _side(offsets),
            S=few(self.cells), num_warps=1,
        )  # fmt: skip
        return by_offset


def _side(offsets: Tensor) -> int:
    """Of the windows that the offsets are for: there are (2 side − 1)²."""
    return (isqrt(len(offsets)) + 1) // 2


@kept_table
def _places(
    height: int, breadth: int, high: int, wide: int, down: int, across: int, device: torch.device
) -> Int[Tensor, "windows T"]:
    """Where on the map each cell of a window lies, and in three bits of which region; −1 for none.

    Those that came round when the map was rolled are of other regions.
    """
    y, x = (
        torch.arange(-(-size // side) * side, device=device).roll(-shift)
        for size, side, shift in ((height, high, down), (breadth, wide, across))
    )
    region = 2 * (y < down)[:, None] + (x < across)[None, :]
    inside = (y < height)[:, None] & (x < breadth)[None, :]
    code = torch.where(inside, (y[:, None] * breadth + x[None, :]) * 8 + region, -1)
    cut = code.unflatten(0, (-1, high)).unflatten(2, (-1, wide)).transpose(1, 2)
    return cut.flatten(2).flatten(0, 1).int()


@torch.library.custom_op("saccade::window_attention", mutates_args=())
def window_attention(
    qkv: Tensor,
    offsets: Tensor | None,
    scales: Tensor | None,
    biases: list[Tensor],
    window: list[int],
    shift: list[int],
    scale: float,
    itself: bool,
) -> Tensor:
    """What `attend` computes within each window of maps; qkv is (B, H, W, 3, heads, width).

        softmax(τ q kᵀ + B) v        τ of `scales` (one for each head), or `scale` for all

    `offsets` has a row for each offset and a column for each head: see `swin.relative_index`.
    Unless `itself`, no cell sees itself. `biases` of queries, keys and values are in the product
    already: here they only get their gradients.
    """
    qkv, windows = qkv.contiguous(), _Windows.over(qkv, window, shift)
    launch, compiled = windows.launch(FORWARD, biased=offsets is not None)
    programs = windows.count if offsets is None else windows.programs(launch)
    out = qkv.new_empty(*qkv.shape[:3], windows.heads * windows.width)
    kernels.forward[(programs * windows.heads,)](
        qkv, out, windows.places(qkv.device), windows.spread(offsets, itself=itself), scales, scale,
        windows.count, programs, windows.heads, *windows.sizes,
        ITSELF=itself, LEARNT=scales is not None, **compiled,
    )  # fmt: skip
    return out


@torch.library.custom_op("saccade::window_attention_backward", mutates_args=())
def _gradients(
    qkv: Tensor,
    grad: Tensor,
    offsets: Tensor | None,
    scales: Tensor | None,
    window: list[int],
    shift: list[int],
    scale: float,
    itself: bool,
    summed: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """To the product as it lies, to the offsets, and what else is summed, end to end."""
    qkv, windows = qkv.contiguous(), _Windows.over(qkv, window, shift)
    table = BACKWARD_WIDE if windows.width > WIDE else BACKWARD
    launch, compiled = windows.launch(table, biased=offsets is not None)
    alone = offsets is None and not summed
    programs = windows.count if alone else windows.programs(launch)
    pairs, rest = _sums(windows, offsets, scales, summed=summed)
    slopes, sums = torch.empty_like(qkv), qkv.new_empty(programs, pairs + rest, dtype=torch.float32)
    kernels.backward[(programs * windows.heads,)](
        qkv, grad.contiguous(), slopes, sums, windows.places(qkv.device),
        windows.spread(offsets, itself=itself), scales, scale,
        windows.count, programs, windows.heads, pairs + rest, *windows.sizes,
        ITSELF=itself, LEARNT=scales is not None, SUMMED=summed, **compiled,
    )  # fmt: skip
    totals = sums.sum(dim=0) if pairs + rest else sums.new_empty(0)
    if offsets is None:
        return slopes, sums.new_empty(0), totals
    return slopes, windows.gathered(totals, offsets), totals[pairs:].clone()


def _sums(
    windows: _Windows, offsets: Tensor | None, scales: Tensor | None, *, summed: bool
) -> tuple[int, int]:
    """How many numbers are summed: for pairs of cells; for scales and biases."""
    pairs = 0 if offsets is None else windows.heads * few(windows.cells) ** 2
    rest = 0 if scales is None else windows.heads
    return pairs, rest + 3 * windows.heads * windows.width * summed


@window_attention.register_fake
def _(qkv: Tensor, *_: Any) -> Tensor:
    return qkv.new_empty(*qkv.shape[:3], qkv.shape[4] * qkv.shape[5])


@_gradients.register_fake
def _(
    qkv: Tensor, grad: Tensor, offsets: Tensor | None, scales: Tensor | None,
    window: list[int], shift: list[int], scale: float, itself: bool, summed: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    windows = _Windows.over(qkv, window, shift)
    _, rest = _sums(windows, offsets, scales, summed=summed)
    shape = (0,) if offsets is None else offsets.shape
    floats = qkv.new_empty(shape, dtype=torch.float32), qkv.new_empty(rest, dtype=torch.float32)
    return torch.empty_like(qkv, memory_format=torch.contiguous_format), *floats


def _remember(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    qkv, offsets, scales, biases, *ctx.rest = inputs
    ctx.save_for_backward(qkv, offsets, scales)
    ctx.biases = [bias.dtype for bias in biases]


def _backpropagate(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    qkv, offsets, scales = ctx.saved_tensors
    summed = len(ctx.biases) > 0
    slopes, by_offset, totals = _gradients(qkv, grad, offsets, scales, *ctx.rest, summed)
    by_scale, heads = None, qkv.shape[-2]
    if scales is not None:
        by_scale, totals = totals[:heads].to(scales.dtype), totals[heads:]
    by_bias = [x.to(dtype) for x, dtype in zip(totals.chunk(3), ctx.biases)] if summed else []
    by_offset = None if offsets is None else by_offset.to(offsets.dtype)
    return slopes, by_offset, by_scale, by_bias, None, None, None, None


window_attention.register_autograd(_backpropagate, setup_context=_remember)
