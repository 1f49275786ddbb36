"""What the page is told of one site: as much as fits, and what that is."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import nn

from saccade.app.look.arrays import Blobs, Kind
from saccade.app.look.document import SiteEntry, ZoomEntry
from saccade.attention.axes import Axis
from saccade.attention.look.glance import Glance, Keep
from saccade.attention.look.watching import head_counts
from saccade.tasks.teacher_forced import TeacherForced

DENSE = 256  # positions up to which every weight is kept
EXACT_BYTES = 4_000_000  # up to which weights have 16 bits
EIGHT_BITS = "weights have 8 bits, an error of up to 0.004"


@dataclass(frozen=True)
class SiteBudget:
    """How much to keep at every site so that all stay within so many characters."""

    keep: Keep
    size: int
    weight_kind: Kind = "f16"
    note: str | None = None

    @classmethod
    def of(cls, model: nn.Module, length: int, size: int) -> "SiteBudget":
        """For all sites of a model at inputs of so many positions."""
        heads = sum(head_counts(model).values())
        if length <= DENSE:
            keep = Keep(dense=length, map_side=0, top=0)
            if 2 * heads * length**2 <= min(EXACT_BYTES, size):
                return cls(keep, size)
            return cls(keep, size, "u8", EIGHT_BITS)
        # A map cell takes two bytes, a top key three; half is empty where no one sees the future.
        side = next((s for s in (256, 128, 64) if heads * s * s <= 0.4 * size), 32)
        top = next((k for k in (8, 4, 2) if 3 * heads * length * k <= 0.5 * size), 1)
        keep = Keep(dense=0, map_side=side, top=top, zoom=True)
        note = f"maps have at most {side} × {side} cells, and {top} keys of each row are kept"
        return cls(keep, size, note=note)


def text_sites(
    seen: TeacherForced, budget: SiteBudget, zoom: Sequence[tuple[str, int]], blobs: Blobs
) -> list[SiteEntry]:
    """Every site of a text, with exact heads while there is room for them."""
    before = blobs.size
    entries = site_entries(seen.sites, seen.axes, budget.weight_kind, blobs)
    if budget.note:
        blobs.note(budget.note)
    left = budget.size - (blobs.size - before)
    return with_zoom(entries, list(seen.sites.values()), zoom, left, blobs)


def sides(rows: Axis, columns: Axis) -> tuple[str, str]:
    """The axes' names; what is being written looks at `past`, which begins one token earlier."""
    past = rows == columns and rows.name == "target"
    return rows.name, "past" if past else columns.name


def site_entries(
    glances: dict[str, Glance], axes: dict[str, tuple[Axis, Axis]], weight_kind: Kind, blobs: Blobs
) -> list[SiteEntry]:
    """Sites between the axes that were watched."""
    return [
        site_entry(name, glance, sides(*axes[name]), weight_kind, blobs)
        for name, glance in glances.items()
    ]


def site_entry(
    name: str, glance: Glance, axes: tuple[str, str], weight_kind: Kind, blobs: Blobs
) -> SiteEntry:
    """Everything but the queries and keys, which are added as long as there is room."""
    first = {key: value[0] for key, value in glance.tensors().items()}
    kinds: dict[str, Kind] = {"entropy": "f16", "sink": "u8", "local": "u8", "received": "f16"}
    if "weights" in first:
        kinds = {"weights": weight_kind, "entropy": "f16", "received": "f16"}
    elif "top_weights" in first:
        kinds |= {"top_weights": "u8", "top_places": "index"}
    else:
        kinds |= {"highest": "f16", "where": "index"}
    kinds |= {"mean_map": "u8", "max_map": "u8"}
    return SiteEntry(
        name=name,
        rows=axes[0],
        columns=axes[1],
        heads=glance.entropy.shape[1],
        causal=glance.causal,
        reach=glance.reach,
        cell=list(glance.cell),
        arrays={key: blobs.add(first[key], kind) for key, kind in kinds.items() if key in first},
    )


def with_zoom(
    entries: list[SiteEntry],
    glances: list[Glance],
    wanted: Sequence[tuple[str, int]],
    room: int,
    blobs: Blobs,
) -> list[SiteEntry]:
    """Queries and keys of the heads that were asked for, then of the sharpest while there is room.

    A head is sharp when its queries look at few keys: there the maps hide the most.
    """
    if all(glance.zoom is None for glance in glances):
        return entries
    names = [entry.name for entry in entries]
    asked = [(names.index(site), head) for site, head in wanted if site in names]
    kept: dict[int, list[int]] = {}
    for site, head in dict.fromkeys([*asked, *_sharpest_first(glances)]):
        zoom = glances[site].zoom
        if zoom is None or head >= entries[site].heads:
            continue
        size = (zoom.q[0, 0].numel() + zoom.k[0, 0].numel()) * 2 * 4 // 3
        if size > room and (site, head) not in asked:
            break
        room -= size
        kept.setdefault(site, []).append(head)
    count, every = sum(map(len, kept.values())), sum(entry.heads for entry in entries)
    if count < every:
        blobs.note(
            f"exact zoom is kept for {count} of {every} heads; name others with --zoom SITE:HEAD"
        )
    zooms = {site: _zoom(glances[site], sorted(heads), blobs) for site, heads in kept.items()}
    return [replace(entry, zoom=zooms.get(site)) for site, entry in enumerate(entries)]


def _sharpest_first(glances: list[Glance]) -> list[tuple[int, int]]:
    """Sites and heads, those first whose queries look at few keys other than a sink."""
    sharpness = {
        (site, head): float(value)
        for site, glance in enumerate(glances)
        for head, value in enumerate((glance.highest * (1 - glance.sink))[0].mean(dim=-1).tolist())
    }
    return sorted(sharpness, key=lambda key: -sharpness[key])


def _zoom(glance: Glance, heads: list[int], blobs: Blobs) -> ZoomEntry:
    zoom = glance.zoom
    assert zoom is not None
    assert zoom.lse is not None
    keys = torch.tensor(heads) // zoom.group
    return ZoomEntry(
        heads=heads,
        scale=zoom.scale,
        q=blobs.add(zoom.q[0, heads], "f16"),
        k=blobs.add(zoom.k[0, keys], "f16"),
        lse=blobs.add(zoom.lse[0, heads], "f32"),
    )
