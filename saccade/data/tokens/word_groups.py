"""Which tokens make up each word, told from the tokens alone: for hiding whole words, and for tags.

A word is what the tokenizer's own splitting leaves together. WordPiece marks what carries a word on
("##ing"); byte-level tokenizers and SentencePiece mark where one begins, by its blank. GPT-2's
splitting parts letters, digits and other marks as well, so that "bread" and "." are two words.
"""

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from tokenizers import Tokenizer, decoders, models

from saccade.data.tokens.pieces import entry_bytes
from saccade.data.tokens.words import Span


class Piece(NamedTuple):
    """How a token begins and ends; without a head it begins a word, whatever is before it."""

    head: str
    tail: str


Reader = Callable[[str], Piece]
ANYTHING = "blank"  # a lone blank belongs to what follows it
ALONE = Piece("", "")


class WordStarts:
    """Every token of a tokenizer by how it begins and ends."""

    def __init__(self, pieces: dict[int, Piece]) -> None:
        self._pieces = pieces

    @classmethod
    def of(cls, tokenizer: Tokenizer, special: Collection[int | None]) -> "WordStarts":
        read = _reader(tokenizer)
        vocabulary = tokenizer.get_vocab().items()
        return cls({n: read(entry) for entry, n in vocabulary if n not in special})

    def groups(self, tokens: list[int]) -> list[Span]:
        """From where to where each word goes."""
        found, before = list[Span](), None
        for place, token in enumerate(tokens):
            piece = self._pieces.get(token)
            if piece is not None and before is not None and _continues(before, piece):
                found[-1] = (found[-1][0], place + 1)
            elif piece is not None:
                found.append((place, place + 1))
            before = piece
        return found


def _continues(before: Piece, piece: Piece) -> bool:
    return bool(piece.head) and before.tail in (piece.head, ANYTHING)


def _reader(tokenizer: Tokenizer) -> Reader:
    model: Any = tokenizer.model
    if isinstance(model, models.WordPiece):
        prefix: str = model.continuing_subword_prefix
        return lambda entry: Piece("letter" if entry.startswith(prefix) else "", "letter")
    if isinstance(tokenizer.decoder, decoders.ByteLevel):
        return _of_bytes
    if isinstance(tokenizer.decoder, decoders.Metaspace):
        return lambda entry: Piece("" if entry.startswith("▁") else "letter", "letter")
    return lambda _: ALONE


def _of_bytes(entry: str) -> Piece:
    content = entry_bytes(entry)
    if not content:
        return ALONE
    head, tail = _kind(content[:1]), _kind(content[-1:])
    return Piece("" if content[:1] == b" " else head, ANYTHING if content == b" " else tail)


def _kind(byte: bytes) -> str:
    if byte.isalpha() or byte >= b"\x80":
        return "letter"
    if byte.isdigit():
        return "digit"
    return "space" if byte.isspace() else "mark"
