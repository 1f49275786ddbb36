"""A look from weights that are there: short inputs, and scores that no fused kernel knows."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from saccade.attention import masks
from saccade.attention.look.glance import Glance, Keep


def observe(
    weights: Float[Tensor, "B N T S"],
    keep: Keep,
    *,
    lse: Float[Tensor, "B N T"] | None = None,
    causal: bool = False,
    reach: int | None = None,
) -> Glance:
    """Everything `Glance` defines, straight from its definitions."""
    queries, keys = weights.shape[2:]
    highest, where = weights.max(dim=-1) if keys else _nothing(weights)
    blind = highest == 0
    tiny = torch.finfo(weights.dtype).tiny
    near = masks.window(queries, keys, reach=keep.local, device=weights.device)
    return Glance(
        lse=None if lse is None else lse.masked_fill(blind, -torch.inf),
        # A tenth of the time of `xlogy`: the least number's logarithm is finite.
        entropy=-(weights.clamp(min=tiny).log_().mul_(weights).sum(dim=-1)).clamp(max=0.0) + 0.0,
        highest=highest,
        where=where.masked_fill(blind, -1),
        sink=weights[..., : keep.sink].sum(dim=-1),
        local=(weights * near).sum(dim=-1),
        received=weights.sum(dim=2) if keep.received else None,
        weights=weights if keep.holds(queries, keys) else None,
        causal=causal,
        reach=reach,
        keys=keys,
        **_maps(weights, keep),  # type: ignore[arg-type]
        **_top(weights, keep),  # type: ignore[arg-type]
    )


def _maps(weights: Float[Tensor, "B N T S"], keep: Keep) -> dict[str, object]:
    if not keep.map_side:
        return {}
    queries, keys = weights.shape[2:]
    down, across = keep.cells(queries, keys)
    padded = F.pad(weights, (0, -keys % across, 0, -queries % down))
    cells = padded.unflatten(3, (-1, across)).unflatten(
        2, (-1, down)
    )  # (B, N, Gt, down, Gs, across)
    sums = cells.sum(dim=(3, 5))
    return {
        "mean_map": sums / rows_in_cells(queries, down, like=sums)[:, None],
        "max_map": cells.amax(dim=(3, 5)),
        "cell": (down, across),
    }


def rows_in_cells(queries: int, down: int, *, like: Tensor) -> Float[Tensor, " Gt"]:
    """How many queries each cell holds: the last may be short."""
    starts = torch.arange(0, queries, down, device=like.device)
    return (queries - starts).clamp(max=down).to(like.dtype)


def _top(weights: Float[Tensor, "B N T S"], keep: Keep) -> dict[str, object]:
    if not keep.top:
        return {}
    many = min(keep.top, weights.shape[-1])
    top = weights.topk(many, dim=-1)
    places = top.indices.masked_fill(top.values == 0, -1)
    return {"top_weights": top.values, "top_places": places}


def _nothing(weights: Tensor) -> tuple[Tensor, Tensor]:
    zeros = weights.new_zeros(weights.shape[:3])
    return zeros, zeros.long()
