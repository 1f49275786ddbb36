"""A look with stock kernels on any device: a block of scores at a time, never all T×S of a head.

With the log-sum-exp known, a block's log-weights are one matrix product, and every statistic is
a reduction of them while they lie in the cache. Short heads share a block, long ones are cut
between queries. Logarithms are to base 2, whose exponential costs a third of the other. Two facts
keep the reductions few. A query's `top` largest weights lie in the `top` groups of keys with the
largest maxima, so that only those are searched; groups take every m-th key, because maxima across
rows of memory are the fastest. And a map is reduced over its queries first, for the same reason.

The choices of V and dO that make a fused kernel give some of the same statistics (V = one-hot
buckets, dO = 1) cost four times this pass together: docs/looking.md has the figures.
"""

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from jaxtyping import Float, Shaped
from torch import Tensor

from saccade.attention.kernels.look.bands import Bands
from saccade.attention.kernels.look.dense import rows_in_cells
from saccade.attention.kernels.look.largest import GroupShape, largest
from saccade.attention.look.glance import Glance, Keep
from saccade.attention.look.view import UNSEEN, View

BLOCK_BYTES = {"cpu": 1 << 20, "other": 1 << 27}  # near enough; enough to fill a GPU
WORTH_THREADS = 1 << 20  # scores; fewer are left to the threads of each operation
CHUNKS = 4  # parts of a long head that may run at once
STRIP = 64  # queries whose near keys are summed together
HALVED = 32  # keys of a cell from which on they are reduced at once
LOG2E, LN2 = math.log2(math.e), math.log(2)


def observe(view: View, keep: Keep) -> Glance:
    """What `dense.observe` finds in the weights; they are held only if they are to be kept."""
    found = _empty(view, keep)
    # Apart by chunks until the end: the order of a sum does not depend on who comes first.
    chunks = (
        found.entropy.new_zeros(*view.shape[:2], CHUNKS, view.shape[3]) if keep.received else None
    )
    work = _Work(view, keep, found, chunks, Bands(view))
    size, cores = math.prod(view.shape), torch.get_num_threads()
    shared = view.q.device.type == "cpu" and cores > 1 and size >= WORTH_THREADS
    parts = list(_parts(view, work.found, 2 * cores if shared else 1)) if size else []
    if shared and len(parts) > 1:
        _share(parts, work, cores)
    else:
        for part in parts:
            _look_at(part, work)
    return _finished(work)


@dataclass(frozen=True)
class _Work:
    """What is asked, and where the answer goes."""

    view: View
    keep: Keep
    found: Glance
    received: Float[Tensor, "B N chunks S"] | None
    bands: Bands


@dataclass(frozen=True)
class _HeadPart:
    """Some heads, counted through the batch, and a chunk of their queries."""

    heads: range
    rows: range
    chunk: int


def _parts(view: View, found: Glance, least: int) -> Iterator[_HeadPart]:
    """Whole heads, several together where they are short; chunks of a head where it is long."""
    batch, heads, queries, keys = view.shape
    count, together = batch * heads, _scores_of_block(view) // (queries * keys)
    if together:
        together = max(1, min(together, count // least))
        for n in range(0, count, together):
            yield _HeadPart(range(n, min(n + together, count)), range(queries), 0)
        return
    long = -(-queries // CHUNKS)
    long += -long % found.cell[0]
    for n in range(count):
        for chunk, start in enumerate(range(0, queries, long)):
            yield _HeadPart(range(n, n + 1), range(start, min(start + long, queries)), chunk)


def _scores_of_block(view: View) -> int:
    return BLOCK_BYTES["cpu" if view.q.device.type == "cpu" else "other"] // 4


def _share(parts: list[_HeadPart], work: _Work, cores: int) -> None:
    """Parts in parallel, each on one core: every operation is short, and to split it takes longer.

    torch keeps a number of threads for each thread and another for all, which is put back.
    """
    inference = torch.is_inference_mode_enabled()

    def alone(part: _HeadPart) -> None:
        torch.set_num_threads(1)
        with torch.inference_mode(inference), torch.no_grad():
            _look_at(part, work)

    try:
        with ThreadPoolExecutor(cores) as pool:
            list(pool.map(alone, parts))
    finally:
        torch.set_num_threads(cores)


def _look_at(part: _HeadPart, work: _Work) -> None:
    """The queries of a part, a block at a time."""
    view, keep, (high, wide) = work.view, work.keep, work.found.cell
    keys, heads = view.shape[3], _Heads(view, part.heads)
    fit = _scores_of_block(view) // (len(part.heads) * keys)
    rows = min(len(part.rows), max(1, fit // high) * high)
    shape = GroupShape.of(keys, max(keep.top, 1), wide)
    buffers = _BlockBuffers(view, len(part.heads) * rows * (keys + shape.unit))
    for start in part.rows[::rows]:
        some = range(start, min(start + rows, part.rows.stop))
        block = _block(heads, part, some, shape, work.bands, buffers)
        if block.logs.numel():
            _look(block, buffers.weights(block.logs), work)


@dataclass(frozen=True)
class _Block:
    """Some queries of some heads, and the keys that they might see."""

    part: _HeadPart
    rows: range
    first: int  # key
    position: int  # of the first query among the keys
    group: int
    logs: Float[Tensor, "h t s"]  # log₂ of weights; UNSEEN where none may look and past the end
    lse: Float[Tensor, "h t"]

    def of(self, found: Shaped[Tensor, "B N T ..."]) -> Shaped[Tensor, "h t ..."]:
        """Its place in what is found."""
        heads, rows = self.part.heads, self.rows
        return found.flatten(0, 1)[heads.start : heads.stop, rows.start : rows.stop]


def _block(
    heads: "_Heads",
    part: _HeadPart,
    rows: range,
    shape: GroupShape,
    bands: Bands,
    buffers: "_BlockBuffers",
) -> _Block:
    view = heads.view
    _, _, queries, keys = view.shape
    position = keys - queries + rows.start
    first, last = 0, keys
    if view.causal:
        last = max(0, keys - queries + rows.stop)
    if view.reach is not None:
        first = min(max(0, position - view.reach), last) // shape.unit * shape.unit
        last = max(first, min(last, keys - queries + rows.stop + view.reach))
    logs = buffers.logs(len(part.heads), len(rows), last - first, shape.unit)
    scores = logs[..., : last - first]
    heads.score(slice(rows.start, rows.stop), slice(first, last), scores)
    if view.causal:  # only the square at the diagonal hides anything: its upper triangle
        edge = scores[..., max(0, position - first + 1) :]
        edge += bands.outside(edge.shape[1:], max(1, first - position), None, 0)
    if view.reach is not None:
        scores += bands.outside(scores.shape[1:], first - position, -view.reach, view.reach)
    if not (view.bias is view.mask is view.reach is None):
        scores.clamp_(min=UNSEEN)  # what is hidden twice, or by −∞
    if view.lse is not None:
        lse = heads.side(view.lse[..., None])[:, rows.start : rows.stop, 0].to(scores.dtype)
    else:
        lse = view.normaliser(scores[None], heads=heads.numbers)[0]
    # Kernels say 0, ±∞, NaN or log Σ exp of a dtype's lowest number of a query that sees nothing.
    scores -= lse.masked_fill(~(lse.abs() < -UNSEEN / 2), 0.0)[..., None]
    scores *= LOG2E  # only now: large scores would be rounded twice
    return _Block(part, rows, first, position, shape.size, logs, lse)


class _Heads:
    """Some heads of a view, counted through the batch."""

    def __init__(self, view: View, heads: range) -> None:
        self.view = view
        every = torch.arange(heads.start, heads.stop, device=view.q.device)
        self.rows, self.numbers = every // view.shape[1], every % view.shape[1]
        self.one = (heads.start // view.shape[1], heads.start % view.shape[1])
        self.keys = self.side(view.k, view.group).to(view.precision)

    def side(self, x: Tensor, group: int = 1) -> Shaped[Tensor, "h t s"]:
        """Theirs of what is there for each head, for some or for all; one head's is not copied."""
        b, n = len(x) - 1, x.shape[1] - 1
        if len(self.rows) == 1:
            return x[min(self.one[0], b), min(self.one[1] // group, n)][None]
        return x[self.rows.clamp(max=b), (self.numbers // group).clamp(max=n)]

    def score(self, rows: slice, columns: slice, scores: Float[Tensor, "h t s"]) -> None:
        """Fill in scores of some queries and keys; being causal or near is left to others."""
        view = self.view
        q = self.side(view.q[:, :, rows]).to(scores.dtype) * view.scale
        torch.bmm(q, self.keys[:, columns].mT, out=scores)
        if view.softcap is not None:
            scores.div_(view.softcap).tanh_().mul_(view.softcap)
        for side in (view.bias, view.mask):
            if side is None:
                continue
            side = side[:, :, rows if side.shape[2] > 1 else slice(None)]
            side = self.side(side[..., columns if side.shape[3] > 1 else slice(None)])
            # To add is twenty times as fast as to fill in by a mask.
            scores += (side.to(scores.dtype) - 1) * -UNSEEN if side.dtype == torch.bool else side


class _BlockBuffers:
    """Memory for one block and its exponential, used again and again: fresh pages are slow."""

    def __init__(self, view: View, size: int) -> None:
        self._logs = torch.empty(size, device=view.q.device, dtype=view.precision)
        self._weights = torch.empty_like(self._logs)

    def logs(self, heads: int, rows: int, columns: int, unit: int) -> Float[Tensor, "h t s"]:
        """Unfilled but for what is added to make whole groups."""
        whole = columns + -columns % unit
        logs = self._logs[: heads * rows * whole].view(heads, rows, whole)
        if whole > columns:
            logs[..., columns:] = UNSEEN
        return logs

    def weights(self, logs: Float[Tensor, "h t s"]) -> Float[Tensor, "h t s"]:
        return torch.exp2(logs, out=self._weights[: logs.numel()].view_as(logs))


def _empty(view: View, keep: Keep) -> Glance:
    """A glance of nothing yet, to be filled block by block.

    Until it is finished, `mean_map` is a sum, and maps as fine as the weights are these.
    """
    batch, heads, queries, keys = view.shape
    some = torch.zeros(1, device=view.q.device, dtype=view.precision)

    def zeros(*shape: int) -> Tensor:
        return some.new_zeros(batch, heads, *shape)

    cell = keep.cells(queries, keys)
    maps = -(-queries // cell[0]), -(-keys // cell[1])
    many, fine = min(keep.top, keys), keep.map_side > 0 and cell == (1, 1)
    return Glance(
        lse=zeros(queries) - torch.inf,
        entropy=zeros(queries),
        highest=zeros(queries),
        where=zeros(queries).long() - 1,
        sink=zeros(queries),
        local=zeros(queries),
        mean_map=zeros(*maps) if keep.map_side and not fine else None,
        max_map=zeros(*maps) if keep.map_side and not fine else None,
        cell=cell,
        top_weights=zeros(queries, many) if keep.top else None,
        top_places=zeros(queries, many).long() - 1 if keep.top else None,
        weights=zeros(queries, keys) if fine or keep.holds(queries, keys) else None,
        causal=view.causal,
        reach=view.reach,
        keys=keys,
    )


def _finished(work: _Work) -> Glance:
    found, keep, queries = work.found, work.keep, work.found.where.shape[2]
    weights = found.weights if keep.holds(queries, found.keys) else None
    received = None if work.received is None else work.received.sum(dim=2)
    made = replace(found, received=received, weights=weights)
    if keep.map_side and found.mean_map is None:
        return replace(made, mean_map=found.weights, max_map=found.weights)
    if found.mean_map is not None:
        many = rows_in_cells(queries, found.cell[0], like=found.mean_map)
        found.mean_map.div_(many[:, None])
    return made


def _look(block: _Block, weights: Float[Tensor, "h t s"], work: _Work) -> None:
    """Reduce one block, in as few passes over it as there are things to know."""
    keep, found, logs, lse = work.keep, work.found, block.logs, block.lse
    if found.weights is not None and work.view.sink is None:
        lse = _exact(weights, logs, lse)
    best, places = largest(logs, max(keep.top, 1), block.group)  # (h, t, many)
    blind = best[..., 0] <= UNSEEN / 2
    places = (block.first + places).masked_fill(best <= UNSEEN / 2, -1)
    best = best.exp2()
    assert found.lse is not None
    block.of(found.lse)[:] = lse.masked_fill(blind, -torch.inf)
    block.of(found.highest)[:] = best[..., 0]
    block.of(found.where)[:] = places[..., 0]
    block.of(found.sink)[:] = weights[..., : max(0, keep.sink - block.first)].sum(dim=-1)
    block.of(found.local)[:] = _near(weights, block, keep.local, work.bands)
    if found.top_weights is not None and found.top_places is not None:
        many = min(best.shape[-1], found.top_places.shape[-1])  # groups are filled up past the end
        block.of(found.top_weights)[..., :many] = best[..., :many]
        block.of(found.top_places)[..., :many] = places[..., :many]
    columns = slice(block.first, min(block.first + logs.shape[-1], found.keys))
    seen = weights[..., : columns.stop - columns.start]
    if work.received is not None:
        heads = slice(block.part.heads.start, block.part.heads.stop)
        work.received.flatten(0, 1)[heads, block.part.chunk, columns] += seen.sum(dim=1)
    if found.weights is not None:
        block.of(found.weights)[..., columns] = seen
    _map(block, weights, found)
    # Last, because the logs are overwritten: −ln 2 · Σ a log₂ a.
    block.of(found.entropy)[:] = (-LN2 * logs.mul_(weights).sum(dim=-1)).clamp(min=0.0) + 0.0


def _exact(
    weights: Float[Tensor, "h t s"], logs: Float[Tensor, "h t s"], lse: Float[Tensor, "h t"]
) -> Float[Tensor, "h t"]:
    """Let weights sum to one, whatever the kernel has rounded; the log-sum-exp of that."""
    total = weights.sum(dim=-1, keepdim=True)
    total.masked_fill_(total == 0, 1.0)
    weights /= total
    logs -= total.log2()
    return lse + total[..., 0].log()


def _near(
    weights: Float[Tensor, "h t s"], block: _Block, local: int, bands: Bands
) -> Float[Tensor, "h t"]:
    """Σ of the weights at most `local` from the diagonal: only a strip along it is read."""
    _, rows, size = weights.shape
    sums: list[Tensor] = []
    for start in range(0, rows, STRIP):
        some = min(STRIP, rows - start)
        place = block.position - block.first + start  # of the first query among the block's keys
        low, high = max(0, place - local), max(0, min(size, place + some + local))
        strip = weights[:, start : start + some, low : max(low, high)]
        near = bands.inside(strip.shape[1:], low - place, local)
        sums.append((strip * near).sum(dim=-1))
    return torch.cat(sums, dim=-1)


def _map(block: _Block, weights: Float[Tensor, "h t s"], found: Glance) -> None:
    """Blocks hold whole cells, so each fills its rows of the maps."""
    if found.mean_map is None or found.max_map is None:
        return
    high, wide = found.cell
    short, down = -len(block.rows) % high, block.rows.start // high
    heads = slice(block.part.heads.start, block.part.heads.stop)
    for result, values in ((found.mean_map, weights), (found.max_map, block.logs)):
        sums = values is weights
        cells = F.pad(values, (0, 0, 0, short), value=0.0 if sums else UNSEEN) if short else values
        rows = cells.unflatten(1, (-1, high))
        cells = _across(rows.sum(dim=2) if sums else rows.amax(dim=2), wide, sums=sums)
        cells = cells if sums else cells.exp2()
        place = result.flatten(0, 1)[heads, down : down + cells.shape[1], block.first // wide :]
        place[..., : cells.shape[2]] = cells[..., : place.shape[2]]


def _across(cells: Float[Tensor, "h g s"], wide: int, *, sums: bool) -> Float[Tensor, "h g c"]:
    """Reduce neighbouring keys; torch is slow at few, which are taken two by two."""
    while 1 < wide < HALVED:
        even, odd = cells[..., ::2], cells[..., 1::2]
        cells, wide = even + odd if sums else torch.maximum(even, odd), wide // 2
    if wide == 1:
        return cells
    parts = cells.unflatten(2, (-1, wide))
    return parts.sum(dim=3) if sums else parts.amax(dim=3)
