"""Translation: sentences in, sentences out, and which source words each word looked at."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, overload

from saccade.app.api import load
from saccade.app.cli.inputs import input_lines
from saccade.app.cli.options import RunArgument, TextArguments
from saccade.app.cli.output import busy, counting, print_json, print_scores
from saccade.app.export.ctranslate2 import Quantization
from saccade.app.export.engine import CTranslate2Translator
from saccade.app.export.text.write import TRANSLATION
from saccade.app.export.words import EXPORTS
from saccade.app.kinds.base import (
    OF_WRITING,
    Engine,
    HeldOut,
    Kind,
    LoadedRun,
    TrainedModel,
    make_decoding,
    refuse_settings,
    text_given,
    texts_given,
)
from saccade.app.kinds.soundness import load_vocabulary
from saccade.app.kinds.text_lines import Rows, predict_lines
from saccade.app.kinds.text_looks import TextLookOptions, look_at_words
from saccade.app.kinds.translation.serve import TranslationServing
from saccade.app.look.draw.figure import MatrixLook
from saccade.app.look.settings import LookSettings, make_selection
from saccade.app.look.translation import translation_document, translation_look
from saccade.attention.look.glance import Glance
from saccade.data.readers import splits
from saccade.decode.engine import Decoding
from saccade.errors import ConfigError
from saccade.metrics.translation import Tokenize
from saccade.tasks.base import Progress, silent
from saccade.tasks.translation.evaluate import Comparing, evaluate_translations
from saccade.tasks.translation.scored_pairs import ScoredPairs, scored_pairs
from saccade.tasks.translation.task import TranslationSettings
from saccade.tasks.translation.translator import Translated, Translator
from saccade.train.recipe import Recipe


@dataclass(frozen=True)
class Prediction:
    """A translation: its text, its score, the rest of the n-best list, and where it looked."""

    source: str
    text: str
    score: float
    others: tuple["Prediction", ...]
    _translated: Translated
    _model: "TranslationModel"
    _how: Decoding

    @property
    def attention(self) -> dict[str, Glance]:
        """What each site that looks at the source saw, a row per token and one for the end."""
        return self._watched().attention

    def _watched(self) -> Translated:
        return self._model.tool.watched(self._translated)

    def look(self, **select: Any) -> MatrixLook:
        """Where the model looked for each word; `select` are the fields of `Selection`."""
        how = LookSettings(beam=self._how.beam, length_penalty=self._how.length_penalty)
        return translation_look(
            self._model,
            self._translated,
            make_selection(select),
            lambda: translation_document(
                [self._model], self.source, how, decoding=self._how, predicted=self._translated
            ),
        )

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Prediction({self.text!r}, score={self.score:.4g})"


class TranslationModel(TrainedModel[Translator]):
    """A trained translator; `engine` decodes in place of our own search."""

    def __init__(
        self,
        name: str,
        recipe: Recipe,
        tool: Translator,
        engine: CTranslate2Translator | None = None,
    ) -> None:
        super().__init__(name, recipe, tool)
        self.engine = engine

    @overload
    def predict(self, text: str, *, look: bool = ..., **decoding: Any) -> Prediction: ...
    @overload
    def predict(
        self, text: list[str], *, look: bool = ..., progress: Progress = ..., **decoding: Any
    ) -> list[Prediction]: ...
    def predict(
        self, text: Any, *, look: bool = False, progress: Progress = silent, **decoding: Any
    ) -> Prediction | list[Prediction]:
        """Translate a sentence or many; `decoding` are the fields of `Decoding`, such as beam=1."""
        how, texts = make_decoding(decoding), texts_given(text)
        if look and not self.tool.looks:
            raise ConfigError(f"{self.name} has no attention to look at")
        ordered = self.translate(texts, how, look=look, progress=progress)
        return ordered[0] if isinstance(text, str) else ordered

    def translate(
        self,
        texts: list[str],
        how: Decoding,
        *,
        first: int = 0,
        look: bool = False,
        progress: Progress = silent,
    ) -> list[Prediction]:
        """Translate texts, of which the `first` has this number: drawn words depend on it."""
        made: dict[int, Prediction] = {}
        streams = list(range(first, first + len(texts)))
        found = None
        if self.engine is not None:  # whose draws know no streams
            found = self.engine.translate(texts, replace(how, seed=how.seed ^ first))
        for row, translated in found or self.tool.translate(texts, how, look=look, streams=streams):
            made[row] = self._prediction(self.tool.watched(translated) if look else translated, how)
            progress(len(made), len(texts))
        return [made[row] for row in range(len(texts))]

    def look(self, text: str, settings: LookSettings | None = None, **select: Any) -> MatrixLook:
        """Translate a text and show where the model looked for each word.

        `select` are the fields of `Selection`, such as layer=0 or units="pieces".
        """
        how = settings or LookSettings()
        check_look(self.name, how)
        made = self.predict(text_given(text), beam=how.beam, length_penalty=how.length_penalty)
        return made.look(**select)

    def _prediction(self, one: Translated, how: Decoding) -> Prediction:
        others = tuple(self._prediction(other, how) for other in one.others)
        return Prediction(one.source, one.text, one.score, others, one, self, how)


def _load(run: LoadedRun) -> TranslationModel:
    return TranslationModel(run.name, run.recipe, Translator(run.network, load_vocabulary(run)))


def _with_engine(model: TranslationModel, exported: Path) -> TranslationModel:
    engine = CTranslate2Translator(exported, model.tool)
    return TranslationModel(model.name, model.recipe, model.tool, engine)


def predict_command(
    run: RunArgument,
    texts: TextArguments = (),
    /,
    *,
    text: tuple[str, ...] = (),
    decoding: Decoding = Decoding(beam=5),  # noqa: B008
    engine: Engine = "saccade",
    engine_precision: Quantization = "float32",
    skip_bad: int = 0,
    device: str = "auto",
    json: bool = False,
) -> None:
    """Translate sentences.

    Sentences come from the command line, from a file that is named there, or, with none or with -,
    from standard input, a sentence a line. What looks like a path must be a file. Translations come
    out in the same order, one a line, each as soon as it is known; a blank line gives a blank line.

    With --engine ctranslate2 that engine decodes (pip install 'saccade[export]'): the run is
    exported into its own folder when it is first used, and again when its weights have changed.

    Args:
        run: folder of the run.
        texts: sentences, or a file of them.
        text: sentences that are no file, whatever they look like.
        decoding: how the next word is chosen.
        engine: who decodes: saccade, or ctranslate2 for Transformer runs.
        engine_precision: how ctranslate2 holds the weights; int8 is fastest on CPUs.
        skip_bad: this many lines that are no text are answered with a blank one; one more stops.
        device: cpu, cuda …; auto takes the fastest there is.
        json: print scores as well, as JSON.
    """
    how, lines = make_decoding(vars(decoding)), input_lines(texts, text, skip_bad=skip_bad)
    with busy("loading"):
        loaded = load(run, device=device, engine=engine, engine_precision=engine_precision)
    model: TranslationModel = loaded

    def predict(some: list[str], first: int, progress: Progress) -> list[Rows]:
        found = model.translate(some, how, first=first, progress=progress)
        return [[_as_table(one)] for one in found]

    nothing: dict[str, Any] = {"text": "", "score": None}
    others = {"others": [nothing] * (how.n_best - 1)} if how.n_best > 1 else {}
    blank: Rows = [{"source": "", **nothing, **others}]
    doing: dict[str, Any] = {"check": model.tool.encode, "doing": "translating"}
    predict_lines(lines, predict, blank=blank, json=json, **doing)


def _as_table(prediction: Prediction) -> dict[str, Any]:
    table = {"source": prediction.source, "text": prediction.text, "score": prediction.score}
    others = [{"text": other.text, "score": other.score} for other in prediction.others]
    return {**table, "others": others} if others else table


def evaluate(
    model: TranslationModel,
    *,
    held_out: HeldOut = HeldOut(),  # noqa: B008
    languages: tuple[str, ...] = (),
    how: Decoding = Decoding(),  # noqa: B008
    lowercase: bool = False,
    tokenize: Tokenize = "auto",
    ter_seconds: float = 60.0,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Every score by name."""
    name, corpus = _corpus(model, held_out, languages)
    comparing = Comparing(lowercase=lowercase, tokenize=tokenize, ter_seconds=ter_seconds)
    given: dict[str, Any] = {"how": how, "comparing": comparing, "progress": progress}
    return {"split": name, **evaluate_translations(model.tool, corpus, **given)}


def _corpus(
    model: TranslationModel, held_out: HeldOut, languages: tuple[str, ...]
) -> tuple[str, ScoredPairs]:
    """What to score on: its split, or where all of a file is scored that file's name."""
    settings = model.recipe.task
    assert isinstance(settings, TranslationSettings)
    if languages and not held_out.data:
        raise ConfigError("--source and --target are languages of --data; name that, too")
    asked = held_out.settings(settings, **dict(zip(("source", "target"), languages)))
    split = held_out.choose(asked, lambda path: splits(path, source=asked.source))
    return split or Path(asked.data).name, scored_pairs(asked, split)


def eval_command(
    run: RunArgument,
    /,
    *,
    held_out: HeldOut = HeldOut(),  # noqa: B008
    source: str = "",
    target: str = "",
    beam: int = 5,
    length_penalty: float = 1.0,
    lowercase: bool = False,
    tokenize: Tokenize = "auto",
    ter_seconds: float = 60.0,
    device: str = "auto",
    json: bool = False,
) -> None:
    """Score translations of data that the run was not trained on.

    BLEU, chrF and TER by sacreBLEU with their signatures, BLEU by sentence length, perplexity, and
    on lingua the alignment error rate of the attention. Lengths count words, or characters where a
    script has no blanks.

    Args:
        run: folder of the run, such as runs/transformer.
        held_out: which data to score on.
        source: language translated from, in data other than the run's own.
        target: language translated into.
        beam: hypotheses kept while decoding; 1 is greedy.
        length_penalty: 0 ranks by probability alone, more favours longer sentences.
        lowercase: compare without regard to case.
        tokenize: what BLEU counts as a word, in sacreBLEU's names; auto goes by the script of the
            references and says what it took.
        ter_seconds: after so long TER is given up; repetitive sentences take it very long.
        device: cpu, cuda …; auto takes the fastest there is.
        json: print everything as JSON.
    """
    how = Decoding(beam=beam, length_penalty=length_penalty)
    model = load(run, device=device)
    with counting("decoding") as progress:
        languages = (source, target) if source or target else ()
        where: dict[str, Any] = {"held_out": held_out, "languages": languages}
        where |= {"lowercase": lowercase, "tokenize": tokenize, "ter_seconds": ter_seconds}
        found = held_out.kept(run, evaluate(model, **where, how=how, progress=progress))
    print_json(found) if json else print_scores(found)


def check_look(name: str, how: LookSettings) -> None:
    """Refuse what a translator has no use for."""
    refuse_settings(how, f"{name} translates, and ends by itself", *OF_WRITING)


def look_command(
    run: RunArgument,
    texts: TextArguments = (),
    /,
    *,
    asked: TextLookOptions = TextLookOptions(),  # noqa: B008
) -> None:
    """Translate a text and show which source words each word was read from.

    On the terminal every source word is shaded by its weight; elsewhere the three that weigh most
    are listed. With --out it goes to a file: .html is a page with every layer and head, beams and
    exact zoom, that works without a network; .png and .svg are pictures for papers; .json has the
    numbers.

    Args:
        run: folder of the run.
        texts: the text that is translated, a file of it, or - for standard input.
        asked: what is looked at, and where that goes.
    """
    look_at_words(
        run, texts, asked, check=check_look, document=translation_document, writes=lambda how: True
    )


KIND = Kind(
    name="translation",
    load=_load,
    predict=predict_command,
    evaluate=eval_command,
    look=look_command,
    serving=TranslationServing(),
    with_engine=_with_engine,
    exports={**EXPORTS, **TRANSLATION},
)
