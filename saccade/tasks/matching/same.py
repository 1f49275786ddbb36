"""Texts that say the same."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from hashlib import blake2b

import torch
from jaxtyping import Int
from torch import Tensor


def wording(text: str) -> str:
    """A text without what does not matter: capitals, and how many blanks there are."""
    return " ".join(text.casefold().split())


def marks(texts: Iterable[str]) -> Iterator[int]:
    """A number for the wording of each; others have another, by all likelihood."""
    for text in texts:
        raw = blake2b(wording(text).encode("utf-8", "surrogatepass"), digest_size=8).digest()
        yield int.from_bytes(raw, "little", signed=True)


def numbered(wordings: Sequence[Hashable]) -> Int[Tensor, " T"]:
    """Equal ones by the same number, from 0."""
    numbers: dict[Hashable, int] = {}
    return torch.tensor(
        [numbers.setdefault(one, len(numbers)) for one in wordings], dtype=torch.long
    )
