"""One matrix out of all that a model looked at: which layer, which head, between words or pieces.

The page has every one of them. A picture, a terminal and a table of numbers show one.
"""

from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from saccade.app.look.document import AxisEntry
from saccade.app.look.settings import Selection
from saccade.attention.look.glance import Glance
from saccade.data.words import Span, word_spans
from saccade.errors import ConfigError
from saccade.metrics.alignment import merge_pieces
from saccade.printable import printable


@dataclass(frozen=True)
class Side:
    """What lies along a side of a matrix: pieces as they read, and which of them are no text."""

    pieces: list[str]
    special: frozenset[int] = frozenset()

    @classmethod
    def of(cls, axis: AxisEntry) -> "Side":
        """The tokens of an axis; those that are visible and in no word are no text."""
        inside = {place for start, end in axis.words for place in range(start, end)}
        named = (i for i, piece in enumerate(axis.tokens) if i not in inside and piece.strip())
        return cls(axis.tokens, frozenset(named))

    def without_end(self) -> "Side":
        """Without the token that ends a sentence: nobody reads it as a word."""
        last = len(self.pieces) - 1
        return Side(self.pieces[:last], self.special - {last}) if last in self.special else self

    @property
    def spans(self) -> list[Span]:
        """Where each piece lies in all of them together; one that shows nothing is in the last."""
        ends = accumulate(map(len, self.pieces))
        return [(end - max(len(piece), 1), end) for piece, end in zip(self.pieces, ends)]

    @property
    def words(self) -> list[Span]:
        """Where each word lies; a piece that is no text is one by itself."""
        text, spans = "".join(self.pieces), self.spans
        named = [spans[place] for place in sorted(self.special)]
        for start, end in named:
            text = text[:start] + " " * (end - start) + text[end:]
        return sorted([*word_spans(text, spans), *named])

    def texts(self, spans: list[Span]) -> list[str]:
        """What lies in some spans."""
        text = "".join(self.pieces)
        return [text[start:end] for start, end in spans]


def between(
    weights: Float[Tensor, "T S"], rows: Side, columns: Side, units: Literal["words", "pieces"]
) -> tuple[list[str], list[str], Float[Tensor, "rows columns"]]:
    """What the rows and columns are called, and the weights between them."""
    if units == "pieces":
        return rows.pieces, columns.pieces, weights
    rows, columns = rows.without_end(), columns.without_end()
    down, across = rows.words, columns.words
    merged = merge_pieces(
        weights,
        source_pieces=columns.spans,
        target_pieces=rows.spans,
        source_words=across,
        target_words=down,
    )
    return rows.texts(down), columns.texts(across), merged


def site_named(layer: str, numbered: list[str], sites: list[str]) -> str:
    """The site that a layer's number or its own name means."""
    if layer in sites:
        return layer
    if layer.isdecimal() and int(layer) < len(numbered):
        return numbered[int(layer)]
    others = [site for site in sites if site not in numbered]
    named = f"; others by name: {', '.join(others)}" if others else ""
    raise ConfigError(
        f"--layer {printable(layer)} is not there; there are "
        f"{', '.join(f'{i} ({site})' for i, site in enumerate(numbered))}{named}"
    )


def one_matrix(glances: dict[str, Glance], select: Selection) -> tuple[Float[Tensor, "T S"], str]:
    """The mean over sites and heads, or the head that was chosen, and in words which it is.

    A glance that did not keep its weights has them as a map, in cells.
    """
    by_site: dict[str, Float[Tensor, "N T S"]] = {}
    for site, glance in glances.items():
        kept = glance.mean_map if glance.weights is None else glance.weights
        assert kept is not None
        by_site[site] = kept[0]
    if select.head is None:
        over = "heads" if len(by_site) == 1 else "layers and heads"
        mean = torch.stack([weights.mean(dim=0) for weights in by_site.values()]).mean(dim=0)
        return mean, f"mean over {over}"
    if len(by_site) > 1:
        raise ConfigError(
            f"--head {select.head} is a head of one layer; name that as well, with "
            f"--layer 0 to {len(by_site) - 1}"
        )
    ((site, weights),) = by_site.items()
    if not 0 <= select.head < len(weights):
        raise ConfigError(
            f"--head {select.head} is not there; {site} has "
            + (f"heads 0 to {len(weights) - 1}" if len(weights) > 1 else "one head, 0")
        )
    return weights[select.head], f"head {select.head}"
