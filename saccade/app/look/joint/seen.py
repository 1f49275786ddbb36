"""A joint model made to read a text about an image while somebody looks."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from saccade.app.look.axis import grid_entry, reading_axis
from saccade.app.look.document import AxisEntry
from saccade.app.look.joint.subject import PairSubject
from saccade.app.look.masked import blank_axis
from saccade.attention.axes import Axis
from saccade.attention.look.glance import Glance, Keep
from saccade.attention.look.looking import looking
from saccade.tasks.joint.pairs import PairAnswer, PairImage, PairText, PairTool

WORDS, REGIONS = "words", "regions"
ACROSS = ".cross"  # how the sites end where the streams look at one another
STREAMS = {"text": WORDS, "words": WORDS, "regions": REGIONS}  # axes, as the model names them
MOST_KEPT = 512  # regions: among more of them, who looks at whom is not kept
WHOLE = "the image"


@dataclass(frozen=True)
class SeenPair:
    """A text and an image, what was said of them, and where each word and each region looked.

    `boxes` are the regions on the square image, the whole first. Where a sentence is chosen, `text`
    is the one that was looked at, of those of `whole`.
    """

    image: PairImage
    whole: PairText
    text: PairText
    answer: PairAnswer
    sites: dict[str, Glance]
    sides: dict[str, tuple[str, str]]
    axis: Axis  # of the regions
    boxes: Float[Tensor, "n 4"]

    @property
    def labels(self) -> list[str]:
        """What regions are called: boxes by their numbers, cells by row and column."""
        if self.axis.kind == "grid":
            cells = range(self.axis.height * self.axis.width)
            return [WHOLE, *(f"{c // self.axis.width},{c % self.axis.width}" for c in cells)]
        named = self.image.labels or ("",) * (len(self.boxes) - 1)
        return [WHOLE, *(f"{n} {label}".strip() for n, label in enumerate(named, start=1))]

    def axes(self, tool: PairTool) -> dict[str, AxisEntry]:
        """What lies along the sides of its sites."""
        return {WORDS: word_axis(tool, self.text), REGIONS: self._region_axis()}

    def _region_axis(self) -> AxisEntry:
        labels = self.labels
        if self.axis.kind == "grid":
            grid = grid_entry(self.axis.lattice, special=self.axis.special)
            return AxisEntry(kind="grid", tokens=labels, prompt=len(labels), grid=grid)
        # Names that follow one another are no running text: a blank keeps them apart.
        names = [f" {label}" for label in labels]
        words = [(place, place + 1) for place in range(len(names))]
        return AxisEntry(tokens=names, words=words, prompt=len(names))


def word_axis(tool: PairTool, text: PairText) -> AxisEntry:
    """The words of a text; a blank is one of them."""
    if text.blanks is not None and text.blanks.at:
        return blank_axis(tool.vocabulary, text.blanks)
    return reading_axis(tool.vocabulary, (text.text,), text.reading)


def seen_sentences(tool: PairTool, subject: PairSubject, *, best: int) -> list[SeenPair]:
    """All that is read by itself: the text, or sentences to choose from, the likeliest first."""
    first = seen_pair(tool, subject, best=best)
    others = [one.label for one in first.answer.guesses[1:] if first.answer.sentences]
    return [first, *(seen_pair(tool, subject, best=best, of=one) for one in others)]


@torch.no_grad()
def seen_pair(
    tool: PairTool, subject: PairSubject, *, best: int, of: str | None = None
) -> SeenPair:
    """Read it, and keep where all heads of both streams looked; of sentences to choose from, at the
    one that was chosen, or that `of` names.
    """
    image, whole = subject.sight(tool), tool.read_text(subject.text)
    (answer,) = tool.answers([image], [whole], best=best)
    text = whole.sentences[tool.aim(answer, of) if answer.sentences else 0]
    regions = len(image.sighted.boxes) + 1 if tool.wants_boxes else _cells(tool, image)
    longest = max(len(text.reading.tokens), regions)
    only = ACROSS if regions > MOST_KEPT else ""
    with looking(tool.model, keep=Keep(dense=longest, map_side=0, top=0), only=only) as trace:
        given = tool.read([image], [text], [0]).regions
        sides = {
            name: (STREAMS[rows.name], STREAMS[columns.name])
            for name, (rows, columns) in trace.axes.items()
            if {rows.name, columns.name} <= STREAMS.keys()
        }
        seen = {name: trace[name].cpu() for name in trace if name in sides}
    axis = next(b for name, (_, b) in trace.axes.items() if sides.get(name) == (WORDS, REGIONS))
    return SeenPair(image, whole, text, answer, seen, sides, axis, given.boxes.cpu())


def _cells(tool: PairTool, image: PairImage) -> int:
    """How many regions a model sees that looks at a grid."""
    return tool.model.see(image.sighted.pixels[None].to(tool.device), None).features.shape[1]
