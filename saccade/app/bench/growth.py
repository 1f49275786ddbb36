"""`saccade bench growth`: how cost grows with the length, the number and the width."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any, Literal, NamedTuple, get_args

import torch

from saccade.app.bench.decode import talkative
from saccade.app.bench.floor import PRECISIONS, Machine, decoding_floor, training_flops
from saccade.app.bench.ours import translations, updates
from saccade.app.bench.race import DASH, Tell, or_dash
from saccade.app.bench.sentences import SentencePairs, translation_task
from saccade.app.bench.settings import TRANSFORMERS, BenchSettings, Size
from saccade.app.bench.timing import Work, by_the_wall, measure
from saccade.config import check_positive
from saccade.models.text.transformer import TransformerConfig

Varied = Literal["length", "sentences", "width"]
HEAD = 64  # the width of a head
MIDDLE: dict[Size, int] = {"small": 16, "base": 128}  # sentences, where they do not vary


@dataclass(frozen=True, kw_only=True)
class GrowthBench(BenchSettings):
    """Measure how the cost of an update and of a step of decoding grows with the sizes.

    Args:
        lengths: words of every sentence; 32 where something else varies.
        counts: sentences of a batch.
        widths: of the model, with heads of 64 and MLPs four times as wide.
    """

    lengths: tuple[int, ...] = (16, 32, 64, 128)
    counts: tuple[int, ...] = (4, 16, 64)
    widths: tuple[int, ...] = (128, 256, 512)

    def __post_init__(self) -> None:
        super().__post_init__()
        for shape in self._shapes("width"):
            check_positive(shape, "length", "sentences", "width")

    def results(self, machine: Machine, tell: Tell) -> Iterator["Growth"]:
        works = {"one update": _update, "one step of decoding": _decoding}
        for varied, (name, work) in product(get_args(Varied), works.items()):
            shapes = self._shapes(varied)
            sizes = [int(getattr(shape, varied)) for shape in shapes]
            costs = [work(self, shape, machine) for shape in shapes]
            points = _points(self, dict(zip(sizes, costs)))
            tell(f"{name} by {varied} measured")
            yield Growth(name, varied, points)

    def _shapes(self, varied: Varied) -> list["Shape"]:
        width = self.width or TRANSFORMERS[self.fitting].width
        middle = Shape(32, self.sentences or MIDDLE[self.fitting], width)
        values = {"length": self.lengths, "sentences": self.counts, "width": self.widths}[varied]
        changes: list[dict[str, Any]] = [{varied: value} for value in values]
        return [replace(middle, **change) for change in changes]


@dataclass(frozen=True)
class Shape:
    """One batch and model."""

    length: int
    sentences: int
    width: int


@dataclass(frozen=True)
class Point:
    """What one size costs, and by which power of the size it grew since the one before."""

    size: int
    milliseconds: float
    tokens_per_second: float
    floor_share: float
    memory_mib: float | None
    power: float | None


@dataclass(frozen=True)
class Growth:
    """How the cost of one kind of work depends on one size."""

    work: str
    varied: Varied
    points: tuple[Point, ...]

    def heading(self) -> str:
        return f"{self.work}, by {self.varied}"

    def columns(self) -> dict[str, list[str]]:
        points, varied = self.points, self.varied
        return {
            varied: [f"{one.size:,}" for one in points],
            "ms": [f"{one.milliseconds:,.4g}" for one in points],
            "grows as": [
                DASH if one.power is None else f"{varied}^{one.power:.2f}" for one in points
            ],
            "tokens/s": [f"{one.tokens_per_second:,.0f}" for one in points],
            "floor": [f"{one.floor_share:.1%}" for one in points],
            "MiB": [or_dash(one.memory_mib) for one in points],
        }

    def remarks(self) -> list[str]:
        return []

    def table(self) -> dict[str, Any]:
        return asdict(self)


class _Part(NamedTuple):
    """Work of so many steps, and of one of them: its words, and its floor in seconds."""

    work: Work
    steps: int
    words: int
    floor: float


def _points(bench: GrowthBench, parts: dict[int, _Part]) -> tuple[Point, ...]:
    works = {str(size): part.work for size, part in parts.items()}
    times = measure(works, bench.where, least_seconds=bench.seconds, clock=by_the_wall)
    points: list[Point] = []
    for size, part in parts.items():
        seconds = times[str(size)].seconds / part.steps
        points.append(
            Point(
                size=size,
                milliseconds=1000 * seconds,
                tokens_per_second=part.words / seconds,
                floor_share=part.floor / seconds,
                memory_mib=times[str(size)].peak_mib,
                power=_power(points[-1], size, 1000 * seconds) if points else None,
            )
        )
    return tuple(points)


def _power(before: Point, size: int, milliseconds: float) -> float:
    """The p of cost ∝ sizeᵖ between two points."""
    return math.log(milliseconds / before.milliseconds) / math.log(size / before.size)


def _config(bench: GrowthBench, shape: Shape) -> TransformerConfig:
    plain = bench.sized(TRANSFORMERS[bench.fitting])
    heads = max(1, shape.width // HEAD)
    sizes = {"width": shape.width, "heads": heads, "hidden": 4 * shape.width}
    return replace(plain, **sizes, longest=max(plain.longest, shape.length))


def _draw(bench: GrowthBench, shape: Shape, vocabulary: int) -> SentencePairs:
    exactly = (shape.length, shape.length)
    return SentencePairs.draw(
        shape.sentences, vocabulary=vocabulary, source=exactly, target=exactly, seed=bench.seed
    )


def _update(bench: GrowthBench, shape: Shape, machine: Machine) -> _Part:
    config, lengths = _config(bench, shape), [shape.length] * shape.sentences
    torch.manual_seed(bench.seed)
    sentences = _draw(bench, shape, config.vocabulary)
    task = translation_task(sentences, vocabulary=config.vocabulary, smoothing=0.1)
    floor = training_flops(config, lengths, lengths) / machine.flops
    return _Part(updates(bench, config.build(), task, count=1), 1, 2 * sum(lengths), floor)


def _decoding(bench: GrowthBench, shape: Shape, machine: Machine) -> _Part:
    """As many steps as the source is long; the encoder is shared out among them."""
    config, count = _config(bench, shape), shape.sentences
    model = talkative(config, seed=bench.seed).to(bench.where)
    inputs = _draw(bench, shape, config.vocabulary).inputs
    precision = bench.inference
    work = translations(model, inputs, beam=1, words=shape.length, precision=precision)
    size = PRECISIONS[bench.arithmetic].itemsize
    return _Part(work, shape.length, count, decoding_floor(config, count, 1, machine, size))
