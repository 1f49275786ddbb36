"""The look document of a language model: where each word of a text looked among those before."""

from collections.abc import Sequence
from dataclasses import replace

from saccade.app.look.arrays import Blobs
from saccade.app.look.axis import text_axis
from saccade.app.look.document import LookDocument, LookEntry
from saccade.app.look.search import chosen_words
from saccade.app.look.settings import LookSettings, NamedModel
from saccade.app.look.site import SiteBudget, text_sites
from saccade.decode.engine import Decoding
from saccade.tasks.language.teacher_forced import teacher_forced_text
from saccade.tasks.language.writer import Writer


def language_document(
    models: Sequence[NamedModel[Writer]], text: str, how: LookSettings
) -> LookDocument:
    """Read a text, go on writing if asked to, and show where each word looked."""
    blobs = Blobs()
    looks = [_look(one, text, how, how.budget // len(models), blobs) for one in models]
    return LookDocument.of("language", [one.name for one in models], text, looks, blobs)


def _look(
    model: NamedModel[Writer], text: str, how: LookSettings, size: int, blobs: Blobs
) -> LookEntry:
    """A text that was given, and what the model wrote after it."""
    writer, vocabulary = model.tool, model.tool.vocabulary
    tokens = writer.begin(text)
    given, score, finished = len(tokens), None, None
    if how.most_tokens:
        drawn = Decoding(beam=1, sample=how.sample, temperature=how.temperature, seed=how.seed)
        (written,) = writer.write(text, drawn, most_tokens=how.most_tokens)
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
        log_probability=sum(seen.log_p[given - 1 :], 0.0) if how.most_tokens else None,
        finished=finished,
        axes={"text": axis},
        sites=text_sites(seen, budget, how.zoom, blobs),
    )
