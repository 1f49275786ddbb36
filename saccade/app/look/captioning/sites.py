"""How much of a captioner's looks a document keeps, so that many images fit on one page."""

from dataclasses import replace

from jaxtyping import Float
from torch import Tensor

from saccade.app.look.arrays import Blobs, Kind
from saccade.app.look.document import SiteEntry
from saccade.app.look.site import EIGHT_BITS, EXACT_BYTES, site_entries
from saccade.attention.axes import Axis
from saccade.attention.look.glance import Glance, Keep
from saccade.attention.look.observe import observe
from saccade.attention.look.rollout import one_hot, roll
from saccade.tasks.teacher_forced import TeacherForced

TOP = 8  # weights of each row that are kept where there is no room for all
KEEP = Keep(map_side=0, top=TOP, dense=1 << 12)
ROLLOUT = "rollout"
TEXT_BYTES = 4 / 3  # characters to a byte
ENCODER_SHARE, ROLLOUT_SHARE, WORDS_SHARE = 0.5, 0.2, 0.3  # of the budget


def caption_sites(seen: TeacherForced, size: int, blobs: Blobs) -> list[SiteEntry]:
    """The sites of the image encoder with what they amount to together, and those of the words.

    They take about `size` characters.
    """
    inner = {name: pair for name, pair in seen.axes.items() if _is_inner(*pair)}
    encoder = {name: glance for name, glance in seen.sites.items() if name in inner}
    words = {name: glance for name, glance in seen.sites.items() if name not in inner}
    entries = _entries(encoder, seen.axes, ENCODER_SHARE * size, blobs)
    if len(encoder) > 1 and all(glance.weights is not None for glance in encoder.values()):
        axes = {ROLLOUT: inner[next(iter(encoder))]}
        rollout = {ROLLOUT: _rolled_out(encoder)}
        (entry,) = _entries(rollout, axes, ROLLOUT_SHARE * size, blobs)
        entries.append(replace(entry, derived=True))
    return entries + _entries(words, seen.axes, WORDS_SHARE * size, blobs)


def _is_inner(rows: Axis, columns: Axis) -> bool:
    """Whether the image looks at itself."""
    return rows == columns and rows.kind == "grid"


def _entries(
    glances: dict[str, Glance], axes: dict[str, tuple[Axis, Axis]], size: float, blobs: Blobs
) -> list[SiteEntry]:
    kind = _kind(list(glances.values()), int(size))
    if glances and kind == "u8":
        blobs.note(EIGHT_BITS)
    if glances and kind is None:
        blobs.note(f"of some looks {TOP} weights of each row are kept, and the mass of the rest")
        glances = {name: replace(one, weights=None) for name, one in glances.items()}
    return site_entries(glances, axes, kind or "u8", blobs)


def _kind(glances: list[Glance], size: int) -> Kind | None:
    """16 bits a weight if there is room, else 8, else only the largest weights."""
    cells = sum(0 if one.weights is None else one.weights.numel() for one in glances)
    if any(one.weights is None for one in glances):
        return None
    if 2 * cells * TEXT_BYTES <= min(EXACT_BYTES, size):
        return "f16"
    return "u8" if cells * TEXT_BYTES <= size else None


def _rolled_out(encoder: dict[str, Glance]) -> Glance:
    """What each cell reads through all layers of the encoder, as if it were one head's look."""
    mixture: Float[Tensor, "B S S"] | None = None
    for glance in encoder.values():
        weights = glance.weights
        assert weights is not None
        mixture = roll(weights, one_hot(weights, weights.shape[-1]) if mixture is None else mixture)
    assert mixture is not None
    return observe(mixture[:, None], KEEP)
