"""How much of a captioner's looks a document keeps, so that many pictures fit on one page."""

from dataclasses import dataclass, field, replace
from typing import Any

from jaxtyping import Float
from torch import Tensor

from saccade.app.look.arrays import Blobs, Kind
from saccade.app.look.site import EXACT_BYTES, Plan, site_entry
from saccade.attention.axes import Axis
from saccade.attention.look.glance import Glance, Keep
from saccade.attention.look.observe import observe
from saccade.attention.look.rollout import one_hot, roll
from saccade.tasks.language.teacher_forced import Reread

TOP = 8  # weights of each row that are kept where there is no room for all
KEEP = Keep(map_side=0, top=TOP, dense=1 << 12)
ROLLOUT = "rollout"
TEXT_BYTES = 4 / 3  # characters to a byte
EYE_SHARE, ROLLOUT_SHARE, WORDS_SHARE = 0.5, 0.2, 0.3  # of the room


@dataclass(frozen=True)
class Room:
    """Characters that one look may take, and what had to be left out."""

    size: int
    notes: list[str] = field(default_factory=list[str])


def caption_sites(seen: Reread, room: Room, blobs: Blobs) -> list[dict[str, Any]]:
    """The sites of the words, and those of the eye with what they amount to together."""
    inner = {name for name, (rows, columns) in seen.axes.items() if is_inner(rows, columns)}
    eye = {name: glance for name, glance in seen.sites.items() if name in inner}
    words = {name: glance for name, glance in seen.sites.items() if name not in inner}
    entries = _entries(eye, seen, int(EYE_SHARE * room.size), room.notes, blobs)
    if len(eye) > 1 and all(glance.weights is not None for glance in eye.values()):
        axes = {ROLLOUT: seen.axes[next(iter(eye))]}
        through = replace(seen, axes=axes)
        size = int(ROLLOUT_SHARE * room.size)
        (entry,) = _entries({ROLLOUT: _rolled_out(eye)}, through, size, room.notes, blobs)
        entries.append(entry | {"derived": True})
    return entries + _entries(words, seen, int(WORDS_SHARE * room.size), room.notes, blobs)


def is_inner(rows: Axis, columns: Axis) -> bool:
    """Whether the picture looks at itself."""
    return rows == columns and rows.kind == "grid"


def _entries(
    glances: dict[str, Glance], seen: Reread, size: int, notes: list[str], blobs: Blobs
) -> list[dict[str, Any]]:
    kind = _kind(list(glances.values()), size)
    plan = Plan(KEEP, size, kind or "u8")
    entries: list[dict[str, Any]] = []
    for name, glance in glances.items():
        kept = glance if kind else replace(glance, weights=None)
        entry = site_entry(name, kept, plan, blobs) | _sides(*seen.axes[name])
        entries.append(entry)
    if glances and kind == "u8":
        notes.append("weights have 8 bits, an error of up to 0.004")
    if glances and kind is None:
        notes.append(f"of some looks {TOP} weights of each row are kept, and the mass of the rest")
    return entries


def _kind(glances: list[Glance], size: int) -> Kind | None:
    """16 bits a weight if there is room, else 8, else only the largest weights."""
    cells = sum(0 if one.weights is None else one.weights.numel() for one in glances)
    if any(one.weights is None for one in glances):
        return None
    if 2 * cells * TEXT_BYTES <= min(EXACT_BYTES, size):
        return "f16"
    return "u8" if cells * TEXT_BYTES <= size else None


def _sides(rows: Axis, columns: Axis) -> dict[str, str]:
    """Words look at the words before them: their columns begin one earlier."""
    past = rows == columns and rows.kind == "tokens"
    return {"rows": rows.name, "columns": "past" if past else columns.name}


def _rolled_out(eye: dict[str, Glance]) -> Glance:
    """What each cell reads through all layers of the eye, as if it were one head's look."""
    mixture: Float[Tensor, "B S S"] | None = None
    for glance in eye.values():
        weights = glance.weights
        assert weights is not None
        mixture = roll(weights, one_hot(weights, weights.shape[-1]) if mixture is None else mixture)
    assert mixture is not None
    return observe(mixture[:, None], KEEP)
