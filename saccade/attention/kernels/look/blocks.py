"""A look with stock kernels on any device: a block of scores at a time, never all T×S of a head.

With the log-sum-exp known, a block's log-weights are one matrix product, and every statistic is
a reduction of them while they lie in the cache. Short heads share a block, long ones are cut
between queries. The threads of torch share each operation. Logarithms are to base 2, whose
exponential costs a third of the other. Two facts keep the reductions few. A query's `top` largest
weights lie in the `top` groups of keys with the largest maxima, so that only those are searched;
groups take every m-th key, because maxima across rows of memory are the fastest. And a map is
reduced over its queries first, for the same reason.

The choices of V and dO that make a fused kernel give some of the same statistics (V = one-hot
buckets, dO = 1) cost four times this pass together: docs/looking.md has the figures.
"""

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Shaped
from torch import Tensor

from saccade.attention.kernels.look.bands import Bands
from saccade.attention.kernels.look.dense import rows_in_cells
from saccade.attention.kernels.look.largest import GroupShape, largest
from saccade.attention.look.glance import Glance, Keep
from saccade.attention.look.view import UNSEEN, View

BLOCK_BYTES = {"cpu": 4 << 20, "other": 1 << 27}  # near enough for one thread; to fill a GPU
MOST_THREADS = 4  # for which a block has room; more share it
LONG, CHUNKS = 512, 4  # so many queries, of which some see less, are cut in so many parts
HALVED = {1: 4, 2: 32}  # queries and keys of a cell from which on they are reduced at once
LOG2E, LN2 = math.log2(math.e), math.log(2)


def observe(view: View, keep: Keep) -> Glance:
    """What `dense.observe` finds in the weights; they are held only if they are to be kept."""
    batch, heads, queries, keys = view.shape
    found, bands = _Found(view, keep), Bands(view)
    if 0 in view.shape:
        return found.glance()
    room, every, (high, wide) = _scores_of_block(view), batch * heads, found.cell
    shape = GroupShape.of(keys, max(keep.top, 1), wide)
    long = LONG * max(1, torch.get_num_threads() // MOST_THREADS)  # many share no small parts
    cut = queries >= long and (view.causal or view.reach is not None)
    chunk = -(-queries // (CHUNKS * high)) * high if cut else queries
    parts = -(-every // max(1, room // (chunk * keys)))
    together = -(-every // parts)
    rows = min(chunk, max(1, room // (together * keys) // high) * high)
    buffers = BUFFERS.two(view, together * rows * (keys + -keys % shape.unit))
    for n in range(0, every, together):
        some = _Heads(view, range(n, min(n + together, every)), -keys % shape.unit)
        for start in range(0, queries, rows):
            between = range(start, min(start + rows, queries))
            block = _block(some, between, shape, bands, buffers[0])
            if block.logs.numel():
                found.put(block, _look(block, found, bands, buffers[1]))
    return found.glance()


def _scores_of_block(view: View) -> int:
    if view.q.device.type == "cpu":
        return BLOCK_BYTES["cpu"] * min(torch.get_num_threads(), MOST_THREADS) // 4
    return BLOCK_BYTES["other"] // 4


class BlockBuffers(threading.local):
    """Memory for a block and its exponential, used again and again: fresh pages are slow.

    On the CPU it outlives a look, for layer follows layer, unless rows are so long that even one
    line of a map's cells is more than a block should be.
    """

    def __init__(self) -> None:
        self._kept = torch.empty(0)

    def two(self, view: View, size: int) -> Float[Tensor, "2 scores"]:
        usual = view.q.device.type == "cpu" and view.precision == torch.float32
        if not usual or 4 * size > BLOCK_BYTES["cpu"] * MOST_THREADS:
            return torch.empty(2, size, device=view.q.device, dtype=view.precision)
        if self._kept.numel() < 2 * size:
            with torch.inference_mode(False):  # what is made in that mode stays in it
                self._kept = torch.empty(2 * size, device="cpu", dtype=torch.float32)
        return self._kept[: 2 * size].view(2, size)


BUFFERS = BlockBuffers()


class _Heads:
    """Some heads of a view, counted through the batch; `more` keys are there for nobody."""

    def __init__(self, view: View, heads: range, more: int) -> None:
        self.view, self.range = view, heads
        rows, self.first = divmod(heads.start, view.shape[1])
        self.row = rows if self.first + len(heads) <= view.shape[1] else None
        self.keys = F.pad(self.side(view.k, view.group).to(view.precision), (0, 0, 0, more))
        self.lse: Float[Tensor, "h t"] | None = None
        if view.lse is not None:
            self.lse = self.side(view.lse[..., None])[..., 0].to(view.precision)

    @property
    def numbers(self) -> Shaped[Tensor, " h"]:
        """Which head each is in its row of the batch."""
        every = torch.arange(self.range.start, self.range.stop, device=self.view.q.device)
        return every % self.view.shape[1]

    def side(self, x: Tensor, group: int = 1) -> Shaped[Tensor, "#h t s"]:
        """Theirs of what is there for each head, for some or for all; of one row not copied."""
        b, n = len(x) - 1, x.shape[1] - 1
        if self.row is not None and group == 1:
            own = x[min(self.row, b)]
            return own[self.first : self.first + len(self.range)] if n else own
        rows = torch.arange(self.range.start, self.range.stop, device=x.device)
        rows //= self.view.shape[1]
        return x[rows.clamp(max=b), (self.numbers // group).clamp(max=n)]

    def score(self, rows: slice, columns: slice, scores: Float[Tensor, "h t s"]) -> None:
        """Fill in scores of some queries and keys; being causal or near is left to others."""
        view = self.view
        q = self.side(view.q[:, :, rows]).to(scores.dtype) * view.scale
        torch.bmm(q, self.keys[:, columns].mT, out=scores)
        if view.softcap is not None:
            scores.div_(view.softcap).tanh_().mul_(view.softcap)
        scores = scores[..., : view.shape[3] - columns.start]
        for side in (view.bias, view.mask):
            if side is None:
                continue
            side = side[:, :, rows if side.shape[2] > 1 else slice(None)]
            side = self.side(side[..., columns if side.shape[3] > 1 else slice(None)])
            # To add is twenty times as fast as to fill in by a mask.
            scores += (side.to(scores.dtype) - 1) * -UNSEEN if side.dtype == torch.bool else side


@dataclass(frozen=True)
class _Block:
    """Some queries of some heads, and the keys that they might see."""

    heads: range
    rows: range
    first: int  # key
    position: int  # of the first query among the keys
    group: int
    logs: Float[Tensor, "h t s"]  # log₂ of weights; UNSEEN where none may look and past the end
    lse: Float[Tensor, "h t"]


def _block(
    heads: _Heads, rows: range, shape: GroupShape, bands: Bands, buffer: Float[Tensor, " scores"]
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
    last += (first - last) % shape.unit  # whole groups
    size = len(heads.range), len(rows), last - first
    scores = buffer[: math.prod(size)].view(size)
    heads.score(slice(rows.start, rows.stop), slice(first, last), scores)
    if view.causal:  # only the square at the diagonal hides anything: its upper triangle
        edge = scores[..., max(0, position - first + 1) :]
        edge += bands.outside(edge.shape[1:], max(1, first - position), None, 0)
    if view.reach is not None:
        scores += bands.outside(scores.shape[1:], first - position, -view.reach, view.reach)
    if last > keys:
        scores[..., keys - first :] = UNSEEN
    if not (view.bias is view.mask is view.reach is None):
        scores.clamp_(min=UNSEEN)  # what is hidden twice, or by −∞
    if heads.lse is not None:
        lse = heads.lse[:, rows.start : rows.stop]
    else:
        lse = view.normaliser(scores[None], heads=heads.numbers)[0]
    # Kernels say 0, ±∞, NaN or log Σ exp of a dtype's lowest number of a query that sees nothing.
    known = lse.masked_fill(~(lse.abs() < -UNSEEN / 2), 0.0)[..., None]
    torch.add(known * -LOG2E, scores, alpha=LOG2E, out=scores)
    return _Block(heads.range, rows, first, position, shape.size, scores, lse)


class _Found:
    """What is asked, and what blocks have found of it."""

    def __init__(self, view: View, keep: Keep) -> None:
        _, _, queries, keys = view.shape
        self.view, self.keep = view, keep
        self.cell = keep.cells(queries, keys)
        self.fine = keep.map_side > 0 and self.cell == (1, 1)  # maps are the weights
        self.holds = self.fine or keep.holds(queries, keys)
        self._held: dict[str, Tensor] | None = None

    def put(self, block: _Block, seen: dict[str, Tensor]) -> None:
        """Lay what was seen in a block where it belongs; in a lone one that is all."""
        batch, heads, queries, keys = self.view.shape
        whole = (len(block.heads), len(block.rows)) == (batch * heads, queries)
        if whole and block.first == 0 and block.logs.shape[2] >= keys:
            self._held = seen
            return
        self._held = self._held or self._blank()
        some, (high, wide) = slice(block.heads.start, block.heads.stop), self.cell
        rows, first, down = block.rows, block.first, block.rows.start // high
        for name, x in seen.items():
            own = self._held[name][some]
            if name == "received":
                own[:, first : first + x.shape[1]] += x
            elif name.endswith("_map"):
                across = first // wide
                own[:, down : down + x.shape[1], across : across + x.shape[2]] = x
            elif x.dim() == 3:
                start = first if name == "weights" else 0
                own[:, rows.start : rows.stop, start : start + x.shape[2]] = x
            else:
                own[:, rows.start : rows.stop] = x

    def _blank(self) -> dict[str, Tensor]:
        """A look at nothing."""
        view, keep = self.view, self.keep
        batch, heads, queries, keys = view.shape
        maps = tuple(-(-size // cell) for size, cell in zip((queries, keys), self.cell))
        top = queries, min(keep.top, keys)

        def full(
            *shape: int, value: float | int = 0, dtype: torch.dtype = view.precision
        ) -> Tensor:
            return torch.full((batch * heads, *shape), value, dtype=dtype, device=view.q.device)

        made = {name: full(queries) for name in ("entropy", "highest", "sink", "local")}
        made["lse"] = full(queries, value=-torch.inf)
        made["where"] = full(queries, value=-1, dtype=torch.long)
        if keep.top:
            made["top_weights"] = full(*top)
            made["top_places"] = full(*top, value=-1, dtype=torch.long)
        if keep.received:
            made["received"] = full(keys)
        if keep.map_side and not self.fine:
            made |= {"mean_map": full(*maps), "max_map": full(*maps)}
        return made | {"weights": full(queries, keys)} if self.holds else made

    def glance(self) -> Glance:
        """All of it."""
        view, keep, held = self.view, self.keep, self._held or self._blank()
        batch, heads, queries, keys = view.shape
        if self.fine:
            held["mean_map"] = held["max_map"] = held["weights"]
        elif keep.map_side:  # so far a sum
            many = rows_in_cells(queries, self.cell[0], like=held["mean_map"])
            held["mean_map"].div_(many[:, None])
        if not keep.holds(queries, keys):
            held.pop("weights", None)
        shaped = {name: x.unflatten(0, (batch, heads)) for name, x in held.items()}
        said = {"cell": self.cell, "causal": view.causal, "reach": view.reach, "keys": keys}
        return Glance(**shaped, **said)  # type: ignore[arg-type]


def _look(
    block: _Block, found: _Found, bands: Bands, buffer: Float[Tensor, " scores"]
) -> dict[str, Tensor]:
    """Reduce one block, in as few passes over it as there are things to know."""
    keep, logs, lse = found.keep, block.logs, block.lse
    weights = None if found.holds else buffer[: logs.numel()].view_as(logs)
    weights = torch.exp2(logs, out=weights)
    best, places = largest(logs, max(keep.top, 1), block.group)  # (h, t, many)
    entropy = -LN2 * logs.mul_(weights).sum(dim=-1)  # from here on the logs are free memory
    hidden = best <= UNSEEN / 2
    if found.view.sink is None:  # they sum to one, whatever the kernel has rounded
        total = weights.sum(dim=-1, keepdim=True)
        total.masked_fill_(total == 0, 1.0)
        weights /= total
        best -= total.log2()
        total = total[..., 0]
        lse, entropy = lse + total.log(), entropy / total + total.log()
    places = (places + block.first).masked_fill_(hidden, -1)
    best, keys = best.exp2_(), found.view.shape[3]
    seen = {
        "lse": lse.masked_fill(hidden[..., 0], -torch.inf),
        "entropy": entropy.clamp_(min=0.0),
        "highest": best[..., 0].clone(),
        "where": places[..., 0].clone(),
        "sink": weights[..., : max(0, keep.sink - block.first)].sum(dim=-1),
        "local": _near(weights, block, keep.local, bands),
    }
    if keep.top:  # groups are filled up past the end
        seen |= {"top_weights": best[..., :keys], "top_places": places[..., :keys]}
    if keep.map_side and not found.fine:
        seen |= _maps(block, weights, found.cell, keys)
    weights = weights[..., : keys - block.first]
    if keep.received:
        seen["received"] = weights.sum(dim=1)
    return seen | {"weights": weights.contiguous()} if found.holds else seen


def _near(
    weights: Float[Tensor, "h t s"], block: _Block, local: int, bands: Bands
) -> Float[Tensor, "h t"]:
    """Σ of the weights at most `local` from the diagonal: only a strip along it is read."""
    many, rows, size = weights.shape
    place = block.position - block.first  # of the first query among the block's keys
    start = min(max(0, local - place), rows)
    stop = max(start, min(rows, size - local - place))
    sums = [_at_edge(weights, range(start), place, local, bands)]
    if stop > start:  # all of their near keys are there: a strip with a stride of its own
        inner = (many, stop - start, 2 * local + 1), (rows * size, size + 1, 1)
        offset = weights.storage_offset() + start * (size + 1) + place - local
        sums.append(weights.as_strided(*inner, offset).sum(dim=-1))
    sums.append(_at_edge(weights, range(stop, rows), place, local, bands))
    return torch.cat(sums, dim=-1)


def _at_edge(
    weights: Float[Tensor, "h t s"], rows: range, place: int, local: int, bands: Bands
) -> Float[Tensor, "h _"]:
    """The same of queries of which some near keys may lack."""
    place += rows.start
    low = max(0, place - local)
    high = max(low, min(weights.shape[2], place + len(rows) + local))
    strip = weights[:, rows.start : rows.stop, low:high]
    return (strip * bands.inside(strip.shape[1:], low - place, local)).sum(dim=-1)


def _maps(
    block: _Block, weights: Float[Tensor, "h t s"], cell: tuple[int, int], keys: int
) -> dict[str, Tensor]:
    """Blocks hold whole cells: their sums, to be divided by the queries, and their maxima."""
    high, wide = cell
    short, across = -len(block.rows) % high, -(-(keys - block.first) // wide)
    padded = F.pad(weights, (0, 0, 0, short)) if short else weights
    ways = {"mean_map": (torch.add, torch.sum), "max_map": (torch.maximum, torch.amax)}
    made: dict[str, Tensor] = {}
    for name, (pair, whole) in ways.items():
        rows = _folded(padded, 1, high, pair, whole, block.logs.flatten())
        cells = _folded(rows, 2, wide, pair, whole)[..., :across]
        made[name] = cells.clone() if wide == 1 else cells.contiguous()
    return made


def _folded(
    x: Float[Tensor, "h t s"],
    dim: int,
    many: int,
    pair: Callable[..., Tensor],
    whole: Callable[..., Tensor],
    free: Float[Tensor, " scores"] | None = None,
) -> Float[Tensor, "h _ _"]:
    """Reduce so many neighbours, in `free` memory; torch is slow at few: these go two by two."""
    while 1 < many < HALVED[dim]:
        one, other = x.unflatten(dim, (-1, 2)).unbind(dim + 1)
        out = None
        if free is not None and len(free) >= one.numel():
            out, free = free[: one.numel()].view(one.shape), free[one.numel() :]
        x, many = pair(one, other, out=out), many // 2
    return x if many == 1 else whole(x.unflatten(dim, (-1, many)), dim=dim + 1)
