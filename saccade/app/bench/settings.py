"""What every bench against peers lets a user choose."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, TypeVar, runtime_checkable

import torch

from saccade.app.bench.floor import PRECISIONS, Machine
from saccade.app.bench.race import Contender, Race, Tell, Workload, check_peers, choose, run_race
from saccade.app.bench.sentences import SentencePairs
from saccade.app.bench.timing import check_measuring
from saccade.blocks.inference.affine import Precision
from saccade.config import ModelConfig, check_positive
from saccade.errors import ConfigError
from saccade.models.text.transformer import TransformerConfig
from saccade.train.devices.distributed import choose_device

Config = TypeVar("Config", bound=ModelConfig)
Entries = tuple[Workload, Iterable[Contender]]  # what is raced, and who takes part
Size = Literal["small", "base"]
TRANSFORMERS: dict[Size, TransformerConfig] = {
    "small": TransformerConfig(vocabulary=8000, width=256, depth=3, heads=4, hidden=1024),
    "base": TransformerConfig(vocabulary=32000),
}


@runtime_checkable
class Result(Protocol):
    """A table: its heading and its columns for people, all of it for programs."""

    def heading(self) -> str: ...

    def columns(self) -> dict[str, list[str]]: ...

    def remarks(self) -> list[str]: ...

    def table(self) -> dict[str, Any]: ...


class Lengths(NamedTuple):
    """How many sentences, and the shortest and longest of each side."""

    sentences: int
    source: tuple[int, int]
    target: tuple[int, int]

    def draw(self, bench: "BenchSettings", vocabulary: int) -> SentencePairs:
        """Such sentences; as many as the user asked for, if at all."""
        return SentencePairs.draw(
            bench.sentences or self.sentences,
            vocabulary=vocabulary,
            source=self.source,
            target=self.target,
            seed=bench.seed,
        )


LENGTHS: dict[Size, Lengths] = {
    "small": Lengths(64, (20, 30), (20, 30)),
    "base": Lengths(512, (16, 32), (32, 32)),
}


@dataclass(frozen=True, kw_only=True)
class RaceSettings(ABC):
    """Where and how to measure; what is not given fits the device.

    Args:
        device: cpu, cuda …; auto takes the fastest there is.
        precision: fp32 or bf16; auto is bf16 on a GPU.
        peers: names of those to measure beside Saccade, with commas between; all if empty.
        seconds: for which each table is measured at least.
        seed: of the weights and the data.
    """

    known: ClassVar[tuple[str, ...]] = ()  # the names of all peers there are

    device: str = "auto"
    precision: str = "auto"
    peers: str = ""
    seconds: float = 10.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.precision not in ("auto", *PRECISIONS):
            known = ", ".join(PRECISIONS)
            raise ConfigError(f"precision={self.precision} is not one of auto, {known}")
        for name, value in vars(self).items():
            if value == ():
                raise ConfigError(f"{name}=nothing leaves nothing to measure; give one or more")
        check_peers(self.peers, self.known)
        check_measuring(self.seconds, self.seed)

    @abstractmethod
    def results(self, machine: Machine, tell: Tell) -> Iterator["Result"]:
        """Table after table, each as soon as it is measured."""

    def race_all(
        self, entries: Iterable[Entries], tell: Tell, *, profiled: bool = False
    ) -> Iterator[Race]:
        """A race for each workload; its contenders are made when its turn comes."""
        how: dict[str, Any] = {"device": self.where, "seconds": self.seconds, "tell": tell}
        for job, contenders in entries:
            yield run_race(job, choose(contenders, self.peers), **how, profiled=profiled)

    @property
    def where(self) -> torch.device:
        return choose_device(self.device)

    @property
    def on_gpu(self) -> bool:
        return self.where.type == "cuda"

    @property
    def arithmetic(self) -> str:
        """The precision asked for, or the one that fits the device."""
        if self.precision == "auto":
            return "bf16" if self.on_gpu else "fp32"
        return self.precision

    @property
    def inference(self) -> Precision:
        """The same, in the words of a model without gradients."""
        return "bfloat16" if self.arithmetic == "bf16" else "float32"

    @property
    def repeats(self) -> int:
        """Updates in a run: a GPU is told the next while it works at the last."""
        return 10 if self.on_gpu else 1


@dataclass(frozen=True, kw_only=True)
class BenchSettings(RaceSettings):
    """Where and how to measure, and the sizes of models of text.

    Args:
        size: of all models: small (width 256) or base (width 512); auto is base on a GPU.
        vocabulary: how many words.
        width: of the vectors.
        depth: layers of each stack.
        heads: of each attention.
        hidden: width inside the MLPs.
        sentences: rows of a batch.
    """

    size: Literal["auto", "small", "base"] = "auto"
    vocabulary: int | None = None
    width: int | None = None
    depth: int | None = None
    heads: int | None = None
    hidden: int | None = None
    sentences: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        sizes = ("vocabulary", "width", "depth", "heads", "hidden", "sentences")
        check_positive(self, *(name for name in sizes if getattr(self, name) is not None))

    @property
    def fitting(self) -> Size:
        """The size asked for, or the one that fits the device."""
        if self.size == "auto":
            return "base" if self.on_gpu else "small"
        return self.size

    def sized(self, config: Config) -> Config:
        """A model's settings with the sizes that were given in place of its own."""
        given: dict[str, Any] = {
            name: value
            for name in ("vocabulary", "width", "depth", "heads", "hidden")
            if (value := getattr(self, name)) is not None and name in vars(config)
        }
        return replace(config, **given)
