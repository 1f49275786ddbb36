"""What the trainer asks of a kind of work: batches as a function of position, a loss, a check."""

from collections.abc import Hashable
from typing import Protocol, Self, TypeVar, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from saccade.data.rows import Room
from saccade.data.vocabulary import Vocabulary


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


B = TypeVar("B", bound=Batch)


@runtime_checkable
class Cut(Protocol):
    """A data set in batches; every epoch has the same number of them."""

    @property
    def rooms(self) -> tuple[Room, ...] | None:
        """The shape that every batch fits into, a room for each column of lengths."""
        ...

    @property
    def padding(self) -> float: ...

    def __len__(self) -> int: ...

    def epoch(self, number: int) -> list[Int[Tensor, " batch"]]: ...


@runtime_checkable
class Plan(Protocol):
    """How a data set is cut into batches, given the lengths of its rows."""

    def __call__(self, lengths: Int[Tensor, "rows columns"], *, budget: int, seed: int) -> Cut: ...


@runtime_checkable
class Task(Protocol[B]):
    """Data, loss and check of one kind of work."""

    @property
    def vocabulary(self) -> Vocabulary: ...

    @property
    def batches_per_epoch(self) -> int: ...

    @property
    def padding(self) -> float:
        """The share of padding among the positions of a batch, for a model that pads."""
        ...

    def fingerprint(self) -> str:
        """Changes when the training data do."""
        ...

    def batch(self, position: int, *, shard: int = 0, shards: int = 1) -> B:
        """Micro-batch number `position` since the start; process `shard` gets its share of rows."""
        ...

    def loss(self, model: nn.Module, batch: B) -> Float[Tensor, ""]:
        """The training loss, summed over the batch's tokens."""
        ...

    def validate(self, model: nn.Module, device: torch.device) -> dict[str, float]:
        """Held-out figures; `loss`, per token, is the one that decides which weights are best."""
        ...


def shard_rows(rows: Tensor, shard: int, shards: int) -> tuple[Tensor, bool]:
    """The rows of one process of many, and whether they count.

    A process left without rows takes one that does not count, for all must take part in a step.
    """
    mine = rows[shard::shards]
    return (mine, True) if len(mine) else (rows[:1], False)
