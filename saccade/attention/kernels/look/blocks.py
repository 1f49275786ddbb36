"""A look with stock kernels on any device: a block of queries at a time, never all T×S.

With the log-sum-exp known, a block's log-weights are one matrix product, and every statistic is
a reduction of them while they lie in the cache. Logarithms are to base 2, whose exponential costs a
third of the other. Two facts keep the reductions few. A query's
largest weight is the largest of its cells' maxima; and its `top` largest weights lie in the `top`
cells with the largest maxima, so that only those are searched.

The choices of V and dO that make a fused kernel give some of the same statistics (V = one-hot
buckets, dO = 1) cost four times this pass together: docs/looking.md has the figures.
"""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from saccade.attention.kernels.look.dense import rows_in_cells
from saccade.attention.look.glance import Glance, Keep
from saccade.attention.look.view import UNSEEN, View

BLOCK_BYTES = {"cpu": 1 << 22, "other": 1 << 27}  # near enough; enough to fill a GPU
PART = 128  # values among which the largest are sought at once
WORTH_THREADS = 1 << 20  # scores of a head
LOG2E, LN2 = math.log2(math.e), math.log(2)
GROUP = 32  # keys whose maximum is taken together where no map asks for larger cells


def observe(view: View, keep: Keep) -> Glance:
    """What `dense.observe` finds in the weights, without the weights."""
    batch, heads, queries, keys = view.shape
    found = _empty(view, keep)
    each = [(b, n) for b in range(batch) for n in range(heads)]
    if view.q.device.type != "cpu" or len(each) == 1 or queries * keys < WORTH_THREADS:
        _look_at(each, view, keep, found)
    else:
        _share(each, lambda part: _look_at(part, view, keep, found))
    if found.mean_map is not None:
        found.mean_map.div_(rows_in_cells(queries, found.cell[0], like=found.mean_map)[:, None])
    return found


def _share(each: list[tuple[int, int]], look: Callable[[list[tuple[int, int]]], None]) -> None:
    """Heads in parallel, each on one core: every operation is short, and to split it takes longer.

    torch keeps a number of threads for each thread and another for all, which is put back.
    """
    cores, inference = torch.get_num_threads(), torch.is_inference_mode_enabled()

    def alone(part: list[tuple[int, int]]) -> None:
        torch.set_num_threads(1)
        with torch.inference_mode(inference), torch.no_grad():
            look(part)

    try:
        with ThreadPoolExecutor(cores) as pool:
            list(pool.map(alone, (each[i::cores] for i in range(cores))))
    finally:
        torch.set_num_threads(cores)


def _look_at(heads: list[tuple[int, int]], view: View, keep: Keep, found: Glance) -> None:
    """All queries of some heads, a block at a time."""
    _, _, queries, keys = view.shape
    size = BLOCK_BYTES["cpu" if view.q.device.type == "cpu" else "other"]
    rows = min(queries, max(1, size // (4 * max(keys, 1)) // found.cell[0]) * found.cell[0])
    group = _group(found)
    buffers = _BlockBuffers(view, rows * (keys + group))
    for b, n in heads:
        for start in range(0, queries, max(rows, 1)):
            part = slice(start, min(start + rows, queries))
            block = _block(view, b, n, part, group, buffers)
            if block.logs.numel():
                _look(block, buffers.weights(block.logs), keep, found)


@dataclass(frozen=True)
class _Block:
    """Some queries of one head, and the keys that they might see, in whole groups."""

    b: int
    n: int
    rows: slice
    first: int  # key
    position: int  # of the first query among the keys
    logs: Float[Tensor, "t s"]  # log₂ of each weight; UNSEEN where none may look, and past the end
    lse: Float[Tensor, " t"]


def _block(view: View, b: int, n: int, rows: slice, group: int, buffers: "_BlockBuffers") -> _Block:
    _, _, queries, keys = view.shape
    position = keys - queries + rows.start
    first, last = 0, keys
    if view.causal:
        last = max(0, keys - queries + rows.stop)
    if view.reach is not None:
        first = min(max(0, position - view.reach), last) // group * group
        last = max(first, min(last, keys - queries + rows.stop + view.reach))
    logs = buffers.logs(rows.stop - rows.start, last - first, group)
    scores = logs[:, : last - first]
    _score(view, b, n, rows, slice(first, last), scores)
    if view.causal:
        # Only the square at the diagonal hides anything: its upper triangle.
        edge = scores[:, max(0, position - first + 1) :]
        edge.masked_fill_(buffers.triangle(edge.shape, min(0, position - first + 1)), UNSEEN)
    if view.lse is not None:
        lse = view.lse[b, n, rows].to(scores.dtype)
    else:
        lse = view.normaliser(scores[None, None], heads=slice(n, n + 1))[0, 0]
    # Kernels say 0, ±∞, NaN or log Σ exp of a dtype's lowest number of a query that sees nothing.
    scores -= lse.masked_fill(~(lse.abs() < -UNSEEN / 2), 0.0)[:, None]
    scores *= LOG2E  # only now: large scores would be rounded twice
    return _Block(b, n, rows, first, position, logs, lse)


class _BlockBuffers:
    """Memory for one block and its exponential, used again and again: fresh pages are slow."""

    def __init__(self, view: View, size: int) -> None:
        self._logs = torch.empty(size, device=view.q.device, dtype=_precision(view))
        self._weights = torch.empty_like(self._logs)
        self._triangles: dict[tuple[int, int, int], Bool[Tensor, "t s"]] = {}

    def triangle(self, shape: torch.Size, diagonal: int) -> Bool[Tensor, "t s"]:
        """True on and above a diagonal; most blocks ask for the same."""
        key = (shape[0], shape[1], diagonal)
        if key not in self._triangles:
            some = torch.ones(shape, dtype=torch.bool, device=self._logs.device)
            self._triangles[key] = some.triu(diagonal)
        return self._triangles[key]

    def logs(self, rows: int, columns: int, group: int) -> Float[Tensor, "t s"]:
        """Unfilled but for what is added to make whole groups."""
        whole = columns + -columns % group
        logs = self._logs[: rows * whole].view(rows, whole)
        if whole > columns:
            logs[:, columns:] = UNSEEN
        return logs

    def weights(self, logs: Float[Tensor, "t s"]) -> Float[Tensor, "t s"]:
        return torch.exp2(logs, out=self._weights[: logs.numel()].view_as(logs))


def _score(
    view: View, b: int, n: int, rows: slice, columns: slice, scores: Float[Tensor, "t s"]
) -> None:
    """Fill in the scores of some queries and keys of one head; being causal is left to others."""
    q = view.q[b, n, rows].to(scores.dtype) * view.scale
    k = view.k[b, n // view.group, columns].to(scores.dtype)
    torch.mm(q, k.mT, out=scores)
    if view.softcap is not None:
        scores.div_(view.softcap).tanh_().mul_(view.softcap)
    if view.bias is not None:
        bias = view.bias.expand(view.shape)[b, n, rows, columns]
        scores += bias
        scores.masked_fill_(bias <= UNSEEN, UNSEEN)
    if view.mask is not None:
        scores.masked_fill_(~view.mask.expand(view.shape)[b, n, rows, columns], UNSEEN)
    if view.reach is not None:
        _, _, queries, keys = view.shape
        t = torch.arange(keys - queries, keys, device=scores.device)[rows, None]
        s = torch.arange(keys, device=scores.device)[columns]
        scores.masked_fill_((t - s).abs() > view.reach, UNSEEN)


def _empty(view: View, keep: Keep) -> Glance:
    """A glance of nothing yet, to be filled block by block; `mean_map` is a sum until the end."""
    batch, heads, queries, keys = view.shape
    some = torch.zeros(1, device=view.q.device, dtype=_precision(view))

    def zeros(*shape: int) -> Tensor:
        return some.new_zeros(batch, heads, *shape)

    cell = (keep.cell(queries), keep.cell(keys)) if keep.map_side else (1, 1)
    maps = -(-queries // cell[0]), -(-keys // cell[1])
    many = min(keep.top, keys)
    return Glance(
        lse=zeros(queries) - torch.inf,
        entropy=zeros(queries),
        highest=zeros(queries),
        where=zeros(queries).long() - 1,
        sink=zeros(queries),
        local=zeros(queries),
        received=zeros(keys) if keep.received else None,
        mean_map=zeros(*maps) if keep.map_side else None,
        max_map=zeros(*maps) if keep.map_side else None,
        cell=cell,
        top_weights=zeros(queries, many) if keep.top else None,
        top_places=zeros(queries, many).long() - 1 if keep.top else None,
        causal=view.causal,
        reach=view.reach,
        keys=keys,
    )


def _group(glance: Glance) -> int:
    """Keys whose maximum is taken together: a cell of the maps, if there are any."""
    return GROUP if glance.mean_map is None else glance.cell[1]


def _precision(view: View) -> torch.dtype:
    return torch.promote_types(view.q.dtype, torch.float32)


def _look(block: _Block, weights: Float[Tensor, "t s"], keep: Keep, found: Glance) -> None:
    """Reduce one block, in as few passes over it as there are things to know."""
    b, n, rows, logs, group = block.b, block.n, block.rows, block.logs, _group(found)
    maxima = logs.unflatten(1, (-1, group)).amax(dim=-1)  # (t, groups)
    best, groups = _best(maxima, min(max(keep.top, 1), maxima.shape[1]))  # (t, c)
    highest, best_group = best[:, 0], groups[:, 0]
    blind = highest <= UNSEEN / 2
    inside = _groups(logs, best_group[:, None], group).argmax(dim=-1)
    where = block.first + best_group * group + inside
    found.lse[b, n, rows] = block.lse.masked_fill(blind, -torch.inf)
    found.highest[b, n, rows] = highest.exp2()
    found.where[b, n, rows] = where.masked_fill(blind, -1)
    found.sink[b, n, rows] = weights[:, : max(0, keep.sink - block.first)].sum(dim=-1)
    found.local[b, n, rows] = _near(weights, block, keep.local)
    if found.received is not None:
        seen = found.received[b, n, block.first : block.first + logs.shape[1]]
        seen += weights.sum(dim=0)[: len(seen)]
    _map(block, weights, maxima, found)
    _top(block, groups, found)
    # Last, because the logs are overwritten: −ln 2 · Σ a log₂ a.
    found.entropy[b, n, rows] = (-LN2 * logs.mul_(weights).sum(dim=-1)).clamp(min=0.0)


def _groups(
    logs: Float[Tensor, "t s"], chosen: Int[Tensor, "t c"], group: int
) -> Float[Tensor, "t cg"]:
    """The log-weights of some groups of each query, side by side."""
    places = chosen[:, :, None] * group + torch.arange(group, device=logs.device)
    return logs.gather(1, places.flatten(1))


def _near(weights: Float[Tensor, "t s"], block: _Block, local: int) -> Float[Tensor, " t"]:
    """Σ of the weights at most `local` from the diagonal: only that strip is read."""
    rows, size = weights.shape
    start = max(0, block.position - local - block.first)
    stop = max(start, min(size, block.position + rows + local - block.first))
    t = torch.arange(block.position, block.position + rows, device=weights.device)[:, None]
    s = torch.arange(block.first + start, block.first + stop, device=weights.device)
    return (weights[:, start:stop] * ((t - s).abs() <= local)).sum(dim=-1)


def _map(
    block: _Block, weights: Float[Tensor, "t s"], maxima: Float[Tensor, "t g"], found: Glance
) -> None:
    """Blocks hold whole cells, so each fills its rows of the maps."""
    if found.mean_map is None or found.max_map is None:
        return
    high, wide = found.cell
    sums = weights.unflatten(1, (-1, wide)).sum(dim=-1)  # (t, groups)
    short = -len(sums) % high
    sums = F.pad(sums, (0, 0, 0, short)).unflatten(0, (-1, high)).sum(dim=1)
    peaks = F.pad(maxima, (0, 0, 0, short), value=UNSEEN).unflatten(0, (-1, high))
    down = slice(block.rows.start // high, block.rows.start // high + len(sums))
    across = slice(block.first // wide, block.first // wide + sums.shape[1])
    found.mean_map[block.b, block.n, down, across] = sums
    found.max_map[block.b, block.n, down, across] = peaks.amax(dim=1).exp2()


def _top(block: _Block, groups: Int[Tensor, "t c"], found: Glance) -> None:
    """The largest weights of the groups with the largest maxima: there are none larger."""
    if found.top_weights is None or found.top_places is None:
        return
    group = _group(found)
    logs = _groups(block.logs, groups, group)  # (t, c · group)
    best, index = _best(logs, min(found.top_weights.shape[-1], logs.shape[1]))
    places = block.first + groups.gather(1, index // group) * group
    many = slice(0, best.shape[1])
    found.top_weights[block.b, block.n, block.rows, many] = best.exp2()
    places = (places + index % group).masked_fill(best <= UNSEEN / 2, -1)
    found.top_places[block.b, block.n, block.rows, many] = places


def _best(
    values: Float[Tensor, "t s"], many: int
) -> tuple[Float[Tensor, "t many"], Int[Tensor, "t many"]]:
    """The largest of each row, in order.

    Part by part: torch's own selection takes three times as long for twice as many from 128 on.
    """
    size = values.shape[1]
    if many == 1:
        largest, index = values.max(dim=-1, keepdim=True)
        return largest, index
    if size <= PART or many > PART:
        found = values.topk(many)
        return found.values, found.indices
    parts = F.pad(values, (0, -size % PART), value=2 * UNSEEN).unflatten(1, (-1, PART)).topk(many)
    first = torch.arange(0, size, PART, device=values.device)[:, None]
    best, index = _best(parts.values.flatten(1), many)
    return best, (parts.indices + first).flatten(1).gather(1, index)
