"""Translation: sentences in, sentences out, and which source words each word looked at."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, overload

import torch
import tyro
from torch import nn

from saccade.app.api import load
from saccade.app.cli.inputs import one_text, texts_of, with_zoom
from saccade.app.cli.output import busy, counting, print_json, print_scores
from saccade.app.cli.text_look import look_at_text
from saccade.app.export.ctranslate2 import Quantization
from saccade.app.export.engine import CTranslate2Translator
from saccade.app.kinds.base import Engine, Kind, LoadedRun, Serving, load_alike, make_decoding
from saccade.app.kinds.soundness import load_vocabulary
from saccade.app.look.draw.figure import MatrixLook
from saccade.app.look.settings import LookSettings, Selection, make_selection
from saccade.app.look.translation import translation_document, translation_look
from saccade.app.serve.http.errors import invalid
from saccade.app.serve.steps import (
    PredictFields,
    ServedJob,
    Steps,
    check_length,
    refuse_writing,
    search_together,
    with_others,
)
from saccade.attention.look.glance import Glance
from saccade.data.lingua import AlignedPair
from saccade.data.words import length_in_words
from saccade.decode.engine import Decoding
from saccade.decode.protocol import OnStep
from saccade.errors import ConfigError
from saccade.metrics.alignment import alignment_error_rate, best_links
from saccade.metrics.translation import Tokenize, score_translations
from saccade.tasks.base import Progress, silent
from saccade.tasks.figures import loss_figures
from saccade.tasks.translation.task import TranslationSettings, pairs_loss, read_corpus
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


class TranslationModel:
    """A trained translator; `engine` decodes in place of our own search."""

    def __init__(
        self,
        name: str,
        recipe: Recipe,
        tool: Translator,
        engine: CTranslate2Translator | None = None,
    ) -> None:
        self.name, self.recipe, self.tool, self.engine = name, recipe, tool, engine

    @property
    def network(self) -> nn.Module:
        """The module itself, for `saccade.looking` and for anything else that torch can do."""
        return self.tool.model

    @overload
    def predict(self, text: str, *, look: bool = ..., **decoding: Any) -> Prediction: ...
    @overload
    def predict(
        self, text: list[str], *, look: bool = ..., progress: Progress = ..., **decoding: Any
    ) -> list[Prediction]: ...
    def predict(
        self,
        text: str | list[str],
        *,
        look: bool = False,
        progress: Progress = silent,
        **decoding: Any,
    ) -> Prediction | list[Prediction]:
        """Translate a sentence or many; `decoding` are the fields of `Decoding`, such as beam=1."""
        texts = [text] if isinstance(text, str) else text
        how = make_decoding(decoding)
        if look and not self.tool.looks:
            raise ConfigError(f"{self.name} has no attention to look at")
        made: dict[int, Prediction] = {}
        found = self.engine.translate(texts, how) if self.engine is not None else None
        for row, translated in found or self.tool.translate(texts, how, look=look):
            made[row] = self._prediction(self.tool.watched(translated) if look else translated, how)
            progress(len(made), len(texts))
        ordered = [made[row] for row in range(len(texts))]
        return ordered[0] if isinstance(text, str) else ordered

    def look(self, text: str, settings: LookSettings | None = None, **select: Any) -> MatrixLook:
        """Translate a text and show where the model looked for each word.

        `select` are the fields of `Selection`, such as layer=0 or units="pieces".
        """
        how = settings or LookSettings()
        made = self.predict(text, beam=how.beam, length_penalty=how.length_penalty)
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
    run: tyro.conf.Positional[str],
    text: tyro.conf.Positional[tuple[str, ...]] = (),
    /,
    *,
    decoding: Decoding = Decoding(beam=5),  # noqa: B008
    engine: Engine = "saccade",
    engine_precision: Quantization = "float32",
    device: str = "auto",
    json: bool = False,
) -> None:
    """Translate sentences.

    Text comes from the command line, from a file that is named there, or, with none or with -,
    from standard input, a sentence a line. Translations come out in the same order, one a line.

    With --engine ctranslate2 that engine decodes (pip install 'saccade[export]'): the run is
    exported into its own folder when it is first used, and again when its weights have changed.

    Args:
        run: folder of the run.
        text: sentences, or a file of them.
        decoding: how the next word is chosen.
        engine: who decodes: saccade, or ctranslate2 for Transformer runs.
        engine_precision: how ctranslate2 holds the weights; int8 is fastest on CPUs.
        device: cpu, cuda …; auto takes the fastest there is.
        json: print scores as well, as JSON.
    """
    with busy("loading"):
        model = load(run, device=device, engine=engine, engine_precision=engine_precision)
    texts = list(texts_of(text or ("-",)))
    with counting("translating") as progress:
        predictions = model.predict(texts, progress=progress, **vars(decoding))
    if json:
        print_json([_as_table(prediction) for prediction in predictions])
        return
    for prediction in predictions:
        for one in (prediction, *prediction.others):
            print(one.text)


def _as_table(prediction: Prediction) -> dict[str, Any]:
    table = {"source": prediction.source, "text": prediction.text, "score": prediction.score}
    others = [{"text": other.text, "score": other.score} for other in prediction.others]
    return {**table, "others": others} if others else table


def evaluate(
    model: TranslationModel,
    *,
    split: str = "test",
    data: str = "",
    how: Decoding = Decoding(),  # noqa: B008
    lowercase: bool = False,
    tokenize: Tokenize = "auto",
    ter_seconds: float = 60.0,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Every score by name."""
    settings = model.recipe.task
    assert isinstance(settings, TranslationSettings)
    corpus = read_corpus(replace(settings, data=data) if data else settings, split)
    sources, references = map(list, zip(*corpus.pairs))
    begun = time.perf_counter()
    predictions = model.predict(sources, progress=progress, **vars(how))
    seconds = time.perf_counter() - begun
    texts = [prediction.text for prediction in predictions]
    scores = score_translations(
        texts,
        references,
        [length_in_words(text) for text in sources],
        lowercase=lowercase,
        tokenize=tokenize,
        ter_seconds=ter_seconds,
    )
    tool: Any = model.tool
    loss = pairs_loss(tool.model, tool.vocabulary, corpus.pairs, tool.device)
    found = {
        "split": split,
        "sentences": len(sources),
        **vars(scores),
        **loss_figures(loss),
        "exact": sum(a == b for a, b in zip(texts, references)) / len(texts),
        "seconds": seconds,
        "beam": how.beam,
    }
    return found | (_alignment(tool, corpus.aligned) if corpus.aligned and tool.looks else {})


def _alignment(tool: Translator, aligned: list[AlignedPair]) -> dict[str, Any]:
    """How well each attention aligns the words of given translations, against the truth."""
    links: dict[str, dict[int, set[tuple[int, int]]]] = {}
    for row, by_site in tool.align([(pair.source, pair.target) for pair in aligned]):
        together = torch.stack(list(by_site.values())).mean(dim=0)
        for site, weights in {**by_site, "mean": together}.items():
            links.setdefault(site, {})[row] = best_links(weights)
    sure, possible = [set(pair.sure) for pair in aligned], [set(pair.possible) for pair in aligned]
    rates = {
        site: alignment_error_rate([found[row] for row in range(len(aligned))], sure, possible)
        for site, found in links.items()
    }
    return {"alignment_error_rate": rates.pop("mean"), "alignment_error_by_site": rates}


def eval_command(
    run: tyro.conf.Positional[str],
    /,
    *,
    split: str = "test",
    data: str = "",
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
        split: test, valid, a test file's name, or compositional of lingua.
        data: score on other data than the run's own.
        beam: hypotheses kept while decoding; 1 is greedy.
        length_penalty: 0 ranks by probability alone, more favours longer sentences.
        lowercase: compare without regard to case.
        tokenize: what BLEU counts as a word, in sacreBLEU's names; auto goes by the script of the
            references and says what it took.
        ter_seconds: after so long TER is given up; repetitive sentences take it very long.
        device: cpu, cuda …; auto takes the fastest there is.
        json: print everything as JSON.
    """
    model = load(run, device=device)
    how = Decoding(beam=beam, length_penalty=length_penalty)
    with counting("decoding") as progress:
        where: dict[str, Any] = {"split": split, "data": data}
        where |= {"lowercase": lowercase, "tokenize": tokenize, "ter_seconds": ter_seconds}
        found = evaluate(model, **where, how=how, progress=progress)
    print_json(found) if json else print_scores(found)


def look_command(
    run: tyro.conf.Positional[str],
    text: tyro.conf.Positional[tuple[str, ...]] = (),
    /,
    *,
    out: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None,
    settings: LookSettings = LookSettings(),  # noqa: B008
    select: Selection = Selection(),  # noqa: B008
    compare: str | None = None,
    zoom: tuple[str, ...] = (),
    device: str = "auto",
) -> None:
    """Translate a text and show which source words each word was read from.

    On the terminal every source word is shaded by its weight; elsewhere the three that weigh most
    are listed. With --out it goes to a file: .html is a page with every layer and head, beams and
    exact zoom, that works without a network; .png and .svg are pictures for papers; .json has the
    numbers.

    Args:
        run: folder of the run.
        text: the text that is translated, or a file of it.
        out: a .html, .png, .svg or .json file.
        settings: what to look at, and how large a page may become.
        select: which weights are printed or drawn.
        compare: a second run, to be looked at beside the first; needs --out x.html.
        zoom: heads to keep exactly on the page, as decoder.3.self:7; the sharpest by default.
        device: cpu, cuda …; auto takes the fastest there is.
    """
    models = load_alike(run, compare, device)
    how = with_zoom(settings, zoom)
    look_at_text(models, one_text(text), how, out, translation_document, select, writes=True)


class _TranslationServing(Serving):
    def refuse(self, run: str, fields: PredictFields) -> None:
        refuse_writing(f"{run} translates", fields)

    def check(self, run: str, tool: Translator, given: str) -> int:
        if not given.strip():
            raise invalid("there is nothing to translate in an empty text", "text")
        tokens = len(tool.vocabulary.encode(given)) + 1  # and the end of the sentence
        return check_length(run, tokens, tool.longest)

    def predict(self, tool: Translator, jobs: Sequence[ServedJob], steps: Steps) -> None:
        def search(given: list[Any], on_step: OnStep) -> Iterator[tuple[int, Translated]]:
            streams = [0] * len(given)  # each draws what it would draw alone
            return tool.translate(given, jobs[0].work.how, streams=streams, on_step=on_step)

        def response(one: Translated) -> dict[str, Any]:
            return {"source": one.source, **with_others(one)}

        search_together(tool.vocabulary.decode, jobs, steps, search, response)

    def look(self, models: list[Any], given: str, settings: LookSettings) -> Any:
        return translation_document(models, given, settings)


KIND = Kind(
    name="translation",
    load=_load,
    predict=predict_command,
    evaluate=eval_command,
    look=look_command,
    serving=_TranslationServing(),
    with_engine=_with_engine,
)
