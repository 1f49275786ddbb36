"""The look document of a language model: where each word of a text looked among those before."""

from collections.abc import Sequence

from saccade.app.look.arrays import Blobs
from saccade.app.look.axis import text_axis
from saccade.app.look.document import LookDocument, LookEntry
from saccade.app.look.search import chosen_words
from saccade.app.look.settings import LookSettings, NamedModel
from saccade.app.look.site import SiteBudget, text_sites
from saccade.tasks.language.teacher_forced import teacher_forced_text
from saccade.tasks.language.writer import Generated, Writer


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
    log_p, choices = chosen_words(vocabulary, seen)
    axis = text_axis(vocabulary, tokens, prompt=given, log_p=[None, *log_p], choices=[[], *choices])
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
