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
    many positions to either side are near.
    """

    received: bool = True
    map_side: int = 256
    top: int = 8
    zoom: bool = False
    dense: int = 256
    sink: int = 1
    local: int = 8

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

    A query that may look nowhere has lse −∞, `where` −1 and zero else. `top_places` beyond what
    there is to see are −1.
    """

    lse: Float[Tensor, "B N T"]
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
        """All that is kept, by name, less the zoom."""
        held = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return {name: value for name, value in held.items() if isinstance(value, Tensor)}

    def row(self, index: int) -> "Glance":
        """One batch row, as a batch of one; what all rows share stays."""
        return self._each(lambda x: x[index : index + 1] if x.dim() > 1 and len(x) > 1 else x)

    def cpu(self) -> "Glance":
        """The same in main memory."""
        return self._each(Tensor.cpu)

    def _each(self, change: Callable[[Tensor], Tensor]) -> "Glance":
        zoom = None if self.zoom is None else _changed(self.zoom, change)
        return replace(_changed(self, change), zoom=zoom)

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
    return replace(glances[-1], **kept, cell=(1, 1), zoom=None, keys=keys)  # type: ignore[arg-type]


def half(view: View, lse: Float[Tensor, "B N T"]) -> View:
    """Queries and keys in half precision, log-sum-exp in single: exact zoom into any tile.

    A factor is moved from either to the scale: none overflows, and none is too small to be told.
    """
    (q, of_q), (k, of_k) = _fitted(view.q), _fitted(view.k)
    return replace(view, q=q, k=k, scale=view.scale * of_q * of_k, lse=lse.float())


def _fitted(x: Float[Tensor, "B N T K"]) -> tuple[Float[Tensor, "B N T K"], float]:
    peak = float(x.abs().max()) if x.numel() else 0.0
    factor = 2.0 ** (math.frexp(peak)[1] - 15)  # a power of two: no digit is lost
    return (x / factor).half(), factor


def tile(
    zoom: View, head: int, rows: slice, columns: slice, *, batch: int = 0
) -> Float[Tensor, "t s"]:
    """The exact weights of part of one head.

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
