"""Texts of a user's as a model reads them: refused where it cannot, and end to end."""

from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from saccade.data.batching.rows import Rows
from saccade.data.tokens.reading import Reading
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.errors import DataError
from saccade.printable import printable


def read_text(vocabulary: Vocabulary, text: str, most: int | None) -> Reading:
    """A text as tokens; what is empty or has more than `most` of them is refused."""
    (found,) = vocabulary.readings([(text,)])
    if all(side is None for side in found.sides):
        raise DataError(f"{printable(text[:60])!r} has no word that the model knows; write one")
    check_length(len(found.tokens), most)
    return found


def check_length(tokens: int, most: int | None) -> None:
    """Refuse a text of more tokens than the model reads."""
    if most is not None and tokens > most:
        raise DataError(f"the text has {tokens} tokens, but the model reads {most}; shorten it")


def reading_rows(
    texts: Sequence[Reading], device: torch.device
) -> tuple[Rows, Int[Tensor, " words"]]:
    """Texts end to end, and the types of their tokens."""
    tokens = torch.tensor([token for one in texts for token in one.tokens])
    types = torch.tensor([kind for one in texts for kind in one.types])
    lengths = torch.tensor([len(one.tokens) for one in texts])
    return Rows.of(tokens, lengths).to(device), types.to(device)
