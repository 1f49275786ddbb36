"""What every model that reads whole texts is set by: its sizes, and what it says about a text."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal

from jaxtyping import Float
from torch import Tensor, nn

from saccade.config import WordModelConfig, check_positive
from saccade.data.batching.rows import Rows

HeadKind = Literal["words", "text", "tokens", "replaced"]
ReadingPlace = Literal["first", "last", "mean"]


def place_read(reads: ReadingPlace, tokens: int) -> int | None:
    """At which of so many tokens a text is read; None: from the mean of all."""
    return {"first": 0, "last": tokens - 1, "mean": None}[reads]


def state_read(
    hidden: Float[Tensor, "words D"], rows: Rows, reads: ReadingPlace
) -> Float[Tensor, "B D"]:
    """One state for each sequence; an empty one gets any."""
    if reads == "mean":
        lengths = rows.starts.diff().clamp(min=1)
        total = hidden.new_zeros(len(lengths), hidden.shape[1])
        return total.index_add(0, rows.sequences, hidden) / lengths[:, None]
    first, last = rows.starts[:-1].clamp(max=len(hidden) - 1), rows.starts[1:] - 1
    return hidden[first if reads == "first" else last.clamp(min=0)]


@dataclass(frozen=True, kw_only=True)
class TextEncoderConfig(WordModelConfig):
    """Sizes of a text encoder.

    Args:
        head: what it tells: words that are hidden (`words`), the class of a text (`text`), one of
            each token (`tokens`), or which tokens somebody replaced (`replaced`).
        labels: how many classes, or numbers, it gives a text or a token; training takes as many as
            the data have.
        next_sentence: beside hidden words, also tell whether the second text follows the first.
    """

    head: HeadKind = "words"
    labels: int = 2
    next_sentence: bool = False

    def __post_init__(self) -> None:
        check_positive(self, "vocabulary", "labels")

    @abstractmethod
    def build(self) -> nn.Module:
        """Fresh weights, from torch's global random state."""
