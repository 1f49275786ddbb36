"""What lies along one side of a look: words and their pieces, or the cells of an image."""

from collections.abc import Collection, Sequence

from saccade.app.look.document import AxisEntry, GridEntry
from saccade.attention.axes import Axis
from saccade.data.images.lattice import Lattice
from saccade.data.vocabulary import Vocabulary
from saccade.data.words import word_spans

SHORT = {"<start of text>": "<start>", "<end of text>": "<end>", "<unknown word>": "<unknown>"}


def text_axis(
    vocabulary: Vocabulary,
    tokens: list[int],
    *,
    spans: list[tuple[int, int]] | None = None,
    text: str | None = None,
    prompt: int | None = None,
    log_p: Sequence[float | None] | None = None,
    choices: list[list[tuple[str, float]]] | None = None,
) -> AxisEntry:
    """Tokens and the ranges of them that are words; spans are those of the text, if it is known.

    A piece belongs to the word that its first visible character lies in.
    """
    text = vocabulary.decode(tokens) if text is None else text
    spans = vocabulary.spans_of(tokens) if spans is None else spans
    return AxisEntry(
        tokens=_spaced(labels(vocabulary, tokens), [text[a:b] for a, b in spans]),
        words=word_ranges(tokens, spans, text, vocabulary.special),
        prompt=len(tokens) if prompt is None else prompt,
        log_p=None if log_p is None else list(log_p),
        choices=choices,
    )


def grid_axis(axis: Axis) -> AxisEntry:
    """Cells have no words; where they lie is their name."""
    return AxisEntry(kind="grid", grid=grid_entry(axis.lattice, special=axis.special))


def grid_entry(lattice: Lattice, *, special: int = 0) -> GridEntry:
    """Where the cells of an image lie."""
    down, across = (
        [round(x, 6) for x in middles.tolist()] for middles in (lattice.down, lattice.across)
    )
    return GridEntry(
        height=lattice.height, width=lattice.width, down=down, across=across, special=special
    )


def labels(vocabulary: Vocabulary, tokens: list[int]) -> list[str]:
    """Each token as it reads by itself."""
    return [SHORT.get(piece, piece) for piece in vocabulary.pieces(tokens)]


def _spaced(pieces: list[str], parts: list[str]) -> list[str]:
    """A vocabulary of words knows no blanks: its words get those that the text has before them."""
    spaced = [part if part.strip() == piece else piece for piece, part in zip(pieces, parts)]
    return [*spaced, *pieces[len(spaced) :]]


def word_ranges(
    tokens: list[int], spans: list[tuple[int, int]], text: str, special: Collection[int | None]
) -> list[tuple[int, int]]:
    """Which pieces [from, to) make up each word; control tokens belong to none.

    Blanks that are pieces by themselves go with the word after them.
    """
    words = word_spans(text)
    ranges: list[tuple[int, int]] = []
    word, last, blank = 0, -1, 0
    for piece, (start, end) in enumerate(spans):
        part = text[start:end]
        if tokens[piece] in special:
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
