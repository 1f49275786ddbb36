"""What every model that reads whole texts is set by: its sizes, and what it says about a text."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal

from torch import nn

from saccade.config import WordModelConfig, check_positive

HeadKind = Literal["words", "text", "tokens", "replaced"]


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
