"""Texts to tokens as they stream: what is held beside the tokens is bounded.

Encodings of the library are far larger than the tokens in them, so few texts are encoded at a time,
and a long one in pieces. It is cut only where that changes no token: at a blank between two words,
by tokenizers that part words there and see nothing beyond.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice

import numpy as np
import torch

from saccade.data.blocks import blocks
from saccade.data.ragged import Ragged, token_type
from saccade.data.token_shards import Shard
from saccade.data.vocabulary import Vocabulary

BLOCK = 1_000  # texts that are encoded together: memory is used again while it is warm
BLOCK_CHARACTERS = 1_000_000
PIECE = 100_000  # characters of a long text that are encoded at a time, and those up to a blank
SHARD = 100_000  # rows
SHARD_CHARACTERS = 50_000_000

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


def reads_in_pieces(vocabulary: Vocabulary) -> bool:
    """Whether the tokens of a text are those of its `pieces`: as with all tokenizers of ours."""
    made = json.loads(vocabulary.to_json())
    if made["normalizer"] not in (None, {"type": "Lowercase"}):
        return False
    if not all(token["special"] for token in made["added_tokens"]):
        return False
    parts = made["pre_tokenizer"] or {}
    bytes_by_word = parts.get("type") == "ByteLevel" and parts.get("use_regex", False)
    return bytes_by_word or parts in (_WORDS, _CHARACTERS)


def encode_ragged(vocabulary: Vocabulary, texts: Iterable[str]) -> Ragged:
    """The same numbers as `encode_all` gives, and little else in memory."""
    kind = token_type(len(vocabulary))
    flats, lengths, begins = [np.empty(0, kind)], [np.empty(0, np.int64)], list[bool]()
    bounds = {"most": BLOCK, "total": BLOCK_CHARACTERS}
    for block in blocks(_pieces(vocabulary, texts), size=lambda one: len(one[0]), **bounds):
        rows = vocabulary.encode_all([text for text, _ in block])
        sizes = np.fromiter(map(len, rows), np.int64, len(rows))
        flats.append(np.fromiter(chain.from_iterable(rows), kind, sizes.sum()))
        lengths.append(sizes)
        begins += [first for _, first in block]
    ends = np.concatenate([[0], *lengths]).astype(np.int64).cumsum()
    starts = ends[np.array([*begins, True]).nonzero()[0]]
    return Ragged(torch.from_numpy(np.concatenate(flats)), torch.from_numpy(starts))


def _pieces(vocabulary: Vocabulary, texts: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Each piece, and whether a text begins with it."""
    cuts: bool | None = None
    for text in texts:
        if len(text) <= PIECE:
            yield text, True
            continue
        cuts = reads_in_pieces(vocabulary) if cuts is None else cuts
        for number, piece in enumerate(pieces(text) if cuts else [text]):
            yield piece, number == 0


def encoded_shards(
    vocabulary: Vocabulary, rows: Iterable[tuple[str, ...]], *, first: int
) -> Iterator[Shard]:
    """Rows of texts from number `first` on, some at a time, a column for each text of a row."""
    rest = islice(rows, first, None)
    bounds = {"most": SHARD, "total": SHARD_CHARACTERS}
    for block in blocks(rest, size=lambda row: sum(map(len, row)), **bounds):
        columns = range(len(block[0]))
        marks = np.fromiter(map(_mark, block), np.int64, len(block))
        yield Shard(
            tuple(encode_ragged(vocabulary, (row[c] for row in block)) for c in columns),
            torch.from_numpy(marks),
        )


def _mark(row: tuple[str, ...]) -> int:
    """Sixty-four bits: among a billion rows, two that differ share one in three cases of a hundred.

    Only the report counts by it.
    """
    raw = hashlib.blake2b("\0".join(row).encode(), digest_size=8).digest()
    return int.from_bytes(raw, "little", signed=True)
