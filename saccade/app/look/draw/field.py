"""The field of a panel: where its numbers lie on the page, and the axes around it."""

from dataclasses import dataclass

from saccade.app.look.draw.canvas import Canvas, Place, Stroke, Words
from saccade.app.look.draw.scale import Scale

WIDE, HIGH = 460.0, 340.0  # of the field, in points
LEFT, RIGHT, ABOVE, BELOW = 74.0, 22.0, 34.0, 62.0  # around it
FAINT, GRID = "#5b6472", "#e6e9ef"
# After Okabe and Ito, which people who see fewer colours tell apart; dark enough for small words.
COLOURS = ("#0072b2", "#c65100", "#00815e", "#b4528a", "#8a6d00", "#333333", "#4479a0", "#b03060")


@dataclass(frozen=True)
class ChartField:
    """From two scales and the upper left corner to places."""

    left: float
    top: float
    x: Scale
    y: Scale
    wide: float = WIDE
    high: float = HIGH

    def place(self, x: float, y: float) -> Place:
        across, up = self.x.share(x), self.y.share(y)
        return self.left + across * self.wide, self.top + (1 - up) * self.high


def draw_axes(canvas: Canvas, field: ChartField, title: str, x_title: str, y_title: str) -> None:
    """Ticks with a grid, and titles above, below and on the left."""
    left, top = field.left, field.top
    right, bottom = left + field.wide, top + field.high
    for value, text in field.y.ticks:
        _, y = field.place(field.x.low, value)
        if text:
            canvas.strokes.append(Stroke(((left, y), (right, y)), GRID))
            canvas.words.append(Words((left - 8, y), text, colour=FAINT, across=1.0))
    for value, text in field.x.ticks:
        x, _ = field.place(value, field.y.low)
        if text:
            canvas.strokes.append(Stroke(((x, top), (x, bottom)), GRID))
            canvas.words.append(Words((x, bottom + 17), text, colour=FAINT, across=0.5))
        canvas.strokes.append(Stroke(((x, bottom), (x, bottom + (6 if text else 3))), FAINT))
    canvas.strokes.append(Stroke(((left, top), (left, bottom), (right, bottom)), FAINT))
    canvas.words += [
        Words((left + field.wide / 2, top - 16), title, size=14, across=0.5),
        Words((left + field.wide / 2, bottom + 40), x_title, across=0.5),
        Words((left - 56, top + field.high / 2), y_title, across=0.5, upwards=True),
    ]
