"""Where the parts of an attention matrix go on a page, in pixels, for every kind of picture."""

from collections.abc import Callable
from dataclasses import dataclass

CELL, GAP, FONT, TITLE = 30, 12, 15, 44


@dataclass(frozen=True)
class Layout:
    """Cells of equal size; row words on the left, column words slanted above."""

    left: float
    top: float
    width: float
    height: float

    @classmethod
    def of(cls, rows: list[str], columns: list[str], measure: Callable[[str], float]) -> "Layout":
        """Room for the longest word on either side; `measure` gives a word's width."""
        longest_row = max(map(measure, rows), default=0.0)
        longest_column = max(map(measure, columns), default=0.0)
        left = longest_row + 2 * GAP
        top = TITLE + 0.82 * longest_column + 2 * GAP
        width = left + CELL * len(columns) + 0.6 * longest_column + GAP
        return cls(left, top, max(width, 420.0), top + CELL * len(rows) + GAP + FONT + GAP)

    def cell(self, row: int, column: int) -> tuple[float, float]:
        """Its upper left corner."""
        return self.left + column * CELL, self.top + row * CELL
