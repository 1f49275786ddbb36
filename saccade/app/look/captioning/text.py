"""A caption's maps as text: on a terminal as small shaded maps, elsewhere in words."""

from jaxtyping import Float
from rich.cells import cell_len
from rich.text import Text
from torch import Tensor

from saccade.app.look.captioning.places import in_words
from saccade.app.look.draw.colour import shade
from saccade.app.look.draw.terminal import ansi_text
from saccade.data.images.lattice import Lattice
from saccade.printable import printable

ACROSS = 90  # characters to a line
LARGEST = 16  # cells to a side; finer maps are made coarser


def draw_words(
    words: list[str], maps: Float[Tensor, "words h w"], lattice: Lattice, *, colour: bool
) -> str:
    """For each word where it looked."""
    words = list(map(printable, words))
    if colour:
        return _blocks(words, maps)
    width = max(map(cell_len, words), default=0)
    places = (in_words(one, lattice) for one in maps)
    return "\n".join(f"{' ' * (width - cell_len(w))}{w}  ← {p}" for w, p in zip(words, places))


def _blocks(words: list[str], maps: Float[Tensor, "words h w"]) -> str:
    """Maps side by side, two cells to a character, each word above its own."""
    maps = _coarser(maps)
    _, height, width = maps.shape
    column = max([width, *map(cell_len, words)]) + 2
    many = max(1, ACROSS // column)
    text = Text()
    for start in range(0, len(words), many):
        for word in words[start : start + many]:
            text.append(word + " " * (column - cell_len(word)), style="bold")
        text.append("\n")
        for row in range(0, height, 2):
            for one in maps[start : start + many]:
                _line(text, one / one.max().clamp(min=1e-9), row)
                text.append(" " * (column - width))
            text.append("\n")
        text.append("\n")
    return ansi_text(text).rstrip("\n")


def _line(text: Text, shares: Float[Tensor, "h w"], row: int) -> None:
    """A line of upper and lower half blocks."""
    upper = shares[row].tolist()
    lower = shares[row + 1].tolist() if row + 1 < len(shares) else [0.0] * len(upper)
    for above, below in zip(upper, lower):
        front, back = ("rgb({},{},{})".format(*shade(share)) for share in (above, below))
        text.append("▀", style=f"{front} on {back}")


def _coarser(maps: Float[Tensor, "words H W"]) -> Float[Tensor, "words h w"]:
    """Cells summed in squares until a map fits."""
    while max(maps.shape[1:]) > LARGEST:
        even = maps[:, : maps.shape[1] // 2 * 2, : maps.shape[2] // 2 * 2]
        maps = even.unfold(1, 2, 2).unfold(2, 2, 2).sum(dim=(-1, -2))
    return maps
