"""Texts to tokens as they stream: what is held beside the tokens is bounded.

Encodings of the library are far larger than the tokens in them, so few texts are encoded at a time,
and a long one in pieces. It is cut only where that changes no token: at a single blank between two
words, with tokenizers that part words there and see nothing beyond. For the same reason a word that
was met before need not be encoded again: that takes a third of the time.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from itertools import accumulate, chain, islice

import numpy as np
import torch

from saccade.data.batching.blocks import blocks
from saccade.data.batching.ragged import Ragged, token_type
from saccade.data.tokens.token_shards import Shard
from saccade.data.tokens.vocabulary import Vocabulary

BLOCK = 1_000  # texts that are encoded together: memory is used again while it is warm
BLOCK_CHARACTERS = 1_000_000
PIECE = 100_000  # characters of a long text that are encoded at a time, and those up to a blank
MEMORY = 5_000_000  # characters of words that are remembered
SHARD = 100_000  # rows
SHARD_CHARACTERS = 50_000_000

TextRow = tuple[str, ...]

_BLANK = re.compile(r"(?<=\w) (?=\w)")
_WORDS = {
    "type": "Sequence",
    "pretokenizers": [
        {
            "type": "Split",
            "pattern": {"Regex": r"[^\S\n]+"},
            "behavior": "Removed",
            "invert": False,
        },
        {"type": "Split", "pattern": {"String": "\n"}, "behavior": "Isolated", "invert": False},
    ],
}
_CHARACTERS = {
    "type": "Split",
    "pattern": {"Regex": r"[\s\S]"},
    "behavior": "Isolated",
    "invert": False,
}


def pieces(text: str) -> Iterator[str]:
    """A long text in pieces, each from a blank between two words on."""
    start = 0
    while len(text) - start > PIECE and (blank := _BLANK.search(text, start + PIECE)):
        yield text[start : blank.start()]
        start = blank.start()
    yield text[start:] if start else text


def streamed_pieces(chunks: Iterable[str]) -> Iterator[str]:
    """The same pieces of a text that comes some characters at a time."""
    held, looked_at = "", PIECE
    for chunk in chunks:
        held += chunk
        while blank := _BLANK.search(held, looked_at):
            yield held[: blank.start()]
            held, looked_at = held[blank.start() :], PIECE
        looked_at = max(PIECE, len(held) - 1)  # what follows the last character is not known yet
    yield held


def reads_in_pieces(vocabulary: Vocabulary) -> bool:
    """Whether the tokens of a text are those of its `pieces`: as with all tokenizers of ours."""
    made = json.loads(vocabulary.to_json())
    if made["normalizer"] not in (None, {"type": "Lowercase"}) or made["model"].get("dropout"):
        return False
    if not all(token["special"] for token in made["added_tokens"]):
        return False
    parts = made["pre_tokenizer"] or {}
    bytes_by_word = parts.get("type") == "ByteLevel" and parts.get("use_regex", False)
    return bytes_by_word or parts in (_WORDS, _CHARACTERS)


def encode_ragged(vocabulary: Vocabulary, texts: Iterable[str]) -> Ragged:
    """The same numbers as `encode_all` gives, and little else in memory."""
    return StreamEncoder(vocabulary).encode(texts)


class StreamEncoder:
    """Encodes streams of texts, and remembers words: most were met before.

    Its memory of words is in numbers, of which `_known` has the tokens.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary, self._kind = vocabulary, token_type(len(vocabulary))
        self._cuts = reads_in_pieces(vocabulary)
        self._forget()

    def encode(self, texts: Iterable[str]) -> Ragged:
        flats, lengths = [np.empty(0, self._kind)], [np.empty(0, np.int64)]
        begins = list[bool]()
        bounds = {"most": BLOCK, "total": BLOCK_CHARACTERS}
        for block in blocks(self._pieces(texts), size=lambda one: len(one[0]), **bounds):
            some = [text for text, _ in block]
            rows = self._by_word(some) if self._cuts else self._at_once(some)
            flats.append(rows.flat.numpy())
            lengths.append(rows.lengths.numpy())
            begins += [first for _, first in block]
        ends = np.concatenate([[0], *lengths]).astype(np.int64).cumsum()
        starts = ends[np.array([*begins, True]).nonzero()[0]]
        return Ragged(torch.from_numpy(np.concatenate(flats)), torch.from_numpy(starts))

    def _pieces(self, texts: Iterable[str]) -> Iterator[tuple[str, bool]]:
        """Each piece, and whether a text begins with it."""
        for text in texts:
            for number, piece in enumerate(pieces(text) if self._cuts else [text]):
                yield piece, number == 0

    def _at_once(self, texts: list[str]) -> Ragged:
        rows = self._vocabulary.encode_all(texts)
        starts = np.fromiter(accumulate(map(len, rows), initial=0), np.int64, len(rows) + 1)
        flat = np.fromiter(chain.from_iterable(rows), self._kind, starts[-1])
        return Ragged(torch.from_numpy(flat), torch.from_numpy(starts))

    def _by_word(self, texts: list[str]) -> Ragged:
        """Words with single blanks between them are looked up; other texts are encoded whole.

        What stands at the start of a text is kept under a name with a blank before it, which no
        word has that comes later.
        """
        units, counts = list[str](), list[int]()
        for text in texts:
            words = text.split(" ")
            if words != text.split():
                words = [text]
            words[0] = f" {words[0]}"
            units += words
            counts.append(len(words))
        if self._held > MEMORY:
            self._forget()
        self._learn(list(set(units).difference(self._numbers)))
        numbers = np.fromiter(map(self._numbers.__getitem__, units), np.int64, len(units))
        flat, lengths = self._known.take(torch.from_numpy(numbers))
        ends = np.concatenate([[0], lengths.numpy().cumsum()])
        starts = ends[np.concatenate([[0], np.cumsum(counts)])]
        return Ragged(torch.from_numpy(flat.numpy().astype(self._kind)), torch.from_numpy(starts))

    def _learn(self, units: list[str]) -> None:
        texts = [unit[1:] if unit.startswith(" ") else f" {unit}" for unit in units]
        known = len(self._numbers)
        self._numbers.update({unit: known + place for place, unit in enumerate(units)})
        self._known = Ragged.joined([self._known, self._at_once(texts)])
        self._held += sum(map(len, units))

    def _forget(self) -> None:
        self._numbers, self._held = dict[str, int](), 0
        self._known = self._at_once([])


def encoded_shards(
    vocabulary: Vocabulary, rows: Iterable[TextRow], *, first: int
) -> Iterator[Shard]:
    """Rows of texts from number `first` on, some at a time, a column for each text of a row."""
    encoder = StreamEncoder(vocabulary)
    return (encoded_block(encoder, block) for block in row_blocks(rows, first=first))


def row_blocks(rows: Iterable[TextRow], *, first: int) -> Iterator[list[TextRow]]:
    """The rows of each shard."""
    rest = islice(rows, first, None)
    return blocks(rest, most=SHARD, size=lambda row: sum(map(len, row)), total=SHARD_CHARACTERS)


def encoded_block(encoder: StreamEncoder, block: list[TextRow]) -> Shard:
    """One shard."""
    columns = range(len(block[0]))
    marks = np.fromiter(map(_mark, block), np.int64, len(block))
    tokens = tuple(encoder.encode(row[column] for row in block) for column in columns)
    return Shard(tokens, torch.from_numpy(marks))


def _mark(row: tuple[str, ...]) -> int:
    """Sixty-four bits: among a billion rows, two that differ share one in three cases of a hundred.

    Only the report counts by it.
    """
    raw = hashlib.blake2b("\0".join(row).encode(), digest_size=8).digest()
    return int.from_bytes(raw, "little", signed=True)
