"""Language modelling: a prompt in, what follows out, and what each word looked back at."""

from dataclasses import dataclass
from functools import partial
from math import log
from pathlib import Path
from typing import Any, overload

from saccade.app.api import load
from saccade.app.cli.inputs import input_lines
from saccade.app.cli.options import RunArgument, TextArguments
from saccade.app.cli.output import busy, print_json, print_scores
from saccade.app.export.ctranslate2 import Quantization
from saccade.app.export.engine import CTranslate2Writer
from saccade.app.export.text.write import LANGUAGE
from saccade.app.export.words import EXPORTS
from saccade.app.kinds.base import (
    Engine,
    HeldOut,
    Kind,
    LoadedRun,
    TrainedModel,
    refuse_settings,
    text_given,
    texts_given,
)
from saccade.app.kinds.language.serve import LanguageServing
from saccade.app.kinds.soundness import load_vocabulary
from saccade.app.kinds.text_lines import Rows, predict_lines
from saccade.app.kinds.text_looks import TextLookOptions, look_at_words
from saccade.app.kinds.writing import WritingOptions, writing_decoding
from saccade.app.look.draw.figure import MatrixLook
from saccade.app.look.language import language_document, language_look, text_side
from saccade.app.look.settings import LookSettings, make_selection
from saccade.data.readers import splits
from saccade.data.three_sentences import SENTENCES
from saccade.errors import DataError
from saccade.tasks.base import Progress, silent
from saccade.tasks.corpus import CorpusEncoder
from saccade.tasks.figures import loss_figures
from saccade.tasks.language.task import LanguageSettings, read_language, texts_loss
from saccade.tasks.language.writer import Generated, Writer
from saccade.tasks.plain_texts import text_part
from saccade.train.recipe import Recipe


@dataclass(frozen=True)
class LanguagePrediction:
    """A prompt with what was written after it: text, score, the rest of the n-best list, looks."""

    prompt: str
    text: str
    score: float
    log_probability: float
    finished: bool
    others: tuple["LanguagePrediction", ...]
    _generated: Generated
    _model: "LanguageModel"

    @property
    def tokens(self) -> list[int]:
        """Of the prompt and of what was written."""
        return self._generated.tokens

    def look(self, **select: Any) -> MatrixLook:
        """Where each word of the text looked, that of the prompt and what was written."""
        return self._model.look_at(self.prompt, LookSettings(), self._generated, **select)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"LanguagePrediction({self.text!r}, score={self.score:.4g})"


class LanguageModel(TrainedModel[Writer]):
    """A trained language model; `engine` decodes in place of our own search."""

    def __init__(
        self, name: str, recipe: Recipe, tool: Writer, engine: CTranslate2Writer | None = None
    ) -> None:
        super().__init__(name, recipe, tool)
        self.engine = engine

    @overload
    def predict(
        self, prompt: str = ..., *, count: int = ..., most_tokens: int = ..., **decoding: Any
    ) -> list[LanguagePrediction]: ...
    @overload
    def predict(
        self, prompt: list[str], *, count: int = ..., most_tokens: int = ..., **decoding: Any
    ) -> list[LanguagePrediction]: ...
    def predict(
        self, prompt: Any = "", *, count: int = 1, most_tokens: int = 100, **decoding: Any
    ) -> list[LanguagePrediction]:
        """Go on from a prompt `count` times; of a list of prompts, from each in turn.

        Words are drawn at random unless a search is asked for: a beam, or `sample=False`.
        """
        how = writing_decoding(decoding, count=count)
        writer = self.engine or self.tool
        return [
            self._prediction(one)
            for text in texts_given(prompt)
            for one in writer.write(text, how, count=count, most_tokens=most_tokens)
        ]

    def look(self, text: str, settings: LookSettings | None = None, **select: Any) -> MatrixLook:
        """Where each word of a text looked, and of what follows it if that is asked for.

        `select` are the fields of `Selection`, such as layer=0 or units="words".
        """
        how, text = settings or LookSettings(), text_given(text)
        check_look(self.name, how)
        written = None
        if how.most_tokens:
            text_side(self.tool, self.tool.begin(text), make_selection(select))
            (written,) = self.tool.write(text, how.drawing, most_tokens=how.most_tokens)
        return self.look_at(text, how, written, **select)

    def look_at(
        self, text: str, how: LookSettings, written: Generated | None, **select: Any
    ) -> MatrixLook:
        """The same of what was written already."""
        document = partial(language_document, [self], text, how, written=written)
        return language_look(self, text, make_selection(select), document, written)

    def _prediction(self, one: Generated) -> LanguagePrediction:
        others = tuple(map(self._prediction, one.others))
        figures = one.score, one.log_probability, one.finished
        return LanguagePrediction(one.prompt, one.text, *figures, others, one, self)


def check_look(name: str, how: LookSettings) -> None:
    """Refuse settings that would be left unused."""
    refuse_settings(how, f"{name} writes without a search", "beam", "length_penalty")
    if not how.most_tokens:
        why = "it is of what is written after the text, and most_tokens is 0"
        refuse_settings(how, why, "sample", "temperature", "seed")
    elif not how.sample:
        why = "it is of words drawn at random, and sample is off"
        refuse_settings(how, why, "temperature", "seed")


def _load(run: LoadedRun) -> LanguageModel:
    settings = run.recipe.task
    assert isinstance(settings, LanguageSettings)
    tool = Writer(run.network, load_vocabulary(run), settings)
    return LanguageModel(run.name, run.recipe, tool)


def _with_engine(model: LanguageModel, exported: Path) -> LanguageModel:
    engine = CTranslate2Writer(exported, model.tool)
    return LanguageModel(model.name, model.recipe, model.tool, engine)


def predict_command(
    run: RunArgument,
    texts: TextArguments = (),
    /,
    *,
    text: tuple[str, ...] = (),
    writing: WritingOptions = WritingOptions(),  # noqa: B008
    engine: Engine = "saccade",
    engine_precision: Quantization = "float32",
    skip_bad: int = 0,
    device: str = "auto",
    json: bool = False,
) -> None:
    """Go on writing from prompts, or from nothing.

    Prompts come from the command line, from a file that is named there, or with - from standard
    input, one a line. What looks like a path must be a file; a blank line gives a blank line. Words
    are drawn at random unless a search is asked for, as --beam 1.

    With --engine ctranslate2 that engine decodes (pip install 'saccade[export]'): the run is
    exported into its own folder when it is first used, and again when its weights have changed.

    Args:
        run: folder of the run.
        texts: prompts, or a file of them; none: begin a text.
        text: prompts that are no file, whatever they look like.
        writing: how the next word is chosen.
        engine: who decodes: saccade, or ctranslate2 for GPT runs.
        engine_precision: how ctranslate2 holds the weights; int8 is fastest on CPUs.
        skip_bad: this many lines that are no text are answered with a blank one; one more stops.
        device: cpu, cuda …; auto takes the fastest there is.
        json: print scores as well, as JSON.
    """
    how = writing.decoding
    lines = input_lines(texts, text if texts or text else ("",), skip_bad=skip_bad)
    with busy("loading"):
        loaded = load(run, device=device, engine=engine, engine_precision=engine_precision)
    model: LanguageModel = loaded
    sizes: dict[str, Any] = {"count": writing.count, "most_tokens": writing.most_tokens}

    def predict(some: list[str], first: int, progress: Progress) -> list[Rows]:
        made: list[Rows] = []
        for prompt in some:
            found = (model.engine or model.tool).write(prompt, how, **sizes)
            made.append([_as_table(one) for one in found])
            progress(len(made), len(some))
        return made

    blank: Rows = [{"prompt": "", "text": "", "score": None}] * writing.count * how.n_best
    predict_lines(
        lines,
        predict,
        blank=blank,
        check=lambda prompt: model.tool.most(model.tool.begin(prompt), 1),
        doing="writing",
        json=json,
        keeps_lines=model.tool.settings.unit == "stream",
    )


def _as_table(one: Generated) -> dict[str, Any]:
    figures = ("prompt", "text", "score", "log_probability", "finished")
    table = {name: vars(one)[name] for name in figures}
    return {**table, "others": list(map(_as_table, one.others))} if one.others else table


def evaluate(
    model: LanguageModel,
    held_out: HeldOut = HeldOut(),  # noqa: B008
) -> dict[str, Any]:
    """Every score by name."""
    writer, settings = model.tool, held_out.settings(model.tool.settings)
    network: Any = writer.model
    split = held_out.choose(settings, splits)
    encoder = CorpusEncoder(writer.vocabulary, silent)
    (encoded,) = encoder.encode(text_part(settings, split, read_language)).columns
    kept = encoded
    if settings.unit == "lines" and writer.reach is not None:  # which begins with a start
        kept = encoded.where(encoded.lengths < writer.reach)
    if not len(kept):
        raise DataError(
            f"none of the {len(encoded):,} lines has under {writer.reach} tokens, and {model.name} "
            "sees no more; give shorter ones"
        )
    special = writer.vocabulary.special
    loss = texts_loss(network, kept, special, settings.unit, writer.device)
    found: dict[str, Any] = {
        "split": split or Path(settings.data).name,
        "texts": len(kept),
        **({"left_out": len(encoded) - len(kept)} if len(kept) < len(encoded) else {}),
        "tokens": int(kept.lengths.sum()),
        **loss_figures(loss),
        "bits_per_token": loss / log(2),
    }
    return found if settings.data else found | _three_sentences(model)


def _three_sentences(model: LanguageModel, *, count: int = 1000) -> dict[str, Any]:
    """How many of the model's own sentences belong to the world, with and without feed-back."""
    fed = [one.text for one in model.predict("", count=count, most_tokens=20)]
    cut = model.tool.without_feedback(count, seed=0)
    return {
        "samples": count,
        "of_the_world": sum(text in SENTENCES for text in fed),
        "shares": {sentence: fed.count(sentence) / count for sentence in SENTENCES},
        "of_the_world_without_feedback": sum(text in SENTENCES for text in cut),
        "nonsense": [text for text in dict.fromkeys(cut) if text not in SENTENCES][:5],
    }


def eval_command(
    run: RunArgument,
    /,
    *,
    held_out: HeldOut = HeldOut(),  # noqa: B008
    device: str = "auto",
    json: bool = False,
) -> None:
    """Loss and perplexity on text that the run was not trained on.

    In the built-in world also how many of a thousand sentences of its own belong to it.

    Args:
        run: folder of the run, such as runs/gpt.
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
    """Show which earlier words each word of a text looks at.

    On the terminal every word is shaded by its weight; elsewhere the three that weigh most are
    listed. With --out it goes to a file: .html is a page with every layer and head and exact
    zoom, that works without a network; .png and .svg are pictures for papers; .json has the
    numbers.

    Args:
        run: folder of the run.
        texts: the text that is read, a file of it, or - for standard input.
        asked: what is looked at, and where that goes.
    """
    look_at_words(
        run,
        texts,
        asked,
        check=check_look,
        document=language_document,
        writes=lambda how: how.most_tokens > 0,
    )


KIND = Kind(
    name="language",
    load=_load,
    predict=predict_command,
    evaluate=eval_command,
    look=look_command,
    serving=LanguageServing(),
    with_engine=_with_engine,
    exports={**EXPORTS, **LANGUAGE},
)
