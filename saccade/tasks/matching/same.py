"""Texts that say the same."""

from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor


def wording(text: str) -> str:
    """A text without what does not matter: capitals, and how many blanks there are."""
    return " ".join(text.casefold().split())


def numbered(wordings: Sequence[str]) -> Int[Tensor, " T"]:
    """Equal ones by the same number, from 0."""
    numbers: dict[str, int] = {}
    return torch.tensor(
        [numbers.setdefault(one, len(numbers)) for one in wordings], dtype=torch.long
    )
