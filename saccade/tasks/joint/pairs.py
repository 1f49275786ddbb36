"""What a joint model says of texts about images, and what that would be without a region."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float, UInt8
from torch import Tensor

from saccade.data.batching.rows import Rows
from saccade.data.images.given import AnyImage, size_of
from saccade.data.images.regions import unfitted_boxes
from saccade.data.tokens.reading import Reading
from saccade.errors import ConfigError, DataError
from saccade.models.joint.regions import WHOLE, RegionRows
from saccade.models.joint.vilbert import Streams
from saccade.tasks.guesses import Guess
from saccade.tasks.joint.batch import seen_regions
from saccade.tasks.joint.data import JointSettings
from saccade.tasks.joint.tool import JointTool, SightedImage
from saccade.tasks.masked.blanks import BlankText, BlankWord

BEST = 5  # guesses that are told
AT_ONCE = 4096  # regions that are read together, each with its text

TAB = "\t"  # between the sentences of a text that one is to be chosen from

Corners = tuple[float, float, float, float]


class PairText(NamedTuple):
    """A text as the model reads it: at once, or sentence by sentence where one is to be chosen.

    Where it may have blanks, with these.
    """

    text: str
    readings: tuple[Reading, ...]
    blanks: BlankText | None = None

    @property
    def sentences(self) -> list["PairText"]:
        """What is read by itself: all of it, or each that may be chosen."""
        texts = self.text.split(TAB) if len(self.readings) > 1 else [self.text]
        return [PairText(a, (b,), self.blanks) for a, b in zip(texts, self.readings, strict=True)]

    @property
    def reading(self) -> Reading:
        """Of a text that is read at once."""
        (only,) = self.readings
        return only

    @property
    def tokens(self) -> int:
        """How many there are, of all sentences together."""
        return sum(len(one.tokens) for one in self.readings)


def one_text(sentences: Sequence[object]) -> str:
    """Sentences to choose from, as a single text."""
    return TAB.join(" ".join(checked_text(one).split(TAB)) for one in sentences)


def checked_text(text: object) -> str:
    """What is no text is refused."""
    if not isinstance(text, str):
        raise DataError(f"give a text, not {type(text).__name__}; read or decode it first")
    return text


class PairImage(NamedTuple):
    """An image made to fit; its height and width as it came, and its regions there, as shares.

    `labels` are what these are called, if anybody knows.
    """

    name: str
    image: AnyImage
    sighted: SightedImage
    size: tuple[int, int]
    given: Float[Tensor, "R 4"]
    labels: tuple[str, ...] = ()

    @classmethod
    def square(
        cls,
        name: str,
        pixels: UInt8[Tensor, "3 side side"],
        boxes: Float[Tensor, "R 4"],
        labels: tuple[str, ...] = (),
    ) -> "PairImage":
        """One that fits already, as data have it."""
        side = pixels.shape[-1]
        return cls(name, pixels, SightedImage(pixels, boxes), (side, side), boxes, labels)


class RegionBoxes(NamedTuple):
    """Where the regions of an image lie, as shares of its sides, and what they are called."""

    boxes: Float[Tensor, "R 4"]
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class PairAnswer:
    """What is said of a text about an image, in short, and how likely that is.

    What a kind of model does not tell is not there: `guesses` are answers, the likeliest first, or
    the `sentences` that one was chosen from, which stand there as they were given;
    `region` is the one that is meant, `box` where it lies as shares of the image as it came, and
    `chances` has how likely each region is to be meant; `fits` how likely the text is about the
    image; `blanks` the best words for each blank.
    """

    text: str
    score: float
    guesses: tuple[Guess, ...] = ()
    sentences: tuple[str, ...] = ()
    region: int | None = None
    box: Corners | None = None
    chances: tuple[float, ...] = ()
    fits: float | None = None
    blanks: tuple[tuple[BlankWord, ...], ...] = ()


class ReadPairs(NamedTuple):
    """Texts, of which every sentence was read together with an image; one image for each text."""

    streams: Streams
    regions: RegionRows
    images: Sequence[PairImage]
    texts: Sequence[PairText]


class PairTool(ABC):
    """A joint model that is asked one thing of texts and images."""

    of_what: ClassVar[str]  # the likelihood that is measured without a region

    def __init__(self, joint: JointTool) -> None:
        self.joint, self.model, self.device = joint, joint.model, joint.device
        self.vocabulary = joint.vocabulary

    @property
    def settings(self) -> JointSettings:
        return self.joint.settings

    @property
    def batch(self) -> int:
        """How many images are looked at together."""
        return self.joint.batch

    @property
    def wants_boxes(self) -> bool:
        """Whether somebody must say where its regions are."""
        return self.joint.wants_boxes

    @property
    def names(self) -> tuple[str, ...]:
        """The answers that may be asked about; none where there are none."""
        return ()

    def prepare(self, image: AnyImage, *, name: str = "") -> UInt8[Tensor, "3 side side"]:
        """An image's pixels as the model is given them."""
        return self.joint.prepare(image, name=name).pixels

    def sight(
        self, image: AnyImage, regions: RegionBoxes | None = None, *, name: str = ""
    ) -> PairImage:
        """An image made to fit, with its regions; a model that wants these refuses it without."""
        if regions is None and self.wants_boxes:
            raise DataError(f"{name or 'the image'} has no regions, and the model looks at boxes")
        known = RegionBoxes(torch.zeros(0, 4)) if regions is None else regions
        sighted = self.joint.prepare(image, known.boxes, name=name)
        return PairImage(name, image, sighted, size_of(image, name=name), known.boxes, known.labels)

    def read_text(self, text: str) -> PairText:
        """A text as tokens; what is empty or too long is refused."""
        return PairText(text, (self.joint.reading(text),))

    def texts(self, given: Any) -> tuple[list[Any], bool]:
        """What a program asks as a list of texts, and whether it asked for many."""
        return (given, True) if isinstance(given, list) else ([given], False)

    @torch.no_grad()
    def answers(
        self,
        images: Sequence[PairImage],
        texts: Sequence[PairText],
        of: Sequence[int] | None = None,
        *,
        best: int = BEST,
    ) -> list[PairAnswer]:
        """What is said of text i with image i, or with image `of[i]`."""
        if best < 1:
            raise ConfigError(f"best={best} must be at least 1")
        if not texts:
            return []
        about = list(range(len(texts))) if of is None else list(of)
        return self.told(self.read(images, texts, about), best)

    def read(
        self, images: Sequence[PairImage], texts: Sequence[PairText], of: Sequence[int]
    ) -> ReadPairs:
        """Texts and images, read together; each sentence of a text by itself."""
        rows, types = self.joint.rows([reading for one in texts for reading in one.readings])
        about = [image for one, image in zip(texts, of) for _ in one.readings]
        regions = seen_regions(self.model, self.joint.glimpse([one.sighted for one in images]))
        rows, visible = self.may_see(rows, regions)
        found = self.model(rows, types, visible, torch.tensor(about, device=self.device))
        return ReadPairs(found, regions, [images[i] for i in of], texts)

    def may_see(self, text: Rows, regions: RegionRows) -> tuple[Rows, RegionRows]:
        """All of both; some models were trained with less."""
        return text, regions

    @abstractmethod
    def told(self, read: ReadPairs, best: int) -> list[PairAnswer]:
        """What is said of each text about its image."""

    @abstractmethod
    def aim(self, answer: PairAnswer, of: str | None) -> int:
        """The number of what is measured: what the answer says, or another that is named."""

    @abstractmethod
    def chance(self, found: Sequence[Streams], aim: int) -> Float[Tensor, " pairs"]:
        """How likely that is, given each sentence of a text; all pairs have as many regions."""

    @torch.no_grad()
    def with_all(self, image: PairImage, text: PairText, aim: int) -> float:
        """How likely that is with all regions there."""
        found = [self.read([image], [one], [0]).streams for one in text.sentences]
        return float(self.chance(found, aim)[0])

    @torch.no_grad()
    def without(self, image: PairImage, text: PairText, aim: int) -> list[float]:
        """How likely that is with nothing to be seen in the first region, the second, …"""
        seen = seen_regions(self.model, self.joint.glimpse([image.sighted]))
        count = len(seen.boxes)
        given = list[tuple[Rows, Tensor, RegionRows]]()
        for one in text.readings:
            rows, types = self.joint.rows([one])
            rows, regions = self.may_see(rows, seen)
            given.append((rows, types, regions))
        every = torch.eye(count, dtype=torch.bool, device=self.device)
        parts = [
            self.chance([self._emptied(*one, some) for one in given], aim)
            for some in every.split(max(1, AT_ONCE // count))
        ]
        return torch.cat(parts).tolist()

    def _emptied(
        self,
        text: Rows,
        types: Tensor,
        regions: RegionRows,
        hidden: Bool[Tensor, "pairs count"],
    ) -> Streams:
        """The pair once for each row, with nothing to be seen in the regions that it names."""
        pairs, count = hidden.shape
        lengths = torch.tensor([len(text.tokens)]).expand(pairs)
        rows = Rows.of(text.tokens.cpu().repeat(pairs), lengths).to(self.device)
        starts = count * torch.arange(pairs + 1, dtype=torch.int32, device=self.device)
        copies = RegionRows(
            regions.features.repeat(pairs, 1),
            regions.boxes.repeat(pairs, 1),
            starts,
            regions.longest,
            count,
            equal=True,
        )
        about = torch.arange(pairs, device=self.device)
        return self.model(rows, types.repeat(pairs), copies.hidden(hidden.flatten()), about)

    def places(self, image: PairImage, square: Float[Tensor, "n 4"]) -> Float[Tensor, "n 4"]:
        """Where its regions lie on the image as it came; boxes keep what the square cut off."""
        if self.wants_boxes:
            return torch.cat([torch.tensor([WHOLE]), image.given])
        return unfitted_boxes(square.cpu(), *image.size, self.settings.fit).clamp(0, 1)
