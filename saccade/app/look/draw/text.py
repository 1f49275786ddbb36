"""Text of any script in a picture: each part in a font that has it, emoji in their colours."""

from PIL import Image, ImageDraw, ImageFont

from saccade.app.look.draw.fonts import ROBOTO, right_to_left, runs

Colour = str | tuple[int, int, int]
CLEAR = (255, 255, 255, 0)


def text_width(text: str, size: int) -> float:
    """In pixels, at a size of so many."""
    return sum((_advance(part, face.at(size), size) for part, face in runs(text)), 0.0)


def text_strip(text: str, size: int, colour: Colour) -> Image.Image:
    """The text alone, without a ground; the middle of its letters is the middle of the strip."""
    width, height = round(text_width(text, size)) + size, 4 * size
    strip = Image.new("RGBA", (width, height), CLEAR)
    ascent, descent = ROBOTO.at(size).getmetrics()
    x, baseline = size / 2, height / 2 + (ascent - descent) / 2
    parts = runs(text)
    for part, face in reversed(parts) if right_to_left(text) else parts:
        font = face.at(size)
        scale = size / font.size
        long = _advance(part, font, size)
        layer = strip
        if scale != 1:  # drawn as large as the font is, then made smaller
            layer = Image.new("RGBA", (round(width / scale), round(height / scale)), CLEAR)
        ImageDraw.Draw(layer).text(
            (x / scale, baseline / scale), part, colour, font, "ls", embedded_color=True
        )
        if scale != 1:
            strip.alpha_composite(layer.resize(strip.size, Image.Resampling.LANCZOS))
        x += long
    return strip


def paste_text(
    image: Image.Image,
    place: tuple[float | int, float | int],
    text: str,
    size: int,
    colour: Colour,
    *,
    across: float = 0.0,
) -> None:
    """Text whose middle line is at a height; `across` is which share of it lies left of x."""
    strip = text_strip(text, size, colour)
    x = place[0] - size / 2 - across * (strip.width - size)
    image.paste(strip, (round(x), round(place[1] - strip.height / 2)), strip)


def _advance(part: str, font: ImageFont.FreeTypeFont, size: int) -> float:
    return font.getlength(part) * size / font.size
