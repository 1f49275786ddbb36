"""Language modelling: a prompt in, what follows out, and what each word looked back at."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import log
from pathlib import Path
from typing import Annotated, Any

import tyro
from torch import nn

from saccade.app.api import load
from saccade.app.cli.inputs import one_text, texts_of, with_zoom
from saccade.app.cli.output import busy, print_json, print_scores
from saccade.app.cli.text_look import look_at_text
from saccade.app.export.ctranslate2 import Quantization
from saccade.app.export.engine import CTranslate2Writer
from saccade.app.kinds.base import Engine, Kind, LoadedRun, Serving, load_alike, make_decoding
from saccade.app.look.draw.figure import MatrixLook
from saccade.app.look.language import language_document
from saccade.app.look.settings import LookSettings
from saccade.app.serve.draft import Draft
from saccade.app.serve.http.errors import invalid
from saccade.app.serve.steps import PredictFields, ServedJob, Steps, check_length, figures
from saccade.attention.look.glance import Keep
from saccade.data.ragged import Ragged
from saccade.data.three_sentences import SENTENCES
from saccade.data.vocabulary import Vocabulary
from saccade.decode.engine import Decoding
from saccade.tasks.figures import loss_figures
from saccade.tasks.language.task import LanguageSettings, read_language, texts_loss
from saccade.tasks.language.teacher_forced import teacher_forced_text
from saccade.tasks.language.writer import Generated, Writer
from saccade.tasks.tokenizer import TOKENIZER
from saccade.train.recipe import Recipe

LARGEST_MAP = 256  # cells to a side


class LanguageModel:
    """A trained language model; `engine` decodes in place of our own search."""

    def __init__(
        self, name: str, recipe: Recipe, tool: Writer, engine: CTranslate2Writer | None = None
    ) -> None:
        self.name, self.recipe, self.tool, self.engine = name, recipe, tool, engine

    @property
    def network(self) -> nn.Module:
        """The module itself."""
        return self.tool.model

    def predict(
        self, prompt: str = "", *, count: int = 1, most_tokens: int = 100, **decoding: Any
    ) -> list[Generated]:
        """Go on from a prompt `count` times; samples unless told `sample=False`."""
        how = make_decoding({"sample": True, **decoding})
        writer = self.engine or self.tool
        return writer.write(prompt, how, count=count, most_tokens=most_tokens)

    def look(self, text: str, settings: LookSettings | None = None) -> MatrixLook:
        """Where each word of a text looked; the picture is of the last layer.

        A long text is drawn in cells of several words.
        """
        how = settings or LookSettings()
        tokens = self.tool.begin(text)
        seen = teacher_forced_text(self.tool, tokens, keep=Keep(map_side=LARGEST_MAP, top=0))
        site, glance = list(seen.sites.items())[-1]
        assert glance.mean_map is not None
        pieces, cell = self.tool.vocabulary.pieces(tokens), glance.cell[0]
        labels = pieces[::cell] if cell == 1 else [f"{piece}…" for piece in pieces[::cell]]
        return MatrixLook(
            rows=labels,
            columns=labels,
            weights=glance.mean_map[0].mean(dim=0),
            title=f"{self.name}: {site}, mean over heads"
            + (f", cells of {cell} × {cell} words" if cell > 1 else ""),
            caption=text,
            document=lambda: language_document([self], text, how),
        )


def _load(run: LoadedRun) -> LanguageModel:
    settings = run.recipe.task
    assert isinstance(settings, LanguageSettings)
    tool = Writer(run.network, Vocabulary.load(run.asset(TOKENIZER)), settings)
    return LanguageModel(run.name, run.recipe, tool)


def _with_engine(model: LanguageModel, exported: Path) -> LanguageModel:
    engine = CTranslate2Writer(exported, model.tool)
    return LanguageModel(model.name, model.recipe, model.tool, engine)


def predict_command(
    run: tyro.conf.Positional[str],
    text: tyro.conf.Positional[tuple[str, ...]] = (),
    /,
    *,
    decoding: Decoding = Decoding(beam=5),  # noqa: B008
    count: int = 1,
    most_tokens: int = 100,
    engine: Engine = "saccade",
    engine_precision: Quantization = "float32",
    device: str = "auto",
    json: bool = False,
) -> None:
    """Go on writing from prompts, or from nothing.

    Prompts come from the command line, from a file that is named there, or with - from standard
    input, one a line. Words are drawn at random unless a search is asked for, as --beam 1.

    With --engine ctranslate2 that engine decodes (pip install 'saccade[export]'): the run is
    exported into its own folder when it is first used, and again when its weights have changed.

    Args:
        run: folder of the run.
        text: prompts, or a file of them; none: begin a text.
        decoding: how the next word is chosen.
        count: how many texts are written for each prompt.
        most_tokens: where a text stops at the latest.
        engine: who decodes: saccade, or ctranslate2 for GPT runs.
        engine_precision: how ctranslate2 holds the weights; int8 is fastest on CPUs.
        device: cpu, cuda …; auto takes the fastest there is.
        json: print scores as well, as JSON.
    """
    with busy("loading"):
        model = load(run, device=device, engine=engine, engine_precision=engine_precision)
    fields = {**vars(decoding), "sample": decoding.sample or decoding.beam == 5}
    written = [
        one
        for prompt in (texts_of(text) if text else [""])
        for one in model.predict(prompt, count=count, most_tokens=most_tokens, **fields)
    ]
    if json:
        print_json([{k: v for k, v in vars(one).items() if k != "tokens"} for one in written])
    else:
        for one in written:
            print(one.text)


def evaluate(model: LanguageModel, *, split: str = "test", data: str = "") -> dict[str, Any]:
    """Every score by name."""
    writer, settings = model.tool, model.tool.settings
    network: Any = writer.model
    texts, _ = read_language(replace(settings, data=data) if data else settings, split)
    encoded = Ragged.of(writer.vocabulary.encode_all(texts))
    special = writer.vocabulary.special
    loss = texts_loss(network, encoded, special, settings.unit, writer.device)
    found: dict[str, Any] = {
        "split": split,
        "texts": len(texts),
        "tokens": len(encoded.flat),
        **loss_figures(loss),
        "bits_per_token": loss / log(2),
    }
    return found if settings.data or data else found | _three_sentences(model)


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
    run: tyro.conf.Positional[str],
    /,
    *,
    split: str = "test",
    data: str = "",
    device: str = "auto",
    json: bool = False,
) -> None:
    """Loss and perplexity on text that the run was not trained on.

    In the built-in world also how many of a thousand sentences of its own belong to it.

    Args:
        run: folder of the run, such as runs/gpt.
        split: test, valid, or a test file's name.
        data: score on other data than the run's own.
        device: cpu, cuda …; auto takes the fastest there is.
        json: print everything as JSON.
    """
    model = load(run, device=device)
    with busy("scoring"):
        found = evaluate(model, split=split, data=data)
    print_json(found) if json else print_scores(found)


def look_command(
    run: tyro.conf.Positional[str],
    text: tyro.conf.Positional[tuple[str, ...]] = (),
    /,
    *,
    out: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None,
    settings: LookSettings = LookSettings(),  # noqa: B008
    compare: str | None = None,
    zoom: tuple[str, ...] = (),
    device: str = "auto",
) -> None:
    """Show which earlier words each word of a text looks at.

    On the terminal every word is shaded by its weight; elsewhere the three that weigh most are
    listed. With --out it goes to a file: .html is a page with every layer and head and exact
    zoom, that works without a network; .png and .svg are pictures for papers; .json has the
    numbers.

    Args:
        run: folder of the run.
        text: the text that is read, or a file of it.
        out: a .html, .png, .svg or .json file.
        settings: what to look at, and how large a page may become.
        compare: a second run, to be looked at beside the first; needs --out x.html.
        zoom: heads to keep exactly on the page, as decoder.3.self:7; the sharpest by default.
        device: cpu, cuda …; auto takes the fastest there is.
    """
    models = load_alike(run, compare, device)
    how = with_zoom(settings, zoom)
    look_at_text(models, one_text(text), how, out, language_document)


class _LanguageServing(Serving):
    draws = True

    def refuse(self, run: str, fields: PredictFields) -> None:
        if fields.n_best > 1:
            raise invalid(f"{run} is a language run: ask for count instead of n_best", "n_best")

    def check(self, run: str, tool: Writer, given: str) -> None:
        check_length(run, len(tool.begin(given)), tool.reach)

    def predict(self, tool: Writer, jobs: Sequence[ServedJob], steps: Steps) -> None:
        for job in jobs:
            made = list[dict[str, Any]]()
            for prompt in job.work.given:
                made += _written(tool, prompt, job, steps)
            if not job.gone:
                job.finish(made)

    def look(self, models: list[Any], given: str, settings: LookSettings) -> Any:
        return language_document(models, given, settings)


def _written(tool: Writer, prompt: str, job: ServedJob, steps: Steps) -> Iterator[dict[str, Any]]:
    begun, work = tool.begin(prompt), job.work
    draft = Draft(lambda tokens: tool.vocabulary.decode([*begun, *tokens]), work.how)
    on_step = steps.on_step([job] * work.count, [draft] * work.count)
    if job.gone:
        return
    sizes: dict[str, int] = {"count": work.count, "most_tokens": work.most_tokens}
    for one in tool.write(prompt, work.how, **sizes, on_step=on_step):
        steps.wrote(len(one.tokens) - len(begun))
        yield {"prompt": one.prompt, **figures(one), "others": []}


KIND = Kind(
    name="language",
    load=_load,
    predict=predict_command,
    evaluate=eval_command,
    look=look_command,
    serving=_LanguageServing(),
    with_engine=_with_engine,
)
