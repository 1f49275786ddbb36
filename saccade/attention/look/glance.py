"""What is kept of one look: from a few numbers per query to every weight."""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TypeVar

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from saccade.attention import masks
from saccade.attention.look.view import View
from saccade.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Keep:
    """How much of each look to keep. Row statistics are always kept; the rest may be left out.

    `received` is the mass that falls on each key; `map_side` is the largest side of the mean and
    max maps; `top` is how many of each query's largest weights; `zoom` keeps queries, keys and
    log-sum-exp in half precision, from which any weight follows; `dense` keeps every weight where
    neither side is longer. `sink` counts the first keys that are held for a sink, and `local` how
    many positions to either side are near. `within` is the size of a batch that this is a row of:
    the cells of its maps are the batch's.
    """

    received: bool = True
    map_side: int = 256
    top: int = 8
    zoom: bool = False
    dense: int = 256
    sink: int = 1
    local: int = 8
    within: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        for name in ("map_side", "top", "dense", "sink", "local"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name}={getattr(self, name)} must be 0 (keep none) or more")

    def cell(self, size: int) -> int:
        """The side of a map's cell: the least power of two with which the map is small enough.

        size / cell ≤ map_side
        """
        cell = 1
        while self.map_side and cell * self.map_side < size:
            cell *= 2
        return cell

    def cells(self, queries: int, keys: int) -> tuple[int, int]:
        """Both sides of a map's cell."""
        return self.cell(max(queries, self.within[0])), self.cell(max(keys, self.within[1]))

    def holds(self, queries: int, keys: int) -> bool:
        """Whether every weight is kept."""
        return max(queries, keys, *self.within) <= self.dense


ROW_STATISTICS = ("lse", "entropy", "highest", "where", "sink", "local")
PER_QUERY = (*ROW_STATISTICS, "top_weights", "top_places", "weights")  # have a T
ROWS = Keep(received=False, map_side=0, top=0, dense=0)
BUNDLE = Keep(dense=0)


@dataclass(frozen=True, kw_only=True)
class Glance:
    """What one call of a site looked at; what was not kept is None.

        entropy = −Σₛ aₜₛ log aₜₛ        highest = maxₛ aₜₛ        where = argmaxₛ aₜₛ
        sink = Σ aₜₛ over the first keys        local = Σ aₜₛ over the near ones, |t − s| ≤ local
        received = Σₜ aₜₛ
        mean_map[a, b] = the mass that an average query of cell a gives to the keys of cell b
        max_map[a, b] = the largest weight in it

    A query that may look nowhere has lse −∞, `where` −1 and zero else; padding looks nowhere.
    `top_places` beyond what there is to see are −1. `spans` says where the tokens of each row begin
    and end, of the queries and of the keys; it is None where nothing is padding. The maps of a row
    begin at its first token. The lse of a model that shows its weights alone is not known.
    """

    lse: Float[Tensor, "B N T"] | None = None
    entropy: Float[Tensor, "B N T"]
    highest: Float[Tensor, "B N T"]
    where: Int[Tensor, "B N T"]
    sink: Float[Tensor, "B N T"]
    local: Float[Tensor, "B N T"]
    received: Float[Tensor, "B N S"] | None = None
    mean_map: Float[Tensor, "B N Gt Gs"] | None = None
    max_map: Float[Tensor, "B N Gt Gs"] | None = None
    cell: tuple[int, int] = (1, 1)
    top_weights: Float[Tensor, "B N T top"] | None = None
    top_places: Int[Tensor, "B N T top"] | None = None
    zoom: View | None = None
    weights: Float[Tensor, "B N T S"] | None = None
    spans: Int[Tensor, "B 2 2"] | None = None
    causal: bool = False
    reach: int | None = None
    keys: int = 0

    @property
    def rest(self) -> Float[Tensor, "B N T"] | None:
        """What each query looks at beside its top keys: 1 − Σ top_weights."""
        if self.top_weights is None:
            return None
        seen = (self.where >= 0).to(self.top_weights)
        return (seen - self.top_weights.sum(dim=-1)).clamp(min=0.0)

    def tensors(self) -> dict[str, Tensor]:
        """All that is kept of weights, by name, less the zoom."""
        held = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return {n: x for n, x in held.items() if isinstance(x, Tensor) and n != "spans"}

    def row(self, index: int) -> "Glance":
        """One batch row, as a batch of one; what all rows share stays."""
        return self._each(lambda x: x[index : index + 1] if x.dim() > 1 and len(x) > 1 else x)

    def unpadded(self, index: int) -> "Glance":
        """One batch row as if it had been alone: without what is padding."""
        own = self.row(index)
        if own.spans is None:
            return own
        (start, stop), (first, last) = own.spans[0].tolist()
        queries, keys, count = slice(start, stop), slice(first, last), last - first
        kept = {name: x[:, :, queries] for name, x in own.tensors().items() if name in PER_QUERY}
        for name in {"where", "top_places"} & kept.keys():
            kept[name] = torch.where(kept[name] >= 0, kept[name] - first, kept[name])
        widths = {"top_weights": slice(count), "top_places": slice(count), "weights": keys}
        kept |= {name: kept[name][..., width] for name, width in widths.items() if name in kept}
        down, across = (-(-size // cell) for size, cell in zip((stop - start, count), own.cell))
        for name, x in own.tensors().items():
            if name.endswith("_map"):
                kept[name] = x[:, :, :down, :across]
        received = None if own.received is None else own.received[:, :, keys]
        zoom = None if own.zoom is None else own.zoom.part(slice(None), queries, keys)
        return replace(own, **kept, received=received, zoom=zoom, spans=None, keys=count)  # type: ignore[arg-type]

    def cpu(self) -> "Glance":
        """The same in main memory."""
        return self._each(Tensor.cpu)

    def _each(self, change: Callable[[Tensor], Tensor]) -> "Glance":
        zoom = None if self.zoom is None else _changed(self.zoom, change)
        return replace(_changed(self, change), zoom=zoom)

    def rows(self, index: Int[Tensor, " R"]) -> "Glance":
        """Some batch rows, in this order."""
        return self._each(lambda x: x[index] if x.dim() > 1 else x)

    def narrowed(self, keys: int) -> "Glance":
        """The first keys alone: what lies beyond is padding, which nobody saw."""
        received = None if self.received is None else self.received[:, :, :keys]
        weights = None if self.weights is None else self.weights[:, :, :, :keys]
        return replace(self, received=received, weights=weights, keys=keys)


Holder = TypeVar("Holder", Glance, View)


def _changed(held: Holder, change: Callable[[Tensor], Tensor]) -> Holder:
    tensors = {entry.name: getattr(held, entry.name) for entry in fields(held)}
    return replace(held, **{n: change(x) for n, x in tensors.items() if isinstance(x, Tensor)})


def joined(glances: list[Glance]) -> Glance:
    """Looks of one site, one after another: their queries in a row, over as many keys as any saw.

    What an earlier look kept and a later one did not, as weights that have grown too long, is gone.
    """
    keys = max(glance.keys for glance in glances)
    kept: dict[str, Tensor | None] = {"mean_map": None, "max_map": None}
    for name in PER_QUERY:
        parts = [getattr(glance, name) for glance in glances]
        widest = max((p.shape[-1] for p in parts if p is not None), default=0)
        whole = all(part is not None for part in parts)
        if whole and parts[0].dim() == 4:  # top keys and weights: there were fewer to see at first
            fill = -1 if name == "top_places" else 0
            parts = [F.pad(p, (0, widest - p.shape[-1]), value=fill) for p in parts]
        kept[name] = torch.cat(parts, dim=2) if whole else None
    received = [F.pad(g.received, (0, keys - g.keys)) for g in glances if g.received is not None]
    kept["received"] = torch.stack(received).sum(dim=0) if len(received) == len(glances) else None
    spans = _joined_spans(glances, keys)
    return replace(glances[-1], **kept, cell=(1, 1), zoom=None, keys=keys, spans=spans)  # type: ignore[arg-type]


def _joined_spans(glances: list[Glance], keys: int) -> Int[Tensor, "B 2 2"] | None:
    """The tokens of looks one after another: the last knows the keys, the first the beginning."""
    first, last = glances[0].spans, glances[-1].spans
    if first is None and last is None:
        return None
    some = first if first is not None else last
    assert some is not None
    spans = some.clone()
    if last is not None and glances[-1].keys == keys:
        spans[:, 1] = last[:, 1]
    else:
        spans[:, 1, 1] = keys
    spans[:, 0, 0] = 0 if first is None else first[:, 0, 0]
    spans[:, 0, 1] = sum(glance.entropy.shape[2] for glance in glances)
    return spans


def half(view: View) -> View:
    """Queries and keys in half precision, from which any weight follows; the lse is yet to come.

    A factor is moved from either to the scale: none overflows, and none is too small to be told.
    A score is then wrong by at most d = |scale| Σᵢ |qᵢ kᵢ| / 1024, and with the log-sum-exp of the
    rounded scores, so that they sum to one, a weight a by a (1 − a) (exp 2d − 1): about d / 2.
    """
    (q, of_q), (k, of_k) = _fitted(view.q), _fitted(view.k)
    return replace(view, q=q, k=k, scale=view.scale * of_q * of_k, lse=None)


def _fitted(x: Float[Tensor, "B N T K"]) -> tuple[Float[Tensor, "B N T K"], float]:
    peak = float(x.abs().max()) if x.numel() else 0.0
    factor = 2.0 ** (math.frexp(peak)[1] - 15)  # a power of two: no digit is lost
    return (x / factor).half(), factor


def tile(
    zoom: View, head: int, rows: slice, columns: slice, *, batch: int = 0
) -> Float[Tensor, "t s"]:
    """The weights of part of one head, as exact as `half` leaves them; rows sum to one.

    aₜₛ = exp(scale · qₜ · kₛ + bias − lseₜ)
    """
    assert zoom.lse is not None
    _, _, queries, keys = zoom.shape
    q, k = zoom.q[batch, head, rows].float(), zoom.k[batch, head // zoom.group, columns].float()
    t = torch.arange(keys - queries, keys, device=q.device)[rows, None]
    apart = t - torch.arange(keys, device=q.device)[columns]
    allowed = apart.abs() <= (keys if zoom.reach is None else zoom.reach)
    if zoom.causal:
        allowed &= apart >= 0
    mask, bias = (
        None if side is None else side.expand(zoom.shape)[batch, head, rows, columns][None, None]
        for side in (zoom.mask, zoom.bias)
    )
    part = View(
        q[None, None],
        k[None, None],
        zoom.scale,
        mask=masks.both(allowed[None, None], mask),
        bias=bias,
        softcap=zoom.softcap,
    )
    lse = zoom.lse[batch, head, rows, None]
    return (part.scores()[0, 0] - lse.masked_fill(lse == -torch.inf, torch.inf)).exp()
