"""What tokens read like, whoever's tokenizer made them: words with their blanks, no ▁, Ġ or ##."""

from itertools import accumulate
from typing import Any, Protocol, runtime_checkable

from tokenizers import Tokenizer

from saccade.app.look import axis
from saccade.data.tokens.pieces import token_labels, token_spans
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
    def decode(
        self,
        token_ids: list[int],
        *,
        skip_special_tokens: bool,
        clean_up_tokenization_spaces: bool,
    ) -> str: ...


def readable(tokenizer: Any, ids: list[int]) -> list[str]:
    """Each token as it reads in its place; special tokens by their names.

    What a token adds to the decoded text needs no knowledge of how pieces are marked.
    """
    if isinstance(tokenizer, PieceReader):
        return tokenizer.pieces(ids)
    plain: dict[str, Any] = {"skip_special_tokens": False}
    if isinstance(tokenizer, Tokenizer):
        added = tokenizer.get_added_tokens_decoder()
        special = {i: token.content for i, token in added.items() if token.special}
    elif isinstance(tokenizer, HuggingFaceTokenizer):
        special = {i: tokenizer.convert_ids_to_tokens(i) for i in tokenizer.all_special_ids}
        plain["clean_up_tokenization_spaces"] = False  # it would take blanks away again
    else:
        raise ConfigError(
            f"{type(tokenizer).__name__} is no tokenizer that Saccade knows; give one of "
            "transformers, tokenizers or a vocabulary of Saccade, or the words as tokens=[…]"
        )

    def decode(some: list[int]) -> str:
        return tokenizer.decode(some, **plain)

    read = token_labels(decode(ids), token_spans(decode, ids))
    return [special.get(i, piece) for i, piece in zip(ids, read)]


def word_ranges(pieces: list[str]) -> list[tuple[int, int]]:
    """Which pieces [from, to) make up each word; one that shows nothing carries on the last."""
    ends = accumulate(map(len, pieces))
    spans = [(end - max(len(piece), 1), end) for piece, end in zip(pieces, ends)]
    return axis.word_ranges(spans, "".join(pieces))
