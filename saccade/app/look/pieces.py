"""What tokens read like, whoever's tokenizer made them: words with their blanks, no ▁, Ġ or ##."""

from itertools import pairwise
from typing import Any, Protocol, runtime_checkable

from tokenizers import Tokenizer

from saccade.errors import ConfigError


@runtime_checkable
class PieceReader(Protocol):
    """A vocabulary of ours."""

    def pieces(self, tokens: list[int]) -> list[str]: ...


@runtime_checkable
class HuggingFaceTokenizer(Protocol):
    """A tokenizer of transformers, slow or fast."""

    @property
    def all_special_ids(self) -> list[int]: ...
    def convert_ids_to_tokens(self, ids: int) -> str: ...
    def decode(self, token_ids: list[int], *, skip_special_tokens: bool) -> str: ...


def readable(tokenizer: Any, ids: list[int]) -> list[str]:
    """Each token as it reads after the one before it; special tokens by their names.

    Decoding two tokens and taking the first away needs no knowledge of how pieces are marked.
    """
    if isinstance(tokenizer, PieceReader):
        return tokenizer.pieces(ids)
    if isinstance(tokenizer, Tokenizer):
        added = tokenizer.get_added_tokens_decoder()
        special = {i: token.content for i, token in added.items() if token.special}
    elif isinstance(tokenizer, HuggingFaceTokenizer):
        special = {i: tokenizer.convert_ids_to_tokens(i) for i in tokenizer.all_special_ids}
    else:
        raise ConfigError(
            f"{type(tokenizer).__name__} is no tokenizer that Saccade knows; give one of "
            "transformers, tokenizers or a vocabulary of Saccade, or the words as tokens=[…]"
        )
    read = [tokenizer.decode([i], skip_special_tokens=False) for i in ids]
    both = [tokenizer.decode([*two], skip_special_tokens=False) for two in pairwise(ids)]
    after = [
        two.removeprefix(one) if two.startswith(one) else alone
        for two, one, alone in zip(both, read, read[1:])
    ]
    return [special.get(i, piece) for i, piece in zip(ids, [*read[:1], *after])]


def word_ranges(pieces: list[str]) -> list[tuple[int, int]]:
    """Which pieces [from, to) make up each word: letters that follow letters without a blank."""
    words: list[tuple[int, int]] = []
    for place, piece in enumerate(pieces):
        joins = place and piece[:1].isalnum() and pieces[place - 1][-1:].isalnum()
        start = words.pop()[0] if joins else place
        words.append((start, place + 1))
    return words
