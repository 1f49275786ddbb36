"""A model that reads images and texts together, in Python: the same for all that it may tell."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from saccade.app.kinds.base import LoadedRun, TrainedModel
from saccade.app.kinds.joint.regions import given_regions
from saccade.app.kinds.soundness import load_vocabulary
from saccade.app.look.joint.document import pair_document
from saccade.app.look.joint.drawn import PairLook, pair_look
from saccade.app.look.joint.subject import PairSubject
from saccade.app.look.settings import LookSettings, make_selection
from saccade.data.images.given import AnyImage, an_image, image_name, size_of
from saccade.errors import DataError
from saccade.tasks.base import Progress, silent
from saccade.tasks.guesses import Guess
from saccade.tasks.joint.data import JointSettings
from saccade.tasks.joint.pairs import (
    BEST,
    PairAnswer,
    PairImage,
    PairTool,
    RegionBoxes,
    checked_text,
)
from saccade.tasks.joint.tool import JointTool
from saccade.tasks.masked.blanks import BlankWord
from saccade.train.run import open_run

PixelSides = tuple[float, float, float, float]


@dataclass(frozen=True)
class PairPrediction:
    """What a model says of a text about an image. What its kind does not tell is empty, or None."""

    given: str
    name: str
    answer: PairAnswer
    source: PairImage
    _model: "JointModel"

    @property
    def text(self) -> str:
        """In short: the answer, the sentence that is chosen, the box in pixels, whether it fits, or
        the text without blanks.
        """
        return self.answer.text

    @property
    def score(self) -> float:
        """How likely that is."""
        return self.answer.score

    @property
    def answers(self) -> list[Guess]:
        """The best answers to a question, or all sentences to choose from, the likeliest first."""
        return list(self.answer.guesses)

    @property
    def box(self) -> PixelSides | None:
        """Left, top, right, bottom of what a phrase means, in pixels of the image."""
        return pixel_sides(self.answer, self.source.size)

    @property
    def fits(self) -> float | None:
        """How likely the text is about the image."""
        return self.answer.fits

    @property
    def blanks(self) -> list[tuple[BlankWord, ...]]:
        """The best words for each blank."""
        return list(self.answer.blanks)

    def look(self, **select: Any) -> PairLook:
        """Which regions each word looked at; see `Selection`."""
        regions = RegionBoxes(self.source.given, self.source.labels)
        known = regions if self._model.tool.wants_boxes else None
        return self._model.look_at(self.source.image, self.given, known, name=self.name, **select)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"PairPrediction({self.given!r}, {self.text!r})"


class JointModel(TrainedModel[PairTool]):
    """A trained model that reads images and texts together."""

    def predict(
        self,
        image: Any,
        text: Any,
        boxes: Any = None,
        *,
        best: int = BEST,
        progress: Progress = silent,
    ) -> Any:
        """What is said of a text about an image: a `PairPrediction`; of a list a list of them.

        Either may be a list, or both of as many. Where a sentence is chosen, the text is a list of
        sentences, and a list of such lists is many. `boxes` are the regions of the image where the
        model wants them: rows of left, top, right and bottom in its pixels, such as
        `detector.predict(image)` finds; of a list of images, such rows for each.
        """
        texts, many = self.tool.texts(text)
        images: list[Any] = image if isinstance(image, list) else [image]
        rows = boxes if isinstance(image, list) and boxes is not None else [boxes] * len(images)
        if len(rows) != len(images):
            raise DataError(f"{len(images)} images have boxes of {len(rows)}; give those of each")
        pairs = broadcast(len(images), len(texts))
        sighted = [
            self.sight(one, some, name=image_name(one, number))
            for number, (one, some) in enumerate(zip(map(an_image, images), rows))
        ]
        made = list[PairPrediction]()
        for first in range(0, len(pairs), self.tool.batch):
            some = pairs[first : first + self.tool.batch]
            asked = [(sighted[i], texts[t]) for i, t in some]
            made += self.predict_pairs(asked, best=best)
            progress(len(made), len(pairs))
        return made if many or isinstance(image, list) else made[0]

    def sight(self, image: AnyImage, boxes: Any, *, name: str) -> PairImage:
        """An image made to fit, with boxes in its pixels."""
        if boxes is None and self.tool.wants_boxes:
            raise DataError(
                f"{self.name} looks at boxes, and {name} has none; give boxes=[[left, top, right, "
                "bottom], …] in pixels, such as a detector finds"
            )
        if boxes is not None and not self.tool.wants_boxes:
            raise DataError(f"{self.name} looks at the cells of a grid; leave boxes out")
        regions = None if boxes is None else given_regions(boxes, size_of(image, name=name))
        return self.tool.sight(image, regions, name=name)

    def predict_pairs(
        self, pairs: Sequence[tuple[PairImage, Any]], *, best: int = BEST
    ) -> list[PairPrediction]:
        """The same for images that were prepared, all at once; each is looked at once."""
        images = list({id(image): image for image, _ in pairs}.values())
        places = {id(image): place for place, image in enumerate(images)}
        texts = [self.tool.read_text(checked_text(text)) for _, text in pairs]
        of = [places[id(image)] for image, _ in pairs]
        answers = self.tool.answers(images, texts, of, best=best)
        return [
            PairPrediction(text, image.name, answer, image, self)
            for (image, text), answer in zip(pairs, answers)
        ]

    def look(
        self, image: AnyImage, text: Any, boxes: Any = None, *, of: str | None = None, **select: Any
    ) -> PairLook:
        """Which regions each word of a text about an image looked at; see `Selection`.

        Of sentences to choose from it is the one that was chosen, or that `of` names.
        """
        name = image_name(an_image(image), 0)
        sighted = self.sight(image, boxes, name=name)
        known = RegionBoxes(sighted.given) if self.tool.wants_boxes else None
        (asked,) = self.tool.texts(text)[0]
        return self.look_at(image, asked, known, name=name, of=of, **select)

    def look_at(
        self,
        image: AnyImage,
        text: str,
        regions: RegionBoxes | None,
        *,
        name: str = "",
        of: str | None = None,
        **select: Any,
    ) -> PairLook:
        """The same, with regions as shares of the image."""
        subject = PairSubject.of(self.tool, image, checked_text(text), regions, name)
        how = LookSettings(of=of)
        return pair_look(
            self,
            subject,
            make_selection(select),
            lambda: pair_document([self], [subject], how),
            of,
        )


def broadcast(images: int, texts: int) -> list[tuple[int, int]]:
    """Which image each text goes with: as many as there are, or one with all of the others."""
    if images != texts and 1 not in (images, texts):
        raise DataError(
            f"{images} images and {texts} texts: give as many of both, or one of either"
        )
    return [(n if images > 1 else 0, n if texts > 1 else 0) for n in range(max(images, texts))]


def pixel_sides(answer: PairAnswer, size: tuple[int, int]) -> PixelSides | None:
    """Where that lies which a phrase means, on an image of this height and width."""
    if answer.box is None:
        return None
    (left, top, right, bottom), (height, width) = answer.box, size
    return left * width, top * height, right * width, bottom * height


def pair_table(answer: PairAnswer, size: tuple[int, int]) -> dict[str, Any]:
    """What is said, for JSON; a box is left, top, right, bottom in pixels."""
    table: dict[str, Any] = {"text": answer.text}
    if answer.guesses:
        table["answers"] = [
            {"label": label, "probability": round(p, 6)} for label, p in answer.guesses
        ]
    if (box := pixel_sides(answer, size)) is not None:
        table |= {"box": [round(side, 2) for side in box], "score": round(answer.score, 6)}
    if answer.fits is not None:
        table["fits"] = round(answer.fits, 6)
    if answer.blanks:
        table["blanks"] = [
            [{"word": word, "probability": round(p, 6)} for word, p in words]
            for words in answer.blanks
        ]
    return table


def joint_loader(made: Callable[[JointTool, LoadedRun], PairTool]) -> Callable[[LoadedRun], Any]:
    """How runs of a kind are loaded, given what its tool is made of."""

    def load(run: LoadedRun) -> JointModel:
        settings = run.recipe.task
        assert isinstance(settings, JointSettings)
        device = next(run.network.parameters()).device
        joint = JointTool(run.network, load_vocabulary(run), settings, partial(open_run, device))
        return JointModel(run.name, run.recipe, made(joint, run))

    return load
