"""Colours on a light ground and their counterparts on a dark one."""

from saccade.app.look.draw.canvas import Canvas, Stroke, Words
from saccade.app.look.draw.colour import night
from saccade.app.look.draw.field import COLOURS, FAINT


def luminance(colour: str) -> float:
    """Relative luminance as the WCAG has it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear))


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_words_and_lines_can_be_read_at_night() -> None:
    paper = night("#ffffff")
    assert contrast(night("#141820"), paper) > 10
    assert contrast(night(FAINT), paper) > 4.5
    assert min(contrast(night(colour), paper) for colour in COLOURS) > 4.5


def test_words_in_the_colour_of_their_line_can_be_read_by_day() -> None:
    assert min(contrast(colour, "#ffffff") for colour in (*COLOURS, FAINT)) > 4.5


def test_a_drawing_names_the_night_colour_of_all_that_it_uses() -> None:
    canvas = Canvas(10.0, 10.0, "t", [Stroke(((0.0, 0.0), (1.0, 1.0)), "#0072b2", fill="#d55e00")])
    canvas.words.append(Words((0.0, 0.0), "x", colour="#009e73"))
    svg = canvas.svg()
    for colour in ("#0072b2", "#d55e00", "#009e73", "#ffffff"):
        assert f'[fill="{colour}"]{{fill:{night(colour)}}}' in svg
