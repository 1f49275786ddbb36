"""What the page is told of one site: as much as fits, and what that is."""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from saccade.app.look.arrays import Blobs, Kind
from saccade.attention.look.glance import Glance, Keep
from saccade.attention.look.watching import sites
from saccade.attention.multihead import MultiHeadAttention

DENSE = 256  # positions up to which every weight is kept
EXACT_BYTES = 4_000_000  # up to which weights have 16 bits


@dataclass(frozen=True)
class Plan:
    """How much to keep of every look so that the whole stays within a budget."""

    keep: Keep
    budget: int
    weight_kind: Kind = "f16"
    notes: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, model: nn.Module, size: int, budget: int) -> "Plan":
        """For all sites of a model at inputs of so many positions."""
        heads = sum(
            site.heads if isinstance(site, MultiHeadAttention) else 1
            for site in sites(model).values()
        )
        cells = heads * size * size
        if size <= DENSE:
            exact = 2 * cells <= min(EXACT_BYTES, budget)
            notes = [] if exact else ["weights have 8 bits, an error of up to 0.004"]
            keep = Keep(dense=size, map_side=0, top=0)
            return cls(keep, budget, "f16" if exact else "u8", notes)
        # A map cell takes two bytes, a top key three; half is empty where no one sees the future.
        side = next((s for s in (256, 128, 64) if heads * s * s <= 0.4 * budget), 32)
        top = next((k for k in (8, 4, 2) if 3 * heads * size * k <= 0.5 * budget), 1)
        keep = Keep(dense=0, map_side=side, top=top, zoom=True)
        notes = [f"maps have at most {side} × {side} cells, and {top} keys of each row are kept"]
        return cls(keep, budget, notes=notes)


def site_entry(name: str, glance: Glance, plan: Plan, blobs: Blobs) -> dict[str, Any]:
    """Everything but the queries and keys, which are added as long as there is room."""
    first = {key: value[0] for key, value in glance.tensors().items()}
    kinds: dict[str, Kind] = {"entropy": "f16", "sink": "u8", "local": "u8", "received": "f16"}
    if "weights" in first:
        kinds = {"weights": plan.weight_kind, "entropy": "f16", "received": "f16"}
    elif "top_weights" in first:
        kinds |= {"top_weights": "u8", "top_places": "index"}
    else:
        kinds |= {"highest": "f16", "where": "index"}
    kinds |= {"mean_map": "u8", "max_map": "u8"}
    return {
        "name": name,
        "heads": glance.entropy.shape[1],
        "causal": glance.causal,
        "reach": glance.reach,
        "cell": list(glance.cell),
        "arrays": {key: blobs.add(first[key], kind) for key, kind in kinds.items() if key in first},
        "zoom": None,
    }


def add_zoom(
    entries: list[dict[str, Any]],
    glances: list[Glance],
    wanted: tuple[tuple[str, int], ...],
    room: int,
    blobs: Blobs,
) -> list[str]:
    """Queries and keys of the heads that were asked for, then of the sharpest while there is room.

    A head is sharp when its queries look at few keys: there the maps hide the most.
    """
    if all(glance.zoom is None for glance in glances):
        return []
    order = _sharpest_first(glances)
    names = [entry["name"] for entry in entries]
    asked = [(names.index(site), head) for site, head in wanted if site in names]
    chosen: dict[int, list[int]] = {}
    for site, head in dict.fromkeys([*asked, *order]):
        glance = glances[site]
        if glance.zoom is None or head >= entries[site]["heads"]:
            continue
        size = (glance.zoom.q[0, 0].numel() + glance.zoom.k[0, 0].numel()) * 2 * 4 // 3
        if size > room and (site, head) not in asked:
            break
        room -= size
        chosen.setdefault(site, []).append(head)
    for site, heads in chosen.items():
        entries[site]["zoom"] = _zoom(glances[site], sorted(heads), blobs)
    kept, every = sum(map(len, chosen.values())), sum(entry["heads"] for entry in entries)
    if kept == every:
        return []
    return [f"exact zoom is kept for {kept} of {every} heads; name others with --zoom SITE:HEAD"]


def _sharpest_first(glances: list[Glance]) -> list[tuple[int, int]]:
    """Sites and heads, those first whose queries look at few keys other than a sink."""
    sharpness = {
        (site, head): float(value)
        for site, glance in enumerate(glances)
        for head, value in enumerate((glance.highest * (1 - glance.sink))[0].mean(dim=-1).tolist())
    }
    return sorted(sharpness, key=lambda key: -sharpness[key])


def _zoom(glance: Glance, heads: list[int], blobs: Blobs) -> dict[str, Any]:
    zoom = glance.zoom
    assert zoom is not None
    assert zoom.lse is not None
    keys = torch.tensor(heads) // zoom.group
    return {
        "heads": heads,
        "scale": zoom.scale,
        "q": blobs.add(zoom.q[0, heads], "f16"),
        "k": blobs.add(zoom.k[0, keys], "f16"),
        "lse": blobs.add(zoom.lse[0, heads], "f32"),
    }
