"""What each kind of joint model tells: answers, what is meant, what fits, and hidden words."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from saccade.data.answers import AnswerSet
from saccade.data.batching.rows import Rows
from saccade.data.tokens.reading import Reading
from saccade.errors import ConfigError, DataError
from saccade.models.joint.regions import RegionRows
from saccade.models.joint.vilbert import Streams
from saccade.printable import printable
from saccade.tasks.guesses import THERE, best_guesses
from saccade.tasks.joint.answering import AnsweringSettings
from saccade.tasks.joint.batch import blinded
from saccade.tasks.joint.choosing import ChoosingSettings
from saccade.tasks.joint.pairs import (
    TAB,
    PairAnswer,
    PairText,
    PairTool,
    ReadPairs,
    one_text,
)
from saccade.tasks.joint.tool import JointTool
from saccade.tasks.masked.blanks import BlankReader

FITS, DOES_NOT = "fits", "does not fit"
FEWEST = 2  # sentences to choose from


class AnswerTool(PairTool):
    """A question about an image → answers, each likely by itself."""

    of_what = "the answer"

    def __init__(self, joint: JointTool, answers: AnswerSet) -> None:
        super().__init__(joint)
        self.known = answers

    @property
    def names(self) -> tuple[str, ...]:
        return self.known.names

    def may_see(self, text: Rows, regions: RegionRows) -> tuple[Rows, RegionRows]:
        settings = self.settings
        assert isinstance(settings, AnsweringSettings)
        return blinded(text, regions, settings.sees)

    def told(self, read: ReadPairs, best: int) -> list[PairAnswer]:
        made = list[PairAnswer]()
        for chances in self.model.answers(read.streams).float().sigmoid().cpu():
            guesses = tuple(best_guesses(self.known.names, chances, best))
            made.append(PairAnswer(guesses[0].label, guesses[0].probability, guesses))
        return made

    def aim(self, answer: PairAnswer, of: str | None) -> int:
        number = self.known.number(answer.text if of is None else of)
        if number is None:
            some = ", ".join(self.known.names[:10])
            more = ", …" * (len(self.known) > 10)
            raise ConfigError(f"of={of!r} is no answer of this model; there are: {some}{more}")
        return number

    def chance(self, found: Sequence[Streams], aim: int) -> Float[Tensor, " pairs"]:
        return self.model.answers(found[0])[:, aim].float().sigmoid()


class ReferringTool(PairTool):
    """A phrase about an image → the region that it means."""

    of_what = "that this region is meant"

    def told(self, read: ReadPairs, best: int) -> list[PairAnswer]:
        found, made = read.streams, list[PairAnswer]()
        assert found.beside is not None
        chances, starts = self.model.chosen(found).float().sigmoid().cpu(), found.region_starts
        square = read.regions.boxes[found.beside.which].cpu()
        for number, image in enumerate(read.images):
            own = slice(int(starts[number]), int(starts[number + 1]))
            some = chances[own]
            region = int(some.argmax())
            left, top, right, bottom = self.places(image, square[own])[region].tolist()
            high, wide = image.size
            ends = (left * wide, top * high, right * wide, bottom * high)
            made.append(
                PairAnswer(
                    " ".join(f"{end:.0f}" for end in ends),
                    float(some[region]),
                    region=region,
                    box=(left, top, right, bottom),
                    chances=tuple(some.tolist()),
                )
            )
        return made

    def aim(self, answer: PairAnswer, of: str | None) -> int:
        _refuse_of(of)
        assert answer.region is not None
        return answer.region

    def chance(self, found: Sequence[Streams], aim: int) -> Float[Tensor, " pairs"]:
        (pairs,) = found
        return self.model.chosen(pairs)[pairs.region_starts[:-1].long() + aim].float().sigmoid()


class FittingTool(PairTool):
    """A sentence and an image → whether it is about it."""

    of_what = "that the text fits"

    def told(self, read: ReadPairs, best: int) -> list[PairAnswer]:
        chances = self.chance([read.streams], 0).tolist()
        return [PairAnswer(FITS if p >= THERE else DOES_NOT, p, fits=p) for p in chances]

    def aim(self, answer: PairAnswer, of: str | None) -> int:
        _refuse_of(of)
        return 0

    def chance(self, found: Sequence[Streams], aim: int) -> Float[Tensor, " pairs"]:
        return self.model.fits(found[0]).float().sigmoid()


class ChoosingTool(PairTool):
    """Sentences, with tabs between them, and an image → the one that fits it best."""

    of_what = "that this sentence is chosen"

    def read_text(self, text: str) -> PairText:
        sentences = text.split(TAB)
        if len(sentences) < FEWEST:
            raise DataError(
                f"{printable(text[:60])!r} is one sentence, and there is nothing to choose from; "
                "give two at least"
            )
        return PairText(text, tuple(self.joint.reading(one) for one in sentences))

    def texts(self, given: Any) -> tuple[list[Any], bool]:
        """Sentences are one text; lists of them are many."""
        if isinstance(given, str):
            return [given], False
        rows: list[Any] = list(given)
        if all(isinstance(one, str) for one in rows):
            return [one_text(rows)], False
        return [one if isinstance(one, str) else one_text(one) for one in rows], True

    def may_see(self, text: Rows, regions: RegionRows) -> tuple[Rows, RegionRows]:
        settings = self.settings
        assert isinstance(settings, ChoosingSettings)
        return blinded(text, regions, settings.sees)

    def told(self, read: ReadPairs, best: int) -> list[PairAnswer]:
        made, z = list[PairAnswer](), self.model.fits(read.streams).float().cpu()
        sizes = [len(one.readings) for one in read.texts]
        for text, scores in zip(read.texts, z.split(sizes)):
            names = tuple(one.text for one in text.sentences)
            guesses = tuple(best_guesses(names, scores.softmax(dim=0), len(names)))
            made.append(PairAnswer(guesses[0].label, guesses[0].probability, guesses, names))
        return made

    def aim(self, answer: PairAnswer, of: str | None) -> int:
        sentence = answer.text if of is None else of
        if sentence not in answer.sentences:
            there = "; ".join(answer.sentences)
            raise ConfigError(f"of={of!r} is none of the sentences to choose from: {there}")
        return answer.sentences.index(sentence)

    def chance(self, found: Sequence[Streams], aim: int) -> Float[Tensor, " pairs"]:
        z = torch.stack([self.model.fits(one).float() for one in found], dim=1)
        return z.softmax(dim=1)[:, aim]


class FillingTool(FittingTool):
    """A sentence with blanks and an image → the words for these, and whether it fits."""

    def __init__(self, joint: JointTool) -> None:
        super().__init__(joint)
        self.blanks = BlankReader(joint.vocabulary)

    def read_text(self, text: str) -> PairText:
        read = self.blanks.read(text)
        if not read.at:
            return PairText(text, (self.joint.reading(text),), read)
        self.joint.check_length(len(read.tokens))
        return PairText(text, (Reading(read.tokens, read.types, [], []),), read)

    def told(self, read: ReadPairs, best: int) -> list[PairAnswer]:
        found, texts = read.streams, [one.blanks for one in read.texts if one.blanks is not None]
        starts = found.word_starts.tolist()
        at = [start + place for start, one in zip(starts, texts) for place in one.at]
        where = torch.tensor(at, dtype=torch.long, device=self.device)
        hidden = self.model.transformed(found.words.index_select(0, where))
        chances = self.blanks.chances(self.model.output(hidden))
        made = list[PairAnswer]()
        of_text = chances.split([len(one.at) for one in texts])
        for one, some, fits in zip(texts, of_text, self.chance([found], 0).tolist()):
            filled = self.blanks.filled(one, some, best)
            made.append(PairAnswer(filled.text, fits, fits=fits, blanks=filled.blanks))
        return made


def _refuse_of(of: str | None) -> None:
    if of is not None:
        raise ConfigError(f"of={of!r} names an answer, and this model gives none; leave it out")
