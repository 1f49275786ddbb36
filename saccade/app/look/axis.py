"""What lies along one side of a look: words and their pieces, or the cells of an image."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import accumulate

from saccade.app.look.document import AxisEntry, GridEntry
from saccade.attention.axes import Axis
from saccade.data.images.lattice import Lattice
from saccade.data.tokens.pieces import token_labels
from saccade.data.tokens.reading import Reading
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.data.tokens.words import Span, word_spans

SHORT = {"<start of text>": "<start>", "<end of text>": "<end>", "<unknown word>": "<unknown>"}


def text_axis(
    vocabulary: Vocabulary,
    tokens: list[int],
    *,
    spans: list[tuple[int, int]] | None = None,
    text: str | None = None,
    prompt: int | None = None,
) -> AxisEntry:
    """Tokens and the ranges of them that are words; spans are those of the text, if it is known.

    A piece belongs to the word that its first visible character lies in.
    """
    text = vocabulary.decode(tokens) if text is None else text
    spans = vocabulary.spans_of(tokens) if spans is None else spans
    return AxisEntry(
        tokens=labels(vocabulary, tokens, spans, text),
        words=word_ranges(spans, text, {i for i, t in enumerate(tokens) if vocabulary.name(t)}),
        prompt=len(tokens) if prompt is None else prompt,
    )


def reading_axis(vocabulary: Vocabulary, texts: Sequence[str], reading: Reading) -> AxisEntry:
    """One text or two as they are read, special tokens between them."""
    starts = [0, *accumulate(len(text) + 1 for text in texts)]
    spans, at = list[Span](), 0
    for (start, end), side in zip(reading.spans, reading.sides):
        span = (at, at) if side is None else (start + starts[side], end + starts[side])
        at = max(at, span[1])
        spans.append(span)
    axis = text_axis(vocabulary, reading.tokens, spans=spans, text="\n".join(texts))
    places = [
        [place for place, one in enumerate(reading.sides) if one == side]
        for side in range(len(texts))
    ]
    found = [(mine[0], mine[-1] + 1) for mine in places if mine]
    begins = {start for start, _ in found[1:]}  # there the joining line end has got to
    tokens = [
        piece.removeprefix("\n") if place in begins else piece
        for place, piece in enumerate(axis.tokens)
    ]
    return replace(axis, tokens=tokens, texts=found)


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


def labels(
    vocabulary: Vocabulary, tokens: list[int], spans: list[tuple[int, int]], text: str
) -> list[str]:
    """Each token as it reads in the text, all of which they show; special tokens by their names."""
    named = [special_name(vocabulary, token) for token in tokens]
    read = token_labels(text, spans)
    return [name or piece for name, piece in zip(named, [*read, *[""] * (len(tokens) - len(read))])]


def special_name(vocabulary: Vocabulary, token: int) -> str | None:
    """In short, of tokens that are no text."""
    name = vocabulary.name(token)
    return SHORT.get(name, name) if name else None


def word_ranges(
    spans: list[tuple[int, int]], text: str, special: Collection[int] = ()
) -> list[tuple[int, int]]:
    """Which pieces [from, to) make up each word; `special` ones belong to none.

    Blanks that are pieces by themselves go with the word after them.
    """
    words = word_spans(text, spans)
    ranges: list[tuple[int, int]] = []
    word, last, blank = 0, -1, 0
    for piece, (start, end) in enumerate(spans):
        part = text[start:end]
        if piece in special:
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
