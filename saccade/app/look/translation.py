"""The look document of a translation: which source words each target word looked at."""

from collections.abc import Sequence

from saccade.app.look.arrays import Blobs
from saccade.app.look.axis import text_axis
from saccade.app.look.document import LookDocument, LookEntry
from saccade.app.look.search import as_predicted, hypothesis_entry, run_search, written_axes
from saccade.app.look.settings import LookSettings, NamedModel
from saccade.app.look.site import SiteBudget, text_sites
from saccade.decode.engine import Decoding
from saccade.tasks.translation.teacher_forced import teacher_forced_translation
from saccade.tasks.translation.translator import Translated, Translator


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
    tokens = [*vocabulary.encode(text), vocabulary.end]
    source = text_axis(vocabulary, tokens, spans=vocabulary.spans(text), text=text)
    looks: list[LookEntry] = []
    for place, one in enumerate((best, *best.others)):
        size = max(len(tokens), len(one.tokens) + one.finished)
        budget = SiteBudget.of(translator.model, size, how.budget // search.beam)
        seen = teacher_forced_translation(
            translator, text, one.tokens, finished=one.finished, keep=budget.keep
        )
        axes = {"source": source, **written_axes(vocabulary, one, seen)}
        sites = text_sites(seen, budget, how.zoom, blobs)
        looks.append(hypothesis_entry(model.name, place, one, axes, sites, beam))
    return looks
