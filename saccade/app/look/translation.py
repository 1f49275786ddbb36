"""The look document of a translation: which source words each target word looked at."""

from collections.abc import Callable, Sequence
from typing import Any

from saccade.app.look.arrays import Blobs
from saccade.app.look.axis import text_axis
from saccade.app.look.document import AxisEntry, LookDocument, LookEntry
from saccade.app.look.draw.figure import MatrixLook
from saccade.app.look.matrix import Side, between, one_matrix, site_named
from saccade.app.look.search import (
    as_predicted,
    hypothesis_entry,
    run_search,
    target_axes,
    written_axes,
)
from saccade.app.look.settings import LookSettings, NamedModel, Selection
from saccade.app.look.site import SiteBudget, sides, text_sites
from saccade.attention.look.glance import Keep
from saccade.attention.look.watching import sites
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.decode.engine import Decoding
from saccade.errors import ConfigError
from saccade.tasks.translation.teacher_forced import teacher_forced_translation
from saccade.tasks.translation.translator import Translated, Translator

Document = Callable[[], LookDocument]


def translation_look(
    model: NamedModel[Translator], one: Translated, select: Selection, document: Document
) -> MatrixLook:
    """Where a model looked for each word of a translation that it has made.

    Layers are those that look at the source, all of which are shown together by default.
    """
    translator, vocabulary = model.tool, model.tool.vocabulary
    if not translator.looks:
        raise ConfigError(f"{model.name} has no attention to look at")
    there = sites(translator.model)
    cross = [name for name in there if name.endswith("cross")]
    only = "cross" if select.layer is None else site_named(select.layer, cross, list(there))
    site = there[cross[0] if only == "cross" else only]
    source = source_axis(vocabulary, one.source)
    target = [*one.tokens, *([vocabulary.end] if one.finished else [])]
    axes = {"source": source, **target_axes(vocabulary, target)}
    rows, columns = (Side.of(axes[name]) for name in sides(site.rows, site.columns))
    units = "pieces" if select.units == "pieces" else "words"
    select.check_rows(rows.count(units))
    keep = Keep(map_side=0, top=0, dense=max(len(source.tokens), len(target)))
    said: dict[str, Any] = {"finished": one.finished, "keep": keep, "only": only}
    seen = teacher_forced_translation(translator, one.source, one.tokens, **said)
    weights, which = one_matrix(seen.sites, select)
    title = "attention to the source" if only == "cross" else only
    return MatrixLook(
        *between(weights, rows, columns, units),
        title=f"{model.name}: {title}, {which}",
        caption=one.text,
        document=document,
    )


def source_axis(vocabulary: Vocabulary, text: str) -> AxisEntry:
    """What is translated, and the end of it."""
    tokens = [*vocabulary.encode(text), vocabulary.end]
    return text_axis(vocabulary, tokens, spans=vocabulary.spans(text), text=text)


def translation_document(
    models: Sequence[NamedModel[Translator]],
    text: str,
    how: LookSettings,
    *,
    decoding: Decoding | None = None,
    predicted: Translated | None = None,
) -> LookDocument:
    """Translate a text with one model, or with two to compare, and show where they looked.

    One model comes with its n-best list. `decoding` is that of a prediction that is looked at, and
    `predicted` what it said, which is shown whatever another search finds.
    """
    blobs, looks = Blobs(), list[LookEntry]()
    search = how.search(how.beam if len(models) == 1 else 1, decoding)
    for model in models:
        looks += _looks(model, text, how, search, blobs, predicted)
    return LookDocument.of("translation", [one.name for one in models], text, looks, blobs)


def _looks(
    model: NamedModel[Translator],
    text: str,
    how: LookSettings,
    search: Decoding,
    blobs: Blobs,
    predicted: Translated | None,
) -> list[LookEntry]:
    """The n-best list of one search; each hypothesis is then run teacher-forced and watched."""
    translator, vocabulary = model.tool, model.tool.vocabulary
    best, beam = run_search(
        lambda on_step: translator.translate([text], search, on_step=on_step), search, vocabulary
    )
    best, beam = as_predicted(best, beam, predicted)
    source = source_axis(vocabulary, text)
    looks: list[LookEntry] = []
    for place, one in enumerate((best, *best.others)):
        size = max(len(source.tokens), len(one.tokens) + one.finished)
        budget = SiteBudget.of(translator.model, size, how.budget // search.beam)
        seen = teacher_forced_translation(
            translator, text, one.tokens, finished=one.finished, keep=budget.keep
        )
        axes = {"source": source, **written_axes(vocabulary, one, seen)}
        sites = text_sites(seen, budget, how.zoom, blobs)
        looks.append(hypothesis_entry(model.name, place, one, axes, sites, beam))
    return looks
