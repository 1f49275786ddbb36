"""The look document of a language model: where each word of a text looked among those before."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from saccade.app.look.arrays import Blobs
from saccade.app.look.axis import text_axis
from saccade.app.look.document import LookDocument, LookEntry
from saccade.app.look.draw.figure import MatrixLook
from saccade.app.look.matrix import (
    KEEP,
    Side,
    axis_side,
    between,
    in_cells,
    one_matrix,
    shown_units,
    site_named,
)
from saccade.app.look.search import chosen_words
from saccade.app.look.settings import LookSettings, NamedModel, Selection
from saccade.app.look.site import SiteBudget, text_sites
from saccade.attention.look.watching import sites
from saccade.errors import ConfigError
from saccade.tasks.language.teacher_forced import check_reach, teacher_forced_text
from saccade.tasks.language.writer import Generated, Writer


def language_look(
    model: NamedModel[Writer],
    text: str,
    select: Selection,
    document: Callable[[], LookDocument],
    written: Generated | None = None,
) -> MatrixLook:
    """Where each word of a text looked, and of what was written after it, at the last layer.

    A long text is drawn in cells of several pieces.
    """
    writer = model.tool
    names = list(sites(writer.model))
    if not names:
        raise ConfigError(
            f"{model.name} has no attention to look at: it reads by recurrence alone; `saccade "
            "train gpt` looks back"
        )
    site = names[-1] if select.layer is None else site_named(select.layer, names, names)
    tokens = writer.begin(text) if written is None else written.tokens
    side, cell = text_side(writer, tokens, select)
    seen = teacher_forced_text(writer, tokens, keep=KEEP, only=site)
    weights, which = one_matrix(seen.sites, select)
    return MatrixLook(
        *between(weights, side, side, shown_units(select)),
        title=f"{model.name}: {site}, {which}{in_cells(cell)}",
        caption=text if written is None else written.text,
        document=document,
    )


def text_side(writer: Writer, tokens: list[int], select: Selection) -> tuple[Side, int]:
    """What lies along both sides, and how many pieces share a cell; refused where too long."""
    check_reach(writer, tokens)
    return axis_side(text_axis(writer.vocabulary, tokens), select)


def language_document(
    models: Sequence[NamedModel[Writer]],
    text: str,
    how: LookSettings,
    *,
    written: Generated | None = None,
) -> LookDocument:
    """Read a text, go on writing if asked to, and show where each word looked.

    `written` is what was written after the text already.
    """
    blobs, size = Blobs(), how.budget // len(models)
    looks = [
        _look(one, text, how, size, blobs, written or _go_on(one, text, how)) for one in models
    ]
    return LookDocument.of("language", [one.name for one in models], text, looks, blobs)


def _go_on(model: NamedModel[Writer], text: str, how: LookSettings) -> Generated | None:
    if not how.most_tokens:
        return None
    (written,) = model.tool.write(text, how.drawing, most_tokens=how.most_tokens)
    return written


def _look(
    model: NamedModel[Writer],
    text: str,
    how: LookSettings,
    size: int,
    blobs: Blobs,
    written: Generated | None,
) -> LookEntry:
    """A text that was given, and what the model wrote after it."""
    writer, vocabulary = model.tool, model.tool.vocabulary
    tokens = writer.begin(text)
    given, score, finished = len(tokens), None, None
    if written is not None:
        tokens, score, finished = written.tokens, written.score, written.finished
    budget = SiteBudget.of(writer.model, len(tokens), size)
    seen = teacher_forced_text(writer, tokens, keep=budget.keep)
    axis = text_axis(vocabulary, tokens, prompt=given)
    log_p, choices = chosen_words(vocabulary, seen, tokens[1:], axis.tokens[1:])
    axis = replace(axis, log_p=[None, *log_p], choices=[[], *choices])
    return LookEntry(
        run=model.name,
        label="best",
        text=vocabulary.decode(tokens),
        score=score,
        log_probability=sum(seen.log_p[given - 1 :], 0.0) if written is not None else None,
        finished=finished,
        axes={"text": axis},
        sites=text_sites(seen, budget, how.zoom, blobs),
    )
