"""What lies along one side of a look: words and their pieces, or the cells of a picture."""

from typing import Any

from saccade.data.images.lattice import Lattice
from saccade.data.vocabulary import CONTROL, Vocabulary
from saccade.data.words import word_spans

SHORT = {"<start of text>": "<start>", "<end of text>": "<end>", "<unknown word>": "<unknown>"}


def text_axis(
    vocabulary: Vocabulary,
    tokens: list[int],
    *,
    spans: list[tuple[int, int]] | None = None,
    text: str | None = None,
) -> dict[str, Any]:
    """Tokens and the ranges of them that are words; spans are those of the text, if it is known.

    A piece belongs to the word that its first visible character lies in.
    """
    text = vocabulary.decode(tokens) if text is None else text
    spans = vocabulary.spans_of(tokens) if spans is None else spans
    return {
        "kind": "tokens",
        "tokens": _spaced(labels(vocabulary, tokens), [text[a:b] for a, b in spans]),
        "words": word_ranges(tokens, spans, text),
        "prompt": len(tokens),
        "log_p": None,
        "choices": None,
        "grid": None,
    }


def laid(lattice: Lattice) -> dict[str, Any]:
    """Where the cells of a picture lie: the middle of each row and column, as shares of a side."""
    middles = {"down": lattice.down, "across": lattice.across}
    shares = {way: [round(share, 6) for share in many.tolist()] for way, many in middles.items()}
    return {"height": lattice.height, "width": lattice.width, **shares}


def labels(vocabulary: Vocabulary, tokens: list[int]) -> list[str]:
    """Each token as it reads by itself."""
    return [SHORT.get(piece, piece) for piece in vocabulary.pieces(tokens)]


def _spaced(pieces: list[str], parts: list[str]) -> list[str]:
    """A vocabulary of words knows no blanks: its words get those that the text has before them."""
    spaced = [part if part.strip() == piece else piece for piece, part in zip(pieces, parts)]
    return [*spaced, *pieces[len(spaced) :]]


def word_ranges(
    tokens: list[int], spans: list[tuple[int, int]], text: str
) -> list[tuple[int, int]]:
    """Which pieces [from, to) make up each word; control tokens belong to none.

    Blanks that are pieces by themselves go with the word after them.
    """
    words = word_spans(text)
    ranges: list[tuple[int, int]] = []
    word, last, blank = 0, -1, 0
    for piece, (start, end) in enumerate(spans):
        part = text[start:end]
        if tokens[piece] < len(CONTROL):
            blank = 0
            continue
        if not part.strip():
            blank += 1
            continue
        start += len(part) - len(part.lstrip())
        while word < len(words) and words[word][1] <= start:
            word += 1
        if word == last:
            ranges[-1] = (ranges[-1][0], piece + 1)
        elif word < len(words):
            ranges.append((piece - blank, piece + 1))
        last, blank = word, 0
    return ranges
