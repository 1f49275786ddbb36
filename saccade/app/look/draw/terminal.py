"""An attention matrix as text: on a terminal in colour, elsewhere as plain lines."""

import os
import sys
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from saccade.app.look.draw.colour import ink, shade
from saccade.app.look.draw.layout import labels

NARROWEST = 20  # columns that are left for the words, however long the rows' own are


def terminal() -> dict[str, Any]:
    """Whether standard output shows colour, and how many columns it has; a file has no width."""
    console = Console(file=sys.stdout)
    if not console.is_terminal:
        return {"colour": False, "width": None}
    plain = "NO_COLOR" in os.environ or console.is_dumb_terminal
    return {"colour": not plain, "width": console.width}


def draw_text(
    rows: list[str],
    columns: list[str],
    weights: list[list[float]],
    *,
    colour: bool,
    width: int | None = None,
) -> str:
    """A line for each row's word: what it looked at, the darker or the sooner the more.

    Lines end between words. What is shaded but too wide comes in blocks, all rows of some columns
    and then those of the next.
    """
    rows, columns = labels(rows), labels(columns)
    margin = max(map(cell_len, rows), default=0)
    room = sys.maxsize if width is None else max(width - margin - 2, NARROWEST)
    names = [" " * (margin - cell_len(word)) + word for word in rows]
    if not colour:
        after = f",\n{' ' * margin}    "
        listed = (_lines(_listed(columns, line), room - 2) for line in weights)
        return "\n".join(f"{name}  ← {after.join(lines)}" for name, lines in zip(names, listed))
    parts = blocks([cell_len(word) + 2 for word in columns], room)
    return "\n\n".join(
        "\n".join(
            f"{name}  {_shaded(columns[block], line[block])}" for name, line in zip(names, weights)
        )
        for block in parts
    )


def _shaded(columns: list[str], weights: list[float]) -> str:
    """All the columns' words in order, each on the colour of its weight."""
    text = Text()
    for word, weight in zip(columns, weights):
        back, front = ("rgb({},{},{})".format(*part) for part in (shade(weight), ink(weight)))
        text.append(f" {word} ", style=f"{front} on {back}")
    return ansi_text(text)


def ansi_text(text: Text) -> str:
    """With the codes that colour it on a terminal."""
    console = Console(width=100_000, color_system="truecolor", force_terminal=True, no_color=False)
    with console.capture() as captured:
        console.print(text, end="", soft_wrap=True)
    return captured.get()


def _listed(columns: list[str], weights: list[float]) -> list[str]:
    """The columns' words that hold most of the weight, most first."""
    order = sorted(range(len(weights)), key=lambda j: -weights[j])[:3]
    listed = [j for j in order if weights[j] >= 0.1] or order[:1]
    return [f"{columns[j]} {weights[j]:.2f}" for j in listed]


def _lines(parts: list[str], room: int) -> list[str]:
    """Parts after one another, as many to a line as there is room for."""
    return [", ".join(parts[block]) for block in blocks([cell_len(p) + 2 for p in parts], room)]


def blocks(widths: list[int], room: int) -> list[slice]:
    """Neighbours that fit into a line together, at least one."""
    found, start, used = list[slice](), 0, 0
    for place, width in enumerate(widths):
        if used and used + width > room:
            found.append(slice(start, place))
            start, used = place, 0
        used += width
    return [*found, slice(start, len(widths))]
