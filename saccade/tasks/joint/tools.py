"""What each kind of joint model tells: answers, what is meant, what fits, and hidden words."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from saccade.data.answers import AnswerSet
from saccade.data.reading import Reading
from saccade.data.rows import Rows
from saccade.errors import ConfigError
from saccade.models.joint.regions import RegionRows
from saccade.models.joint.vilbert import Streams
from saccade.tasks.guesses import THERE, best_guesses
from saccade.tasks.joint.answering import AnsweringSettings
from saccade.tasks.joint.batch import blinded
from saccade.tasks.joint.pairs import PairAnswer, PairImage, PairText, PairTool
from saccade.tasks.joint.tool import JointTool
from saccade.tasks.masked.blanks import BlankReader

FITS, DOES_NOT = "fits", "does not fit"


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

    def told(
        self,
        found: Streams,
        regions: RegionRows,
        images: Sequence[PairImage],
        texts: Sequence[PairText],
        best: int,
    ) -> list[PairAnswer]:
        made = list[PairAnswer]()
        for chances in self.model.answers(found).float().sigmoid().cpu():
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

    def chance(self, found: Streams, aim: int) -> Float[Tensor, " pairs"]:
        return self.model.answers(found)[:, aim].float().sigmoid()


class ReferringTool(PairTool):
    """A phrase about an image → the region that it means."""

    of_what = "that this region is meant"

    def told(
        self,
        found: Streams,
        regions: RegionRows,
        images: Sequence[PairImage],
        texts: Sequence[PairText],
        best: int,
    ) -> list[PairAnswer]:
        assert found.beside is not None
        chances, starts = self.model.chosen(found).float().sigmoid().cpu(), found.region_starts
        square, made = regions.boxes[found.beside.which].cpu(), list[PairAnswer]()
        for number, image in enumerate(images):
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

    def chance(self, found: Streams, aim: int) -> Float[Tensor, " pairs"]:
        return self.model.chosen(found)[found.region_starts[:-1].long() + aim].float().sigmoid()


class FittingTool(PairTool):
    """A sentence and an image → whether it is about it."""

    of_what = "that the text fits"

    def told(
        self,
        found: Streams,
        regions: RegionRows,
        images: Sequence[PairImage],
        texts: Sequence[PairText],
        best: int,
    ) -> list[PairAnswer]:
        chances = self.chance(found, 0).tolist()
        return [PairAnswer(FITS if p >= THERE else DOES_NOT, p, fits=p) for p in chances]

    def aim(self, answer: PairAnswer, of: str | None) -> int:
        _refuse_of(of)
        return 0

    def chance(self, found: Streams, aim: int) -> Float[Tensor, " pairs"]:
        return self.model.fits(found).float().sigmoid()


class FillingTool(FittingTool):
    """A sentence with blanks and an image → the words for these, and whether it fits."""

    def __init__(self, joint: JointTool) -> None:
        super().__init__(joint)
        self.blanks = BlankReader(joint.vocabulary)

    def read_text(self, text: str) -> PairText:
        read = self.blanks.read(text)
        if not read.at:
            return PairText(text, self.joint.reading(text), read)
        self.joint.check_length(len(read.tokens))
        return PairText(text, Reading(read.tokens, read.types, [], []), read)

    def told(
        self,
        found: Streams,
        regions: RegionRows,
        images: Sequence[PairImage],
        texts: Sequence[PairText],
        best: int,
    ) -> list[PairAnswer]:
        read = [one.blanks for one in texts if one.blanks is not None]
        starts = found.word_starts.tolist()
        at = [start + place for start, one in zip(starts, read) for place in one.at]
        where = torch.tensor(at, dtype=torch.long, device=self.device)
        hidden = self.model.transformed(found.words.index_select(0, where))
        chances = self.blanks.chances(self.model.output(hidden))
        made = list[PairAnswer]()
        of_text = chances.split([len(one.at) for one in read])
        for one, some, fits in zip(read, of_text, self.chance(found, 0).tolist()):
            filled = self.blanks.filled(one, some, best)
            made.append(PairAnswer(filled.text, fits, fits=fits, blanks=filled.blanks))
        return made


def _refuse_of(of: str | None) -> None:
    if of is not None:
        raise ConfigError(f"of={of!r} names an answer, and this model gives none; leave it out")
