"""What the trainer asks of a kind of work: batches as a function of position, losses, figures."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, Self, TypeVar, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from saccade.config import ModelConfig
from saccade.data.batching.batches import Batches
from saccade.data.batching.mixed import MixedBatches
from saccade.data.batching.rows import BatchShape
from saccade.errors import ConfigError, DataError
from saccade.printable import printable

Progress = Callable[[int, int], None]
BatchingKind = Literal["similar", "mixed"]


Part = TypeVar("Part")


def silent(done: int, total: int) -> None:
    """Nobody wants to know."""


def each_told(parts: Sequence[Part], progress: Progress) -> Iterator[Part]:
    """The parts in order; `progress` is told how many are done."""
    for number, part in enumerate(parts, start=1):
        yield part
        progress(number, len(parts))


@runtime_checkable
class Batch(Protocol):
    """Tensors of one micro-batch; `tokens` is how many predictions its loss sums over."""

    @property
    def tokens(self) -> int: ...

    @property
    def shape(self) -> Hashable:
        """Equal for batches that the same kernels, launched in the same way, can serve."""
        ...

    def to(self, device: torch.device) -> Self: ...

    def pinned(self) -> Self:
        """In memory from which a GPU can fetch it by itself."""
        ...


@runtime_checkable
class Fillable(Protocol):
    """A batch that can be filled up to one of few shapes, for steps that are captured."""

    def filled(self) -> Batch: ...


@runtime_checkable
class CountsItems(Protocol):
    """A batch whose budget counts other things than its losses are summed over: `items`."""

    @property
    def items(self) -> int: ...


B = TypeVar("B", bound=Batch)


@runtime_checkable
class PartlyCompiled(Protocol):
    """A task whose losses begin with what no compiler can trace: images that vary on the device."""

    def hide_from_compiler(self) -> None:
        """Let that part run as it is written."""
        ...


@runtime_checkable
class SeesOnce(Protocol):
    """A task that computes beforehand what a part of a model that never changes makes of data."""

    def see_once(self, model: Any, device: torch.device, progress: Progress) -> list[str]:
        """Do so where it can; batches then carry it. Lines for the user."""
        ...


@runtime_checkable
class Batching(Protocol):
    """A data set in batches; every epoch has the same number of them."""

    @property
    def shapes(self) -> tuple[BatchShape, ...] | None:
        """The shape that every batch fits into, one for each column of lengths."""
        ...

    @property
    def positions(self) -> int:
        """How many are computed in an epoch, padding counted."""
        ...

    @property
    def padding(self) -> float: ...

    def __len__(self) -> int: ...

    def epoch(self, number: int) -> list[Int[Tensor, " batch"]]: ...


@runtime_checkable
class MakeBatching(Protocol):
    """How a data set becomes batches, given the lengths of its rows."""

    def __call__(
        self, lengths: Int[Tensor, "rows columns"], *, budget: int, seed: int
    ) -> Batching: ...


BATCHINGS: dict[BatchingKind, MakeBatching] = {
    "similar": Batches.of_lengths,
    "mixed": MixedBatches.of_lengths,
}


class Deciding(NamedTuple):
    """The held-out figure that says which weights are best, and in which direction."""

    figure: str
    label: str  # with its unit, for people
    higher: bool = False

    def better(self, value: float, than: float | None) -> bool:
        """Whether it improves on the best so far; a figure that is no number never does."""
        if than is None or not math.isfinite(value):
            return math.isfinite(value)
        return value > than if self.higher else value < than


@runtime_checkable
class Task(Protocol[B]):
    """Data, losses and figures of one kind of work."""

    @property
    def deciding(self) -> Deciding: ...

    @property
    def report(self) -> list[str]:
        """Lines about the data, for the user."""
        ...

    @property
    def sizes(self) -> str:
        """What the data decided of the model, such as "8,000 tokens in the vocabulary"."""
        ...

    @property
    def batches_per_epoch(self) -> int: ...

    @property
    def padding(self) -> float:
        """The share of padding among the positions of a batch, for a model that pads."""
        ...

    def assets(self) -> dict[str, bytes]:
        """Files that a run must keep to use its model: a tokenizer, names of classes, …"""
        ...

    def fit(self, model: ModelConfig) -> ModelConfig:
        """The model with the sizes that the data decide, such as that of the vocabulary."""
        ...

    def fingerprint(self) -> str:
        """Changes when the training data do."""
        ...

    def batch(self, position: int, *, shard: int = 0, shards: int = 1) -> B:
        """Micro-batch number `position` since the start; process `shard` gets its share of rows."""
        ...

    def losses(self, model: Any, batch: B) -> dict[str, Float[Tensor, ""]]:
        """By name, each summed over the batch's tokens; training follows the sum of all."""
        ...

    def validate(
        self, model: Any, device: torch.device, progress: Progress = silent
    ) -> dict[str, float]:
        """Held-out figures; `progress` is told how much of them is done."""
        ...


class LengthBound(NamedTuple):
    """How many tokens a text may have, start or end counted, and the option that says so."""

    tokens: int
    option: str
    times: str = ""

    def report(self, left_out: int, of: str) -> list[str]:
        """A line for the user where anything was left out."""
        why = f"{self.times}{self.option}"
        return [f"left out: {left_out:,} {of} over {self.tokens:,} tokens ({why})"] * (left_out > 0)

    def none_fits(self, of: str) -> str:
        """What to say where all was left out."""
        return f"none of the {of} has under {self.tokens:,} tokens; raise {self.option}"


@dataclass(frozen=True)
class OtherRun:
    """A run that was trained before, such as a detector whose boxes are learnt from."""

    folder: Path
    task: "TaskSettings"
    network: nn.Module


OpenRun = Callable[[str, str], OtherRun]  # a folder, and the option that names it


def no_runs(folder: str, option: str) -> OtherRun:
    """Where nobody can open any."""
    raise ConfigError(f"{option} {printable(folder)} cannot be opened here; train by a recipe")


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """What a task needs to know beside its own settings to get its data ready.

    `most_words` is what the model can take; `folder` holds the assets of the run where it was
    begun before; `start` is what a new one starts from, a folder or a file; `device` is
    where it will be trained, and `open_run` loads another run there.
    """

    budget: int
    seed: int
    batching: BatchingKind = "similar"
    most_words: int | None = None
    folder: Path | None = None
    start: Path | None = None
    device: torch.device = torch.device("cpu")  # noqa: RUF009
    open_run: OpenRun = no_runs
    progress: Progress = silent

    @property
    def make_batching(self) -> MakeBatching:
        return BATCHINGS[self.batching]

    def bound(self, tokens: int, option: str, times: str = "") -> LengthBound:
        """The least of what a setting allows and what the model can take."""
        if self.most_words is not None and self.most_words < tokens:
            return LengthBound(self.most_words, "--model.longest")
        return LengthBound(tokens, option, times)

    def asset(self, name: str) -> Path | None:
        """A file that an earlier start of the run has kept."""
        path = None if self.folder is None else self.folder / name
        return path if path is not None and path.is_file() else None


@dataclass(frozen=True, kw_only=True)
class TaskSettings(ABC):
    """What to learn, and from which data.

    Args:
        data: where the data are; without, the built-in ones.
    """

    budget_unit: ClassVar[str] = "tokens"  # in which batches and the rate of training are counted
    example: ClassVar[str] = '"…"'  # what `saccade predict RUN` may be given
    fitted: ClassVar[frozenset[str]] = frozenset()  # fields of a model that the data decide
    # Fields that say where something is: what counts is what is there, and the fingerprint has it.
    places: ClassVar[frozenset[str]] = frozenset({"data"})
    lower_is_better: ClassVar[frozenset[str]] = frozenset({"loss", "perplexity"})  # of its figures

    data: str = ""

    @property
    @abstractmethod
    def announcement(self) -> str:
        """What is about to happen, for it may take a while."""

    @abstractmethod
    def prepare(self, how: Preparation) -> Task[Any]:
        """Read the data, or make them, and get them ready to be learnt from."""

    def check(self, model: ModelConfig) -> None:  # noqa: B027
        """Refuse a model that cannot learn this, before anything is read."""

    def sized_for(self, model: ModelConfig) -> Self:
        """With the sizes that a published model has, where the data are to decide them."""
        sizes: dict[str, Any] = {
            name: vars(model)[name] for name in self.fitted & vars(self).keys()
        }
        return replace(self, **sizes)

    def notes_on_start(self, folder: Path) -> list[str]:
        """What to know of weights that lie in a folder, before they learn this."""
        return []

    def smallest(self, model: ModelConfig) -> ModelConfig:
        """The least that the data can make of a model."""
        least: dict[str, Any] = dict.fromkeys(self.fitted, 1)
        return replace(model, **least)

    def fitted_sizes(self) -> dict[str, Any]:
        """What the data decide of a model: the most that it may be, unless they are known."""
        return {name: vars(self)[name] for name in sorted(self.fitted)}

    @property
    def data_name(self) -> str:
        """Which data, in a few words; runs of equal data can be compared."""
        return printable(Path(self.data).name) if self.data else "built-in data"

    @property
    def labelled_items(self) -> int | None:
        """How many items with labels there are to learn from; None where nobody has said."""
        return None

    def with_every_label(self) -> "TaskSettings":
        """The same data, none of their labels kept back."""
        return self

    def multiply_adds(self, model: ModelConfig) -> int | None:
        """What one forward pass costs over one of what batches count; None: nobody has counted."""
        return None

    def located(self) -> Self:
        """With the places of data from the root: a run is used from anywhere."""
        named = {name: vars(self)[name] for name in self.places if vars(self)[name]}
        return replace(self, **{name: str(Path(x).absolute()) for name, x in named.items()})


@dataclass(frozen=True, kw_only=True)
class TextSettings(TaskSettings):
    """A kind of work whose model has the vocabulary of its data."""

    fitted: ClassVar[frozenset[str]] = frozenset({"vocabulary"})


def with_vocabulary(model: ModelConfig, size: int) -> ModelConfig:
    """A model of words, once the tokenizer is known."""
    fields: dict[str, Any] = {"vocabulary": size}
    return replace(model, **fields)


def refuse_without_data(settings: TaskSettings, *names: str) -> None:
    """Refuse settings that say where in the user's data something is, where there are none."""
    for name in names:
        if not settings.data and getattr(settings, name):
            raise ConfigError(
                f"{name}={printable(getattr(settings, name))} is of data of your own; give --data "
                f"too, or leave --{name} out"
            )


def check_split(split: str, known: Collection[str], of: str) -> str:
    """A split that built-in data have; any other is refused."""
    if split not in known:
        raise DataError(f"{of} has no split '{printable(split)}'; there are: {', '.join(known)}")
    return split


def shard_rows(rows: Tensor, shard: int, shards: int) -> tuple[Tensor, bool]:
    """The rows of one process of many, and whether they count.

    A process left without rows takes one that does not count, for all must take part in a step.
    """
    mine = rows[shard::shards]
    return (mine, True) if len(mine) else (rows[:1], False)
