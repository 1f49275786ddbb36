"""Where the parts of an attention matrix go on a page, in pixels, for every kind of figure."""

from collections.abc import Callable
from dataclasses import dataclass

from saccade.app.look.draw.fonts import runs_left
from saccade.printable import printable

CELL, GAP, FONT, TITLE = 30, 12, 15, 44
LARGEST = 1200  # a long text's cells shrink until they fit


@dataclass(frozen=True)
class Layout:
    """Cells of equal size; row words on the left, column words slanted above.

    Columns of a text that runs to the left do so, and their words lean to the left.
    """

    left: float
    top: float
    width: float
    height: float
    cell: float
    every: int  # so many rows or columns share a label
    columns: int
    mirrored: bool

    @classmethod
    def of(
        cls, rows: list[str], columns: list[str], title: str, measure: Callable[[str], float]
    ) -> "Layout":
        """Room for the title and the longest word on either side; `measure` gives a width."""
        cell = max(3.0, min(float(CELL), LARGEST / max(len(rows), len(columns), 1)))
        every = max(1, round(1.3 * FONT / cell))
        longest_row = max(map(measure, rows[::every]), default=0.0)
        longest_column = max(map(measure, columns[::every]), default=0.0)
        mirrored, lean = runs_left(columns), 0.6 * longest_column + GAP
        left = max(longest_row + 2 * GAP, lean if mirrored else 0.0)
        top = TITLE + 0.82 * longest_column + 2 * GAP
        width = left + cell * len(columns) + (GAP if mirrored else lean)
        height = top + cell * len(rows) + GAP + FONT + GAP
        width = max(width, 2 * GAP + measure(title))
        return cls(left, top, width, height, cell, every, len(columns), mirrored)

    @property
    def numbered(self) -> bool:
        """Whether a number can be read in a cell."""
        return self.cell >= 24

    def corner(self, row: int, column: int) -> tuple[float, float]:
        """The upper left corner of a cell."""
        across = self.columns - 1 - column if self.mirrored else column
        return self.left + across * self.cell, self.top + row * self.cell

    def number(self, weight: float) -> str:
        """What is written in a cell: weights of a tenth or more, where they can be read."""
        if weight < 0.1 or not self.numbered:
            return ""
        return f"{min(weight, 0.99):.2f}".removeprefix("0")


def labels(words: list[str]) -> list[str]:
    """Words or pieces as they are drawn.

    A piece that only carries on the character of the one before shows it again, with a ditto mark.
    """
    drawn, last = list[str](), ""
    for word in words:
        last = label(word) if word else last
        drawn.append(last if word else f"{last}″")
    return drawn


def label(word: str) -> str:
    """Trimmed, with what cannot be seen made visible."""
    return printable(word.replace("\n", "↵").replace("\t", "⇥")).strip() or "␣"
