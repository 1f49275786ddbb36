"""Tags below the words that they are of."""

from collections.abc import Sequence

from rich.cells import cell_len

from saccade.app.cli.output import tell
from saccade.app.look.draw.terminal import blocks, terminal
from saccade.printable import printable


def tell_tags(words: Sequence[str], tags: Sequence[str]) -> None:
    """In as many lines as the terminal needs; in a file one of words and one of tags."""
    every = [tuple(map(printable, pair)) for pair in zip(words, tags)]
    widths = [max(map(cell_len, pair)) + 2 for pair in every]
    room = terminal()["width"] or sum(widths)
    for block in blocks(widths, room):
        for side in (0, 1):
            cells = [
                pair[side] + " " * (width - cell_len(pair[side]))
                for pair, width in zip(every[block], widths[block])
            ]
            tell("".join(cells).rstrip())
