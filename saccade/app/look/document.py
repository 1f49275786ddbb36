"""The look document: all that the page needs to know of one look, as one JSON object.

What is kept depends on length. Short inputs keep every weight. Long ones keep statistics, maps
and the largest weights of every head, and for some heads the queries and keys from which the page
computes any weight exactly. What was left out for size is said in `notes`.
"""

from typing import Any

from torch import Tensor

from saccade.app.look.arrays import Blobs
from saccade.app.look.axis import text_axis
from saccade.app.look.captioning.document import caption_document
from saccade.app.look.captioning.images import Shown
from saccade.app.look.settings import FORMAT, Looker, LookSettings, place_name
from saccade.app.look.site import Plan, add_zoom, site_entry
from saccade.app.look.telling import choices_of, history, rounded
from saccade.attention.axes import Axis
from saccade.data.vocabulary import END, START
from saccade.decode.beam import Beam
from saccade.decode.engine import Decoding
from saccade.decode.protocol import Candidate
from saccade.errors import ConfigError
from saccade.tasks.captioning.captioner import Describer
from saccade.tasks.language.teacher_forced import Reread, reread_text, reread_translation
from saccade.tasks.language.writer import Writer
from saccade.tasks.translation.translator import Translated, Translator


def look_document(
    looker: Looker,
    given: str | Tensor | Shown,
    settings: LookSettings,
    *,
    compare: Looker | None = None,
) -> dict[str, Any]:
    """Run a model on a text or a picture, and a second one to compare it with; tell where they
    looked.
    """
    lookers = [looker] if compare is None else [looker, compare]
    kinds = {type(one.tool) for one in lookers}
    if len(kinds) > 1:
        raise ConfigError(
            f"{lookers[0].name} and {lookers[1].name} do different work; compare two of a kind"
        )
    if isinstance(looker.tool, Describer):
        shown = given if isinstance(given, Shown) else Shown.of(given, looker.tool)
        return caption_document(lookers, [shown], settings)
    if not isinstance(given, str):
        raise ConfigError(f"{looker.name} reads text, not pictures")
    return _text_document(lookers, given, settings)


def _text_document(lookers: list[Looker], text: str, settings: LookSettings) -> dict[str, Any]:
    blobs, notes = Blobs(), list[str]()
    looks: list[dict[str, Any]] = []
    share = settings.budget // len(lookers)
    for one in lookers:
        if isinstance(one.tool, Translator):
            many = 1 if len(lookers) > 1 else settings.beam
            looks += _translations(one.name, one.tool, text, settings, many, blobs, notes)
        elif isinstance(one.tool, Writer):
            looks.append(_written(one.name, one.tool, text, settings, share, blobs, notes))
    short = text if len(text) <= 60 else f"{text[:57]}…"
    return {
        "format": FORMAT,
        "kind": "translation" if isinstance(lookers[0].tool, Translator) else "language",
        "title": f"{' and '.join(one.name for one in lookers)} · {short}",
        "notes": list(dict.fromkeys(notes)),
        "looks": looks,
        "blobs": blobs.texts,
    }


def _translations(
    name: str,
    translator: Translator,
    text: str,
    settings: LookSettings,
    many: int,
    blobs: Blobs,
    notes: list[str],
) -> list[dict[str, Any]]:
    """The n-best list; the best carries the history of the search."""
    steps: list[list[Candidate]] = []

    def tell(step: dict[int, list[Candidate]]) -> list[int]:
        steps.extend(step.values())
        return []

    how = Decoding(
        beam=settings.beam,
        n_best=min(many, settings.beam),
        length_penalty=settings.length_penalty,
    )
    ((_, best),) = translator.translate([text], how, on_step=tell)
    looks = [
        _translation(name, translator, one, place, settings, blobs, notes)
        for place, one in enumerate((best, *best.others))
    ]
    if settings.beam > 1:
        beam = Beam(size=settings.beam, length_penalty=settings.length_penalty)
        looks[0]["beam"] = history(translator.vocabulary, steps, beam)
    return looks


def _translation(
    name: str,
    translator: Translator,
    one: Translated,
    place: int,
    settings: LookSettings,
    blobs: Blobs,
    notes: list[str],
) -> dict[str, Any]:
    vocabulary = translator.vocabulary
    source = [*vocabulary.encode(one.source), END]
    said = [*one.tokens, *([END] if one.finished else [])]
    plan = Plan.of(translator.model, max(len(source), len(said)), settings.budget // settings.beam)
    seen = reread_translation(
        translator, one.source, one.tokens, finished=one.finished, keep=plan.keep
    )
    axes = {
        "source": text_axis(
            vocabulary, source, spans=vocabulary.spans(one.source), text=one.source
        ),
        "target": text_axis(vocabulary, said)
        | {"log_p": rounded(seen.log_p), "choices": choices_of(vocabulary, seen.choices)},
        "past": text_axis(vocabulary, [START, *said[:-1]]),
    }
    sites = _sites(seen, plan, settings, blobs, notes, columns={"target": "past"})
    return {
        "run": name,
        "label": place_name(place),
        "text": one.text,
        "score": one.score,
        "log_probability": one.log_probability,
        "finished": one.finished,
        "axes": axes,
        "sites": sites,
        "beam": None,
    }


def _written(
    name: str,
    writer: Writer,
    text: str,
    settings: LookSettings,
    budget: int,
    blobs: Blobs,
    notes: list[str],
) -> dict[str, Any]:
    """A text that was given, and what the model wrote after it."""
    tokens = writer.begin(text)
    given, score, finished = len(tokens), None, None
    if settings.most_tokens:
        how = Decoding(
            beam=1, sample=settings.sample, temperature=settings.temperature, seed=settings.seed
        )
        (written,) = writer.write(text, how, most_tokens=settings.most_tokens)
        tokens, score, finished = written.tokens, written.score, written.finished
    plan = Plan.of(writer.model, len(tokens), budget)
    seen = reread_text(writer, tokens, keep=plan.keep)
    chosen = {
        "prompt": given,
        "log_p": [None, *rounded(seen.log_p)],
        "choices": [[], *choices_of(writer.vocabulary, seen.choices)],
    }
    return {
        "run": name,
        "label": "best",
        "text": writer.vocabulary.decode(tokens),
        "score": score,
        "log_probability": sum(seen.log_p[given - 1 :]) if settings.most_tokens else None,
        "finished": finished,
        "axes": {"text": text_axis(writer.vocabulary, tokens) | chosen},
        "sites": _sites(seen, plan, settings, blobs, notes, columns={}),
        "beam": None,
    }


def _sites(
    seen: Reread,
    plan: Plan,
    settings: LookSettings,
    blobs: Blobs,
    notes: list[str],
    *,
    columns: dict[str, str],
) -> list[dict[str, Any]]:
    """Every site; looks of an axis at itself may be told to name their columns otherwise."""
    entries: list[dict[str, Any]] = []
    before = blobs.size
    for name, glance in seen.sites.items():
        rows, across = seen.axes[name]
        entry = site_entry(name, glance, plan, blobs)
        entry |= {"rows": rows.name, "columns": _column_name(rows, across, columns)}
        entries.append(entry)
    notes += plan.notes
    left = plan.budget - (blobs.size - before)
    notes += add_zoom(entries, list(seen.sites.values()), settings.zoom, left, blobs)
    return entries


def _column_name(rows: Axis, across: Axis, renamed: dict[str, str]) -> str:
    return renamed.get(across.name, across.name) if rows == across else across.name
