"""One matrix out of all that a model looked at: which layer, which head, between words or pieces.

The page has every one of them. A picture, a terminal and a table of numbers show one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from saccade.app.look.document import AxisEntry
from saccade.app.look.settings import Selection
from saccade.attention.look.glance import Glance, Keep
from saccade.errors import ConfigError
from saccade.printable import printable

Shown = Literal["words", "pieces"]
LARGEST_MAP = 256  # cells to a side
KEEP = Keep(map_side=LARGEST_MAP, top=0)  # of a text that looks at itself


@dataclass(frozen=True)
class Side:
    """What lies along a side of a matrix: pieces as they read, and which [from, to) are words.

    The words are those of the page; a piece that is no text is one by itself.
    """

    pieces: list[str]
    words: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    @classmethod
    def of(cls, axis: AxisEntry) -> "Side":
        """The tokens of an axis, but for a last one that is no text: nobody reads an end."""
        inside = {place for start, end in axis.words for place in range(start, end)}
        named = [i for i, piece in enumerate(axis.tokens) if i not in inside and piece.strip()]
        if named and named[-1] == len(axis.tokens) - 1:
            named.pop()
        return cls(axis.tokens, sorted([*axis.words, *((i, i + 1) for i in named)]))

    @property
    def texts(self) -> list[str]:
        """The words as they read."""
        return ["".join(self.pieces[start:end]).strip() for start, end in self.words]

    def count(self, units: Shown) -> int:
        """How many rows or columns it becomes."""
        return len(self.pieces if units == "pieces" else self.words)

    def membership(self) -> Float[Tensor, "words pieces"]:
        """1 where a piece is in a word."""
        place = torch.arange(len(self.pieces))
        starts, ends = torch.tensor(self.words).view(-1, 2).T[:, :, None]
        return ((starts <= place) & (place < ends)).double()


def shown_units(select: Selection) -> Shown:
    """Of a text that looks at itself."""
    return "words" if select.units == "words" else "pieces"


def axis_side(axis: AxisEntry, select: Selection) -> tuple[Side, int]:
    """What lies along both sides of such a text, and how many pieces share a cell."""
    side, count = Side.of(axis), len(axis.tokens)
    cell = KEEP.cell(count)
    if cell > 1:
        if select.units == "words":
            raise ConfigError(
                f"{count} pieces are drawn in cells of {cell} × {cell}, not in words; "
                f"leave --units away, or shorten the text to {LARGEST_MAP}"
            )
        side = Side([f"{piece}…" for piece in side.pieces[::cell]])
    select.check_rows(side.count(shown_units(select)))
    return side, cell


def in_cells(cell: int) -> str:
    """What a title says of how many pieces share a cell."""
    return f", cells of {cell} × {cell} pieces" if cell > 1 else ""


def between(
    weights: Float[Tensor, "T S"], rows: Side, columns: Side, units: Shown
) -> tuple[list[str], list[str], Float[Tensor, "rows columns"]]:
    """What the rows and columns are called, and the weights between them.

    A word looks as its pieces do on average, and is looked at as much as they are together.
    """
    if units == "pieces":
        return rows.pieces, columns.pieces, weights
    down, across = rows.membership(), columns.membership()
    mean = down / down.sum(dim=1, keepdim=True)
    return rows.texts, columns.texts, mean @ weights.double() @ across.T


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


def layer_heads(sites: Mapping[str, Tensor], select: Selection) -> tuple[str, Tensor]:
    """The layer that is selected, the last by default, and all of its heads; a head that it has not
    is refused.
    """
    names = list(sites)
    name = names[-1] if select.layer is None else site_named(select.layer, names, names)
    heads = sites[name]
    if select.head is not None and not 0 <= select.head < len(heads):
        raise ConfigError(f"{name} has no head {select.head}; it has {len(heads)}")
    return name, heads


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
