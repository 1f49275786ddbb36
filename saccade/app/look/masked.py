"""The look document of a model that fills blanks: words for each, and where all words looked."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import log

from saccade.app.look.arrays import Blobs
from saccade.app.look.axis import text_axis
from saccade.app.look.document import AxisEntry, LookDocument, LookEntry, SiteEntry
from saccade.app.look.draw.figure import MatrixLook
from saccade.app.look.matrix import (
    KEEP,
    axis_side,
    between,
    in_cells,
    one_matrix,
    shown_units,
    site_named,
)
from saccade.app.look.settings import LookSettings, NamedModel, Selection
from saccade.app.look.site import SiteBudget, site_entry, text_sites
from saccade.attention.look.watching import sites
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.tasks.masked.blanks import BLANK, BlankText
from saccade.tasks.masked.filler import BlankFiller
from saccade.tasks.masked.watched import ROLLOUT, rolled_out, watched_text
from saccade.tasks.teacher_forced import CHOICES


def masked_look(
    model: NamedModel[BlankFiller],
    text: str,
    select: Selection,
    document: Callable[[], LookDocument],
) -> MatrixLook:
    """Where each word of a text looked, at the last layer; a long text is drawn in cells."""
    filler, names = model.tool, list(sites(model.tool.model))
    read = filler.read_whole(text)
    side, cell = axis_side(blank_axis(filler.vocabulary, read), select)
    rolls = select.layer is not None and select.layer.endswith(ROLLOUT)
    if rolls and cell == 1:
        found = rolled_out(filler, read, keep=KEEP)
        site = site_named(select.layer or "", names, [*names, *found])
        weights, _ = one_matrix({site: found[site]}, select)
        which = "through all layers"
    else:
        site = names[-1] if select.layer is None else site_named(select.layer, names, names)
        seen = watched_text(filler, read, keep=KEEP, only=site)
        weights, which = one_matrix(seen.sites, select)
    return MatrixLook(
        *between(weights, side, side, shown_units(select)),
        title=f"{model.name}: {site}, {which}{in_cells(cell)}",
        caption=filler.fill([text], n_best=1)[0].text if read.at else text,
        document=document,
    )


def masked_document(
    models: Sequence[NamedModel[BlankFiller]], text: str, how: LookSettings
) -> LookDocument:
    """Read a text, and show what would fill its blanks, and where each word looked."""
    blobs, size = Blobs(), how.budget // len(models)
    looks = [_look(one, text, how, size, blobs) for one in models]
    return LookDocument.of("masked", [one.name for one in models], text, looks, blobs)


def blank_axis(vocabulary: Vocabulary, read: BlankText) -> AxisEntry:
    """The words of a text; a blank is one of them."""
    axis = text_axis(vocabulary, read.tokens)
    tokens = list(axis.tokens)
    for place in read.at:
        tokens[place] = f" {BLANK}"
    words = sorted([*axis.words, *((place, place + 1) for place in read.at)])
    return replace(axis, tokens=tokens, words=words)


def _look(
    model: NamedModel[BlankFiller], text: str, how: LookSettings, size: int, blobs: Blobs
) -> LookEntry:
    filler = model.tool
    read = filler.read_whole(text)
    axis, filled = blank_axis(filler.vocabulary, read), text
    if read.at:
        (found,) = filler.fill([text], n_best=CHOICES)
        filled, best = found.text, dict(zip(read.at, found.blanks))
        choices = [
            [(one.word, round(one.probability, 4)) for one in best.get(place, ())]
            for place in range(len(read.tokens))
        ]
        log_p = [round(log(some[0][1]), 4) if some and some[0][1] else None for some in choices]
        axis = replace(axis, choices=choices, log_p=log_p)
    budget = SiteBudget.of(filler.model, len(read.tokens), size)
    seen = watched_text(filler, read, keep=budget.keep)
    return LookEntry(
        run=model.name,
        label="best",
        text=filled,
        score=None,
        log_probability=None,
        finished=None,
        axes={"text": axis},
        sites=[
            *_rollout(filler, read, budget, blobs),
            *text_sites(seen, budget, how.zoom, blobs),
        ],
    )


def _rollout(
    filler: BlankFiller, read: BlankText, budget: SiteBudget, blobs: Blobs
) -> list[SiteEntry]:
    """Through all layers, where every weight is kept."""
    if not budget.keep.dense:
        return []
    found = rolled_out(filler, read, keep=budget.keep)
    sides = "text", "text"
    kept: list[SiteEntry] = [
        site_entry(name, one, sides, budget.weight_kind, blobs) for name, one in found.items()
    ]
    return [replace(entry, derived=True) for entry in kept]
