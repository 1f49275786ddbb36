"""The Python API: load a run, predict with it, look at what it looked at."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, overload

import torch
from jaxtyping import UInt8
from torch import Tensor, nn

from saccade.app.export.ctranslate2 import Quantization
from saccade.app.export.engine import CTranslate2Translator, CTranslate2Writer
from saccade.app.export.make import export_run
from saccade.app.look.captioning.document import caption_look
from saccade.app.look.captioning.images import SIDE, Shown
from saccade.app.look.captioning.look import PictureLook
from saccade.app.look.document import LookSettings, look_document
from saccade.app.look.draw.picture import Look
from saccade.attention.look.glance import Glance, Keep
from saccade.data.images.members import Member
from saccade.data.readers.images.tree import printable
from saccade.data.vocabulary import Vocabulary
from saccade.data.words import words
from saccade.decode.engine import Decoding
from saccade.errors import ConfigError, RunError
from saccade.tasks.captioning.captioner import Described, Describer, Picture, pixels_of
from saccade.tasks.captioning.data import CaptioningSettings, Progress, silent
from saccade.tasks.language.teacher_forced import reread_text
from saccade.tasks.language.writer import Generated, Writer
from saccade.tasks.translation.task import TranslationSettings
from saccade.tasks.translation.translator import Translated, Translator
from saccade.train.distributed import choose_device
from saccade.train.folder import RunFolder
from saccade.train.recipe import Recipe

Engine = Literal["saccade", "ctranslate2"]
LARGEST_PICTURE = 256  # cells to a side


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
        """What each site that looks at the source saw, a row per token and one for the end.

        The rows are those of this hypothesis: they followed it through the beam.
        """
        return self._seen().attention

    def _seen(self) -> Translated:
        if self._translated.attention:
            return self._translated
        again = self._model.predict(self.source, look=True, **vars(self._how))
        same = (one for one in (again, *again.others) if one.text == self.text)
        return next(same, again)._translated

    def look(self) -> Look:
        """Where the model looked for each word."""
        model, translated = self._model, self._seen()
        how = LookSettings(beam=self._how.beam, length_penalty=self._how.length_penalty)
        return Look(
            rows=words(translated.text),
            columns=words(translated.source),
            weights=model.tool.words_looked_at(translated),
            title=f"{model.name}: attention to the source, mean over layers and heads",
            caption=translated.text,
            document=lambda: look_document(model, self.source, how),
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
        if look and self.engine is not None:
            raise ConfigError(
                "engine='ctranslate2' does not say where it looks; leave the engine out to look"
            )
        made: dict[int, Prediction] = {}
        found = self.engine.translate(texts, how) if self.engine is not None else None
        for row, translated in found or self.tool.translate(texts, how, look=look):
            made[row] = self._prediction(translated, how)
            progress(len(made), len(texts))
        ordered = [made[row] for row in range(len(texts))]
        return ordered[0] if isinstance(text, str) else ordered

    def look(self, text: str, settings: LookSettings | None = None) -> Look:
        """Translate a text and show where the model looked for each word."""
        how = settings or LookSettings()
        return self.predict(
            text, look=True, beam=how.beam, length_penalty=how.length_penalty
        ).look()

    def _prediction(self, one: Translated, how: Decoding) -> Prediction:
        others = tuple(self._prediction(other, how) for other in one.others)
        return Prediction(one.source, one.text, one.score, others, one, self, how)


@dataclass(frozen=True)
class CaptionPrediction:
    """What was said of an image: text, score, the rest of the n-best list, and where it looked.

    `picture` is the image as the model saw it; `name` is its file's, or its number.
    """

    name: str
    image: Picture
    picture: UInt8[Tensor, "3 H W"]
    text: str
    score: float
    others: tuple["CaptionPrediction", ...]
    _described: Described
    _model: "CaptioningModel"
    _how: Decoding

    @property
    def attention(self) -> dict[str, Glance]:
        """What each site that looks at the picture saw, a row per token and one for the end."""
        return self.described.attention

    @property
    def described(self) -> Described:
        """The caption with its attention."""
        return self._model.tool.looked(self.picture, self._described)

    def look(self) -> PictureLook:
        """Where on the image the model looked for each word."""
        model = self._model
        how = LookSettings(beam=self._how.beam, length_penalty=self._how.length_penalty)
        # Shown as large as it is, not as small as the model saw it.
        image = pixels_of(self.image, name=self.name, short=2 * SIDE)
        shown = Shown.of(image, model.tool, name=self.name)
        return caption_look(model, self, how, shown=replace(shown, seen_by=self._seen_by))

    def _seen_by(self, describer: Describer) -> UInt8[Tensor, "3 H W"]:
        """The very pixels that were described: a file comes in other ones at another size."""
        return self.picture

    def __str__(self) -> str:
        return self.text


class CaptioningModel:
    """A trained captioner."""

    def __init__(self, name: str, recipe: Recipe, tool: Describer) -> None:
        self.name, self.recipe, self.tool = name, recipe, tool

    @property
    def network(self) -> nn.Module:
        """The module itself."""
        return self.tool.model

    @overload
    def predict(
        self, image: Picture, *, look: bool = ..., **decoding: Any
    ) -> CaptionPrediction: ...
    @overload
    def predict(
        self, image: list[Any], *, look: bool = ..., progress: Progress = ..., **decoding: Any
    ) -> list[CaptionPrediction]: ...
    def predict(
        self,
        image: Picture | list[Any],
        *,
        look: bool = False,
        progress: Progress = silent,
        **decoding: Any,
    ) -> CaptionPrediction | list[CaptionPrediction]:
        """Describe an image or many: files, their bytes, Pillow images, arrays or tensors of uint8.

        `decoding` are the fields of `Decoding`, such as beam=1.
        """
        images: list[Picture] = image if isinstance(image, list) else [image]
        how = make_decoding(decoding)
        made: list[CaptionPrediction] = []
        for first in range(0, len(images), self.tool.batch):
            some = dict(enumerate(images[first : first + self.tool.batch], start=first))
            names = [_name(one, number) for number, one in some.items()]
            pictures = [
                self.tool.prepare(one, name=name) for one, name in zip(some.values(), names)
            ]
            found = dict(self.tool.describe(torch.stack(pictures), how, look=look))
            for row, given in enumerate(zip(names, some.values(), pictures)):
                made.append(self._prediction(given, found[row], how))
            progress(len(made), len(images))
        return made if isinstance(image, list) else made[0]

    def look(self, image: Picture, settings: LookSettings | None = None) -> PictureLook:
        """Describe an image and show where the model looked for each word."""
        how = settings or LookSettings()
        return self.predict(
            image, look=True, beam=how.beam, length_penalty=how.length_penalty
        ).look()

    def _prediction(
        self, given: tuple[str, Picture, Tensor], one: Described, how: Decoding
    ) -> CaptionPrediction:
        others = tuple(self._prediction(given, other, how) for other in one.others)
        return CaptionPrediction(*given, one.text, one.score, others, one, self, how)


def _name(image: Picture, number: int) -> str:
    if isinstance(image, Member):
        return image.name
    return printable(str(image)) if isinstance(image, str | Path) else f"image {number}"


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

    def look(self, text: str, settings: LookSettings | None = None) -> Look:
        """Where each word of a text looked; the picture is of the last layer.

        A long text is drawn in cells of several words.
        """
        how = settings or LookSettings()
        tokens = self.tool.begin(text)
        seen = reread_text(self.tool, tokens, keep=Keep(map_side=LARGEST_PICTURE, top=0))
        site, glance = list(seen.sites.items())[-1]
        assert glance.mean_map is not None
        pieces, cell = self.tool.vocabulary.pieces(tokens), glance.cell[0]
        labels = pieces[::cell] if cell == 1 else [f"{piece}…" for piece in pieces[::cell]]
        return Look(
            rows=labels,
            columns=labels,
            weights=glance.mean_map[0].mean(dim=0),
            title=f"{self.name}: {site}, mean over heads"
            + (f", cells of {cell} × {cell} words" if cell > 1 else ""),
            caption=text,
            document=lambda: look_document(self, text, how),
        )


Model = TranslationModel | LanguageModel | CaptioningModel


def make_decoding(fields: dict[str, Any]) -> Decoding:
    """Check the names of decoding settings that came as keywords."""
    known = Decoding.__dataclass_fields__
    for name in fields:
        if name not in known:
            raise ConfigError(f"{name} is not a decoding setting; there are: {', '.join(known)}")
    return Decoding(**fields)


def load(
    run: str | Path,
    *,
    device: str = "auto",
    engine: Engine = "saccade",
    engine_precision: Quantization = "float32",
) -> Model:
    """The best weights of a run, ready to use.

    With engine="ctranslate2" they are exported into the run's folder if no fresh export is there,
    and that engine decodes; `engine_precision` is how it holds the weights.
    """
    folder = RunFolder(Path(run))
    if not folder.path.is_dir():
        raise RunError(f"there is no run at {run}; `saccade train NAME` makes one")
    recipe = folder.load_recipe()
    if engine == "ctranslate2" and isinstance(recipe.task, CaptioningSettings):
        raise ConfigError(
            "engine='ctranslate2' decodes text alone; leave the engine out to describe images"
        )
    model = folder.load_model(choose_device(device))
    vocabulary = Vocabulary.load(folder.tokenizer)
    name, task = folder.path.name, recipe.task
    exported = None
    if engine == "ctranslate2":
        exported, _ = export_run(folder, "ctranslate2", quantization=engine_precision, model=model)
    if isinstance(task, TranslationSettings):
        tool = Translator(model, vocabulary)
        fast = None if exported is None else CTranslate2Translator(exported, tool)
        return TranslationModel(name, recipe, tool, fast)
    if isinstance(task, CaptioningSettings):
        return CaptioningModel(name, recipe, Describer(model, vocabulary, task))
    writer = Writer(model, vocabulary, task)
    return LanguageModel(
        name, recipe, writer, None if exported is None else CTranslate2Writer(exported, writer)
    )
