"""Masked language modelling: a text with blanks in, the words that fill them out."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, overload

from saccade.app.api import load
from saccade.app.cli.inputs import input_lines
from saccade.app.cli.options import RunArgument, TextArguments
from saccade.app.cli.output import busy, print_json, print_scores
from saccade.app.export.text.write import MASKED
from saccade.app.kinds.base import (
    OF_WRITING,
    HeldOut,
    Kind,
    LoadedRun,
    TrainedModel,
    refuse_settings,
    text_given,
    texts_given,
)
from saccade.app.kinds.masked.serve import BEST, MaskedServing, filled_table
from saccade.app.kinds.soundness import load_vocabulary
from saccade.app.kinds.text_lines import Rows, predict_lines
from saccade.app.kinds.text_looks import TextLookOptions, look_at_words
from saccade.app.look.draw.figure import MatrixLook
from saccade.app.look.masked import masked_document, masked_look
from saccade.app.look.settings import LookSettings, make_selection
from saccade.data.readers import splits
from saccade.errors import ConfigError, DataError
from saccade.tasks.base import Progress, silent
from saccade.tasks.corpus import CorpusEncoder
from saccade.tasks.masked.batch import held_out_batches
from saccade.tasks.masked.blanks import BlankWord, FilledText
from saccade.tasks.masked.figures import masked_figures
from saccade.tasks.masked.filler import BlankFiller
from saccade.tasks.masked.task import MaskedSettings, fixed_masking, masked_rows, read_masked
from saccade.tasks.plain_texts import text_part


@dataclass(frozen=True)
class MaskedPrediction:
    """A text with its blanks filled, the best words for each blank, and where all words looked."""

    given: str
    text: str
    blanks: tuple[tuple[BlankWord, ...], ...]
    _model: "MaskedModel"

    def look(self, **select: Any) -> MatrixLook:
        """Where each word of the text with its blanks looked."""
        return self._model.look(self.given, **select)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"MaskedPrediction({self.text!r})"


class MaskedModel(TrainedModel[BlankFiller]):
    """A trained model of hidden words."""

    @overload
    def predict(self, text: str, *, n_best: int = ...) -> MaskedPrediction: ...
    @overload
    def predict(self, text: list[str], *, n_best: int = ...) -> list[MaskedPrediction]: ...
    def predict(self, text: Any, *, n_best: int = BEST) -> Any:
        """Fill the blanks of a text, or of each of a list: ___, [MASK], or the tokenizer's own."""
        filled = self.tool.fill(texts_given(text), n_best=n_best)
        made = [MaskedPrediction(one.given, one.text, one.blanks, self) for one in filled]
        return made[0] if isinstance(text, str) else made

    def look(self, text: str, settings: LookSettings | None = None, **select: Any) -> MatrixLook:
        """Where each word of a text looked; blanks are words of it.

        `select` are the fields of `Selection`, such as layer=0, layer="rollout" or units="words".
        """
        how, text = settings or LookSettings(), text_given(text)
        check_look(self.name, how)
        document = partial(masked_document, [self], text, how)
        return masked_look(self, text, make_selection(select), document)


def check_look(name: str, how: LookSettings) -> None:
    """Refuse settings that would be left unused."""
    refuse_settings(how, f"{name} only reads", "beam", "length_penalty", *OF_WRITING)


def _load(run: LoadedRun) -> MaskedModel:
    settings = run.recipe.task
    assert isinstance(settings, MaskedSettings)
    tool = BlankFiller(run.network, load_vocabulary(run), settings)
    return MaskedModel(run.name, run.recipe, tool)


def predict_command(
    run: RunArgument,
    texts: TextArguments = (),
    /,
    *,
    text: tuple[str, ...] = (),
    n_best: int = 1,
    skip_bad: int = 0,
    device: str = "auto",
    json: bool = False,
) -> None:
    """Fill the blanks of texts.

    A blank is written as ___ or [MASK]. Texts come from the command line, from a file that is named
    there, or with - from standard input, one a line. What looks like a path must be a file; a blank
    line gives a blank line. With --n-best 3 each text is followed by a line for each of its blanks,
    with the three best words and their probabilities.

    Args:
        run: folder of the run.
        texts: texts with blanks, or a file of them.
        text: texts that are no file, whatever they look like.
        n_best: how many words are told for each blank.
        skip_bad: this many lines that are no text with blanks are answered with a blank one; one
            more stops.
        device: cpu, cuda …; auto takes the fastest there is.
        json: print the words for each blank with their probabilities, as JSON.
    """
    if n_best < 1:
        raise ConfigError(f"n_best={n_best} must be at least 1")
    lines = input_lines(texts, text, skip_bad=skip_bad)
    with busy("loading"):
        tool: BlankFiller = load(run, device=device).tool
    best = max(n_best, BEST) if json else n_best

    def predict(some: list[str], first: int, progress: Progress) -> list[Rows]:
        filled = tool.fill(some, n_best=best, progress=progress)
        return [[filled_table(one) if json else {"text": _lines(one, n_best)}] for one in filled]

    predict_lines(
        lines,
        predict,
        blank=[{"given": "", "text": "", "blanks": []}],
        check=tool.read_blanks,
        doing="filling blanks",
        json=json,
        keeps_lines=True,
    )


def _lines(one: FilledText, n_best: int) -> str:
    """The text, and below it the words for each blank where several are wanted."""
    told = [
        "  " + ", ".join(f"{word} {probability:.3f}" for word, probability in words)
        for words in one.blanks
        if n_best > 1
    ]
    return "\n".join([one.text.replace("\n", " "), *told])


def evaluate(
    model: MaskedModel,
    held_out: HeldOut = HeldOut(),  # noqa: B008
) -> dict[str, Any]:
    """Every score by name."""
    filler, settings = model.tool, held_out.settings(model.tool.settings)
    network: Any = filler.model
    split = held_out.choose(settings, splits)
    part = text_part(settings, split, read_masked)
    (lines,) = CorpusEncoder(filler.vocabulary, silent).encode(part).columns
    longest = filler.fills.longest or 1 << 30
    masking = fixed_masking(settings, filler.vocabulary)
    tokens = lines.end_to_end()
    rows = masked_rows(settings, filler.vocabulary, tokens, masking, longest=longest, seed=0)
    kept = held_out_batches(rows)
    texts, left_out = kept.batches.rows, rows.count - kept.batches.rows
    if not texts:
        raise DataError(f"none of the {rows.count:,} texts has words and at most {longest} tokens")
    return {
        "split": split or Path(settings.data).name,
        "texts": texts,
        **({"left_out": left_out} if left_out else {}),
        "tokens": kept.batches.tokens,
        **masked_figures(network, kept, filler.device),
    }


def eval_command(
    run: RunArgument,
    /,
    *,
    held_out: HeldOut = HeldOut(),  # noqa: B008
    device: str = "auto",
    json: bool = False,
) -> None:
    """Loss, perplexity and accuracy at hidden words of texts that the run was not trained on.

    The same words are hidden each time, so that runs with one tokenizer can be compared.

    Args:
        run: folder of the run, such as runs/bert.
        held_out: which data to score on.
        device: cpu, cuda …; auto takes the fastest there is.
        json: print everything as JSON.
    """
    model = load(run, device=device)
    with busy("scoring"):
        found = held_out.kept(run, evaluate(model, held_out))
    print_json(found) if json else print_scores(found)


def look_command(
    run: RunArgument,
    texts: TextArguments = (),
    /,
    *,
    asked: TextLookOptions = TextLookOptions(),  # noqa: B008
) -> None:
    """Show which words each word of a text looks at, its blanks too.

    On the terminal every word is shaded by its weight; elsewhere the three that weigh most are
    listed. With --out it goes to a file: .html is a page with every layer and head and the words
    for each blank, that works without a network; .png and .svg are pictures for papers; .json has
    the numbers. --layer rollout shows what was read through all layers together.

    Args:
        run: folder of the run.
        texts: the text that is read, a file of it, or - for standard input.
        asked: what is looked at, and where that goes.
    """
    look_at_words(run, texts, asked, check=check_look, document=masked_document)


KIND = Kind(
    name="masked",
    load=_load,
    predict=predict_command,
    evaluate=eval_command,
    look=look_command,
    serving=MaskedServing(),
    exports=MASKED,
)
