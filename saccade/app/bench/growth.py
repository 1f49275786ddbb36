"""`saccade bench growth`: how cost grows with the length, the number and the width."""

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import torch

from saccade.app.bench.decode import talkative
from saccade.app.bench.floor import PRECISIONS, Machine, decoding_floor, training_flops
from saccade.app.bench.ours import translations, updates
from saccade.app.bench.sentences import Sentences, translation_task
from saccade.app.bench.settings import TRANSFORMERS, BenchSettings, Size
from saccade.app.bench.timing import Work, by_the_wall, measure
from saccade.config import check_positive
from saccade.models.text.transformer import TransformerConfig

Varied = Literal["length", "sentences", "width"]
HEAD = 64  # the width of a head
MIDDLE: dict[Size, int] = {"small": 16, "base": 128}  # sentences, where they do not vary


@dataclass(frozen=True, kw_only=True)
class GrowthBench(BenchSettings):
    """An update, and one step of greedy decoding, of our Transformer in several sizes.

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

    @property
    def known(self) -> tuple[str, ...]:
        return ()

    def shapes(self) -> dict[Varied, list["Shape"]]:
        """What is measured, by what varies."""
        return {varied: self._shapes(varied) for varied in ("length", "sentences", "width")}

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

    def table(self) -> dict[str, Any]:
        """All of it, for programs."""
        return asdict(self)


def run_growth_bench(
    bench: GrowthBench, machine: Machine, tell: Callable[[str], None] = lambda _: None
) -> Iterator[Growth]:
    """A table per kind of work and size, as soon as it is measured."""
    for varied, shapes in bench.shapes().items():
        for work, make, floor in (
            ("one update", _update, _update_floor),
            ("one step of decoding", _steps, _step_floor),
        ):
            works = {str(getattr(shape, varied)): make(bench, shape) for shape in shapes}
            times = measure(works, bench.where, least_seconds=bench.seconds, clock=by_the_wall)
            points: list[Point] = []
            for shape, time in zip(shapes, times.values()):
                steps = 1 if make is _update else shape.length
                words = shape.sentences * (2 * shape.length if make is _update else 1)
                seconds, size = time.seconds / steps, int(getattr(shape, varied))
                points.append(
                    Point(
                        size=size,
                        milliseconds=1000 * seconds,
                        tokens_per_second=words / seconds,
                        floor_share=floor(bench, shape, machine) / seconds,
                        memory_mib=None if time.peak_bytes is None else time.peak_bytes / 2**20,
                        power=_power(points[-1], size, 1000 * seconds) if points else None,
                    )
                )
            tell(f"{work} by {varied} measured")
            yield Growth(work, varied, tuple(points))


def _power(before: Point, size: int, milliseconds: float) -> float:
    """The p of cost ∝ sizeᵖ between two points."""
    return math.log(milliseconds / before.milliseconds) / math.log(size / before.size)


def _config(bench: GrowthBench, shape: Shape) -> TransformerConfig:
    plain = bench.sized(TRANSFORMERS[bench.fitting])
    heads = max(1, shape.width // HEAD)
    sizes = {"width": shape.width, "heads": heads, "hidden": 4 * shape.width}
    return replace(plain, **sizes, longest=max(plain.longest, shape.length))


def _draw(bench: GrowthBench, shape: Shape) -> Sentences:
    exactly = (shape.length, shape.length)
    vocabulary = _config(bench, shape).vocabulary
    return Sentences.draw(
        shape.sentences, vocabulary=vocabulary, source=exactly, target=exactly, seed=bench.seed
    )


def _update(bench: GrowthBench, shape: Shape) -> Work:
    config = _config(bench, shape)
    torch.manual_seed(bench.seed)
    task = translation_task(_draw(bench, shape), vocabulary=config.vocabulary, smoothing=0.1)
    return updates(config.build(), task, device=bench.where, precision=bench.arithmetic)


def _update_floor(bench: GrowthBench, shape: Shape, machine: Machine) -> float:
    lengths = [shape.length] * shape.sentences
    return training_flops(_config(bench, shape), lengths, lengths) / machine.flops


def _steps(bench: GrowthBench, shape: Shape) -> Work:
    """As many steps as the source is long; the encoder is shared out among them."""
    model = talkative(_config(bench, shape), seed=bench.seed)
    return translations(
        model.to(bench.where),
        _draw(bench, shape).inputs,
        beam=1,
        words=shape.length,
        precision="bfloat16" if bench.arithmetic == "bf16" else "float32",
    )


def _step_floor(bench: GrowthBench, shape: Shape, machine: Machine) -> float:
    size = PRECISIONS[bench.arithmetic].itemsize
    return decoding_floor(_config(bench, shape), shape.sentences, 1, machine, size)
