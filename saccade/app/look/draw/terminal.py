"""An attention matrix as text: on a terminal in colour, elsewhere as plain lines."""

from rich.console import Console
from rich.text import Text

from saccade.app.look.draw.colour import ink, shade
from saccade.printable import printable


def draw_text(
    rows: list[str], columns: list[str], weights: list[list[float]], *, colour: bool
) -> str:
    """A line for each row's word: what it looked at, the darker or the sooner the more."""
    rows, columns = ([printable(word) for word in words] for words in (rows, columns))
    width = max(map(len, rows), default=0)
    draw = _shaded if colour else _listed
    return "\n".join(f"{word:>{width}}  {draw(columns, line)}" for word, line in zip(rows, weights))


def _shaded(columns: list[str], weights: list[float]) -> str:
    """All the columns' words in order, each on the colour of its weight."""
    text = Text()
    for word, weight in zip(columns, weights):
        back, front = ("rgb({},{},{})".format(*part) for part in (shade(weight), ink(weight)))
        text.append(f" {word} ", style=f"{front} on {back}")
    return ansi_text(text)


def ansi_text(text: Text) -> str:
    """With the codes that colour it on a terminal."""
    console = Console(width=100_000, color_system="truecolor", force_terminal=True)
    with console.capture() as captured:
        console.print(text, end="", soft_wrap=True)
    return captured.get()


def _listed(columns: list[str], weights: list[float]) -> str:
    """The columns' words that hold most of the weight, most first."""
    order = sorted(range(len(weights)), key=lambda j: -weights[j])[:3]
    shown = [j for j in order if weights[j] >= 0.1] or order[:1]
    return "← " + ", ".join(f"{columns[j]} {weights[j]:.2f}" for j in shown)
