"""Batches of images, each with its regions and some of the texts about it."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from saccade.data.batching.rows import BatchShape, Rows
from saccade.data.images.constants import constant
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.errors import DataError
from saccade.models.joint.regions import WHOLE, RegionRows
from saccade.models.joint.vilbert import Vilbert
from saccade.tasks.base import LengthBound
from saccade.tasks.epochs import ChapterOrder, batches_of
from saccade.tasks.images import some_of_each
from saccade.tasks.joint.data import Sighted
from saccade.tasks.joint.seen_once import SeenOnce
from saccade.tasks.kept_texts import KeptTexts
from saccade.tasks.masked.framed import EncodedLines, FramedTexts, TextFrame, TextRows

ROUND = 256  # filled batches have so many words, or a multiple, and so many regions
FEW = 8  # and room for so many regions of an image, or a multiple
SPARE = ROUND // 16  # sequences that fill them up

Sees = Literal["both", "question", "image"]  # a question is any text


class Glimpse(NamedTuple):
    """Images, and which of their regions there are, counted over all images.

    `slots` bounds how many there are of each, in batches that are filled up. In place of images
    there may be the `features` of all their regions, the whole image first, as they were seen.
    """

    images: UInt8[Tensor, "B 3 H W"] | None
    boxes: Float[Tensor, "B R 4"]
    which: Rows
    slots: int | None = None
    features: Float[Tensor, "B n F"] | None = None

    @classmethod
    def of(
        cls,
        images: UInt8[Tensor, "B 3 H W"] | None,
        boxes: Float[Tensor, "B R 4"],
        counts: Int[Tensor, " B"],
    ) -> "Glimpse":
        """So many of the boxes of each are there; the whole image comes before them."""
        slots, there = boxes.shape[1] + 1, counts + 1
        places = torch.arange(slots).expand(len(boxes), -1)
        numbers = torch.arange(len(boxes))[:, None] * slots + places
        return cls(images, boxes, Rows.of(numbers[places < there[:, None]], there))

    def to(self, device: torch.device) -> "Glimpse":
        return self._each(lambda x: x.to(device, non_blocking=True), self.which.to(device))

    def pinned(self) -> "Glimpse":
        return self._each(lambda x: x.pin_memory(), self.which.pinned())

    def _each(self, move: Callable[[Tensor], Tensor], which: Rows) -> "Glimpse":
        images, features = (None if x is None else move(x) for x in (self.images, self.features))
        return Glimpse(images, move(self.boxes), which, self.slots, features)

    @property
    def shape(self) -> Hashable:
        shown = (None if x is None else tuple(x.shape) for x in (self.images, self.features))
        sizes = *shown, *self.boxes.shape, *self.which.shape
        return *sizes, self.which.rectangular, self.slots

    def filled(self) -> "Glimpse":
        """With as many regions as many others have, unless all images have equally many."""
        counts, tokens = self.which.lengths, self.which.tokens
        if self.which.rectangular:
            return self
        total, most = _rounded(len(tokens), ROUND), _rounded(int(counts.max()), FEW)
        slots = min(most, self.boxes.shape[1] + 1)
        shape = BatchShape(total, len(counts) + SPARE, max(16, slots))
        return self._replace(which=Rows.of(tokens, counts, shape=shape), slots=slots)


class JointBatch(NamedTuple):
    """Texts end to end, the image that each is `of`, and what is asked, by name.

    The losses are means over `tokens` texts, times as many. Images vary by the numbers `drawn`.
    """

    seen: Glimpse
    text: Rows
    types: Int[Tensor, " words"]
    of: Int[Tensor, " T"]
    asked: dict[str, Tensor]
    tokens: int
    drawn: Float[Tensor, "B draws"] | None = None

    @property
    def shape(self) -> Hashable:
        asked = tuple((name, tuple(x.shape)) for name, x in self.asked.items())
        return self.seen.shape, self.text.shape, asked

    def to(self, device: torch.device) -> "JointBatch":
        return self._each(lambda x: x.to(device, non_blocking=True), lambda x: x.to(device))

    def pinned(self) -> "JointBatch":
        return self._each(lambda x: x.pin_memory(), lambda x: x.pinned())

    def _each(self, move: Callable[[Tensor], Tensor], moved: Callable[[Any], Any]) -> "JointBatch":
        asked = {name: move(x) for name, x in self.asked.items()}
        seen, text = moved(self.seen), moved(self.text)
        drawn = None if self.drawn is None else move(self.drawn)
        return JointBatch(seen, text, move(self.types), move(self.of), asked, self.tokens, drawn)

    @property
    def texts(self) -> int:
        """How many there are, without those that only fill a shape."""
        return len(self.text.lengths)

    @property
    def counted(self) -> float:
        """How much each text counts: nothing where a process was left without any."""
        return self.tokens / self.texts

    def filled(self) -> "JointBatch":
        """With as many words and regions as many other batches have. Texts that fill up are about
        image 0, and nothing is asked of them.
        """
        lengths, tokens = self.text.lengths, self.text.tokens
        total = _rounded(len(tokens), ROUND)
        shape = BatchShape(total, len(lengths) + SPARE, max(16, int(lengths.max())))
        text = Rows.of(tokens, lengths, shape=shape)
        types = torch.cat([self.types, self.types.new_zeros(total - len(tokens))])
        of = torch.cat([self.of, self.of.new_zeros(SPARE)])
        return self._replace(seen=self.seen.filled(), text=text, types=types, of=of)


def _rounded(count: int, to: int) -> int:
    return -(-count // to) * to


def seen_regions(model: Vilbert, seen: Glimpse) -> RegionRows:
    """The regions of a batch as a model sees them."""
    boxes = model.config.regions == "boxes"
    if seen.features is not None:
        found = model.recall(seen.features, seen.boxes)
    else:
        assert seen.images is not None
        found = model.see(seen.images, seen.boxes if boxes else None)
    return RegionRows.of(found, seen.which if boxes else None, seen.slots)


def blinded(text: Rows, regions: RegionRows, sees: Sees) -> tuple[Rows, RegionRows]:
    """What a model may see of both."""
    if sees == "question":
        # All are the whole image, for a norm has no gradient where there is nothing at all.
        everywhere = constant(WHOLE, regions.boxes).expand_as(regions.boxes)
        return text, regions._replace(features=torch.zeros_like(regions.features), boxes=everywhere)
    if sees == "image":
        return text._replace(tokens=torch.zeros_like(text.tokens)), regions
    return text, regions


@dataclass(frozen=True)
class SightedTexts:
    """Images with texts as tokens: those about image i are `first[i]` up to `first[i + 1]`.

    Texts come in rows, which stay together: `sizes` has how many texts each has, mostly one.
    `seen` is what a model that never changes sees of all images, where that was computed before.
    """

    sighted: Sighted
    texts: TextRows
    first: Int[Tensor, " boundaries"]
    sizes: Int[Tensor, " rows"]
    seen: SeenOnce | None = None

    @classmethod
    def of(
        cls,
        sighted: Sighted,
        about: KeptTexts,
        vocabulary: Vocabulary,
        bound: LengthBound,
        what: str,
        sizes: list[int] | None = None,
    ) -> tuple["SightedTexts", list[str], Int[Tensor, " kept"]]:
        """Those that are not too long, a line for the user where any is, and which were kept.

        `sizes` are those of rows: one is left out as a whole.
        """
        texts = about.about
        example = next((x for some in texts for x in some if vocabulary.encode(x)), "")
        if not example:
            raise DataError(f"{sighted.report}: no {what} has a word to learn from")
        frame = TextFrame.of(vocabulary, 1, example)
        rows = TextRows.singles(EncodedLines(about.encode(vocabulary)), frame)
        of_row = torch.tensor(sizes) if sizes else torch.ones(len(rows), dtype=torch.long)
        row = torch.arange(len(of_row)).repeat_interleave(of_row)
        empty, long = (
            row[bad].bincount(minlength=len(of_row)) > 0
            for bad in (rows.lengths <= frame.special, rows.lengths > bound.tokens)
        )
        good = ~(empty | long)
        short, of_what = good[row], f"{what} with a sentence" if sizes else what
        if not short.any():
            raise DataError(f"{sighted.report}: {bound.none_fits(what)}")
        lengths = torch.from_numpy(np.fromiter(map(len, texts), np.int64, len(texts)))
        image = torch.arange(len(texts)).repeat_interleave(lengths)
        counts = image[short].bincount(minlength=len(texts))
        first = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        told = bound.report(int(long.sum()), of_what)
        told += [f"left out: {int(empty.sum()):,} {of_what} without a word"] * bool(empty.any())
        found = cls(sighted, rows.where(short), first, of_row[good])
        return found, told, short.nonzero()[:, 0]

    @cached_property
    def image_of(self) -> Int[Tensor, " texts"]:
        """The image of each text."""
        return torch.arange(len(self.first) - 1).repeat_interleave(self.first.diff())

    @cached_property
    def starts(self) -> Int[Tensor, " boundaries"]:
        """The first text of each row."""
        return torch.cat([self.sizes.new_zeros(1), self.sizes.cumsum(0)])

    @cached_property
    def first_rows(self) -> Int[Tensor, " boundaries"]:
        """The rows about image i are `first_rows[i]` up to `first_rows[i + 1]`."""
        return torch.searchsorted(self.starts, self.first)

    def some(
        self, images: Int[Tensor, " B"], most: int, *, seed: int, epoch: int
    ) -> tuple[Int[Tensor, " T"], Int[Tensor, " T"]]:
        """The texts of at most so many rows about each image, and which image each is about."""
        rows, of = some_of_each(self.first_rows, images, most, seed=seed, epoch=epoch)
        sizes = self.sizes[rows]
        before = (sizes.cumsum(0) - sizes).repeat_interleave(sizes)
        within = torch.arange(len(before)) - before
        return self.starts[rows].repeat_interleave(sizes) + within, of.repeat_interleave(sizes)

    def fingerprint(self) -> str:
        return f"{self.sighted.fingerprint()} {self.texts.lines.tokens.fingerprint()}"

    def glimpse(self, images: Int[Tensor, " B"]) -> Glimpse:
        """Some images with their regions, or what was seen of these before."""
        sighted, seen = self.sighted, self.seen
        pixels = sighted.images[images] if seen is None else None
        made = Glimpse.of(pixels, sighted.boxes[images], sighted.counts[images])
        if seen is None:
            return made
        cells = made.boxes if seen.cells is None else seen.cells.expand(len(images), -1, -1)
        return made._replace(boxes=cells.contiguous(), features=seen.features(images))

    def batch(
        self,
        images: Int[Tensor, " B"],
        texts: Int[Tensor, " T"],
        of: Int[Tensor, " T"],
        *,
        counts: bool = True,
        framed: FramedTexts | None = None,
    ) -> JointBatch:
        """Some images with some texts; nothing is asked yet."""
        taken = self.texts.take(texts) if framed is None else framed
        rows = Rows.of(taken.tokens, taken.lengths)
        tokens = len(texts) if counts else 0
        return JointBatch(self.glimpse(images), rows, taken.types, of, {}, tokens)


def image_order(texts: SightedTexts, most: int, *, budget: int, seed: int) -> ChapterOrder:
    """Which images come when: each with a text once an epoch, and as many at a time as have
    `budget` rows of texts on average.
    """
    counts = texts.first_rows.diff()
    mean = counts[counts > 0].clamp(max=most).float().mean()
    return batches_of(counts.nonzero()[:, 0], max(1, round(budget / float(mean))), seed=seed)
