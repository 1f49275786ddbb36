"""A look beside the fused kernel, on a GPU: the statistics of weights that are never stored.

Two passes over the scores, as tiles in the tensor cores. Along the rows (`tiles_rows`): entropy,
the largest weight, sink and local mass, and which quads of keys the top is in (`tiles_sort`);
the few keys of these are then scored once more. Along the keys (`tiles_keys`): the
mass received, and the maps. Memory grows with T + S, and the same input gives the same bits.
"""
# Triton's language is not Python's: its functions have no types that a checker could follow.
# pyright: basic, reportArgumentType=false, reportCallIssue=false

import torch
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

from saccade.attention.kernels.look.tiles_keys import KeyStatistics, look_along_keys
from saccade.attention.kernels.look.tiles_rows import (
    RowStatistics,
    look_along_rows,
    look_at_top,
    normalise,
)
from saccade.attention.kernels.look.tiles_scores import Sight, sight
from saccade.attention.look.glance import Glance, Keep
from saccade.attention.look.view import View
from saccade.errors import ConfigError

MOST = 16  # top keys for which the sorting networks are built
LONG = 32768  # keys from which on sorting half as often outweighs scoring twice as many again

# Found by trial on an H200: registers are capped so that several programs share a multiprocessor,
# one of which takes exponentials while the others wait for their products.
ALONG_ROWS = {"ROWS": 64, "num_warps": 4, "num_stages": 2, "maxnreg": 168}
ALONG_KEYS = {"KEYS": 64, "COUNT": 128, "num_warps": 4, "num_stages": 3, "maxnreg": 168}
AT_TOP = {"ROWS": 1, "num_warps": 1}
SHARED = 200_000  # bytes that tiles on their way may take in a multiprocessor


def observe(view: View, keep: Keep) -> Glance:
    """Everything `Glance` defines but the zoom and the weights, in memory linear in T and S."""
    if keep.top > MOST:
        raise ConfigError(f"top={keep.top} is more than the {MOST} that fit beside a fused kernel")
    seen = sight(view)
    lse = _normalised(view, seen) if view.lse is None else view.lse.contiguous()
    rows, top = _rows(view, seen, lse, keep)
    return Glance(
        lse=rows.lse,
        entropy=rows.entropy,
        highest=rows.highest,
        where=rows.where,
        sink=rows.sink,
        local=rows.local,
        causal=view.causal,
        reach=view.reach,
        keys=view.shape[3],
        **top,
        **_columns(view, seen, rows.shift, keep),
    )


def _grid(view: View, size: int, block: int) -> tuple[int, int]:
    return -(-size // block), view.shape[0] * view.shape[1]


def _fitting(settings: dict[str, int], seen: Sight, tiles: int = 1) -> dict[str, int]:
    """The same with fewer tiles on their way, where heads are so wide that they would not fit."""
    row = seen.K.value * seen.q.element_size()
    ahead = (SHARED - 64 * row) // (128 * row * tiles)
    return settings | {"num_stages": max(1, min(settings["num_stages"], ahead))}


def _normalised(view: View, seen: Sight) -> Float[Tensor, "B N T"]:
    lse = torch.empty(view.shape[:3], dtype=torch.float32, device=view.q.device)
    grid = _grid(view, view.shape[2], ALONG_ROWS["ROWS"])
    normalise[grid](seen, lse, view.sink, **_fitting(ALONG_ROWS, seen))
    return lse


def _rows(
    view: View, seen: Sight, lse: Tensor, keep: Keep
) -> tuple[RowStatistics, dict[str, Tensor]]:
    queries, keys = view.shape[2:]
    depth = 1 if not keep.top else 8 if keep.top <= 8 else 16
    made = torch.empty((6, *view.shape[:3]), dtype=torch.float32, device=view.q.device)
    where = torch.empty(view.shape[:3], dtype=torch.int64, device=view.q.device)
    quads = None if depth == 1 else where.new_empty((*where.shape, depth), dtype=torch.int32)
    out = RowStatistics(made[0], made[1], made[2], made[3], where, made[4], made[5], quads)
    narrow = seen.K.value * view.q.element_size() <= 256
    pair = 2 if depth > 1 and keys >= LONG and narrow else 1
    look_along_rows[_grid(view, queries, ALONG_ROWS["ROWS"])](
        seen,
        lse,
        out,
        keep.sink,
        keep.local,
        D=depth,
        PAIR=pair,
        **_fitting(ALONG_ROWS, seen, pair),
    )
    if depth == 1:
        return out, {}
    top = min(keep.top, keys)
    weights, places = made.new_empty((*where.shape, top)), where.new_empty((*where.shape, top))
    look_at_top[_grid(view, queries, AT_TOP["ROWS"])](
        seen, lse, out, weights, places, TOP=top, PAIR=pair, D=depth, **AT_TOP
    )
    return out, {"top_weights": weights, "top_places": places}


def _columns(view: View, seen: Sight, shift: Tensor, keep: Keep) -> dict[str, object]:
    if not (keep.received or keep.map_side):
        return {}
    batch, heads, queries, keys = view.shape
    down, across = keep.cells(queries, keys)
    high, wide = -(-queries // down), -(-keys // across)
    count = ALONG_KEYS["COUNT"]
    split = max(1, across // 16)  # columns that a warp leaves of each cell
    maps = shift.new_zeros((2, batch, heads, high, wide * split)) if keep.map_side else None
    within = count if maps is None else min(down, count)
    out = KeyStatistics(
        received=shift.new_empty((batch, heads, keys)) if keep.received else None,
        mean=None if maps is None else maps[0],
        highest=None if maps is None else maps[1],
        map_rows=high,
        map_columns=wide * split,
        DOWN=tl.constexpr(within),
        EVERY=tl.constexpr(max(1, down // count)),
        ACROSS=tl.constexpr(min(across, 16)),
        LANES=tl.constexpr(4 if within >= 8 else 1),
    )
    grid = _grid(view, keys, ALONG_KEYS["KEYS"])
    look_along_keys[grid](seen, shift, out, **_fitting(ALONG_KEYS, seen))
    found: dict[str, object] = {"received": out.received}
    if maps is not None:
        mean, highest = maps[0], maps[1]
        if split > 1:
            mean = mean.unflatten(3, (wide, split)).sum(dim=4)
            highest = highest.unflatten(3, (wide, split)).amax(dim=4)
        found |= {"mean_map": mean, "max_map": highest, "cell": (down, across)}
    return found
