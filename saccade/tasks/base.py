"""What the trainer asks of a kind of work: batches as a function of position, a loss, a check."""

from typing import Protocol, Self, TypeVar, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from saccade.data.vocabulary import Vocabulary


@runtime_checkable
class Batch(Protocol):
    """Tensors of one micro-batch; `tokens` is how many predictions its loss sums over."""

    @property
    def tokens(self) -> int: ...

    def to(self, device: torch.device) -> Self: ...


B = TypeVar("B", bound=Batch)


@runtime_checkable
class Task(Protocol[B]):
    """Data, loss and check of one kind of work."""

    @property
    def vocabulary(self) -> Vocabulary: ...

    @property
    def batches_per_epoch(self) -> int: ...

    @property
    def padding(self) -> float:
        """The share of padding among the positions that training computes."""
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


def summed_cross_entropy(
    logits: Float[Tensor, "tokens V"], labels: Int[Tensor, " tokens"], smoothing: float
) -> Float[Tensor, ""]:
    """−Σ log p(label), a share of each label spread over the vocabulary; in float32 or better."""
    exact = logits if logits.dtype == torch.float64 else logits.float()
    return F.cross_entropy(exact, labels, label_smoothing=smoothing, reduction="sum")
