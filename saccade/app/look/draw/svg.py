"""An attention matrix as SVG: text stays text, for papers and pages."""

from xml.sax.saxutils import escape

from rich.cells import cell_len

from saccade.app.look.draw.colour import ink, shade
from saccade.app.look.draw.fonts import right_to_left
from saccade.app.look.draw.layout import FONT, GAP, Layout, labels
from saccade.printable import printable

# Those of the reader's system; what the first ones lack, later ones have.
FAMILIES = (
    "Helvetica, Arial, 'Noto Sans', 'Noto Sans CJK SC', 'PingFang SC', 'Microsoft YaHei', "
    "'Noto Sans Arabic', 'Noto Sans Thai', sans-serif, 'Apple Color Emoji', 'Segoe UI Emoji', "
    "'Noto Color Emoji'"
)


def draw_svg(rows: list[str], columns: list[str], weights: list[list[float]], *, title: str) -> str:
    """Each cell as dark as its weight; weights of a tenth or more are written in it."""
    rows, columns = labels(rows), labels(columns)
    layout = Layout.of(rows, columns, title, measure=lambda word: 0.56 * FONT * cell_len(word))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{layout.width:.0f}" '
        f'height="{layout.height:.0f}" viewBox="0 0 {layout.width:.0f} {layout.height:.0f}" '
        f'font-family="{FAMILIES}" font-size="{FONT}" role="img">',
        f"<title>{svg_text(title)}</title>",
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{GAP}" y="{GAP + FONT}" fill="#5b6472" font-size="13">{svg_text(title)}</text>',
    ]
    lean, side = (-1, "end") if layout.mirrored else (1, "start")
    for j in range(0, len(columns), layout.every):
        word, (x, y) = columns[j], layout.corner(0, j)
        x += layout.cell / 2 + 4 * lean
        turned = f'transform="translate({x:.1f} {y - 8:.1f}) rotate({-55 * lean})"'
        parts.append(f"<text {turned}{directed(word, side)}>{svg_text(word)}</text>")
    for i in range(0, len(rows), layout.every):
        word, (_, y) = rows[i], layout.corner(i, 0)
        parts.append(
            f'<text x="{layout.left - GAP:.1f}" y="{y + layout.cell / 2 + 5:.1f}"'
            f"{directed(word, 'end')}>{svg_text(word)}</text>"
        )
    for i, line in enumerate(weights):
        parts.extend(_cell(layout, i, j, weight) for j, weight in enumerate(line))
    return "\n".join([*parts, "</svg>"])


def _cell(layout: Layout, i: int, j: int, weight: float) -> str:
    (x, y), side = layout.corner(i, j), layout.cell
    fill = "#{:02x}{:02x}{:02x}".format(*shade(weight))
    if not layout.numbered:  # many and small: white ones, lines and numbers would drown the rest
        box = (
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{side:.1f}" height="{side:.1f}" fill="{fill}"/>'
        )
        return "" if fill == "#ffffff" else box
    box = (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{side:g}" height="{side:g}" fill="{fill}" '
        f'stroke="#e6e9ef"><title>{weight:.3f}</title></rect>'
    )
    if not (number := layout.number(weight)):
        return box
    colour = "#{:02x}{:02x}{:02x}".format(*ink(weight))
    return box + (
        f'<text x="{x + side / 2:.1f}" y="{y + side / 2 + 4:.1f}" text-anchor="middle" '
        f'font-size="11" fill="{colour}">{number}</text>'
    )


def directed(word: str, anchor: str) -> str:
    """Attributes that tie a word to a point by its left (start) or its right (end) side.

    Text that runs to the left starts at its right.
    """
    if not right_to_left(word):
        return "" if anchor == "start" else f' text-anchor="{anchor}"'
    other = {"start": "end", "end": "start"}.get(anchor, anchor)
    return f' direction="rtl" unicode-bidi="embed" text-anchor="{other}"'


def svg_text(word: str) -> str:
    """Escaped, with the control characters that XML forbids spelt out."""
    return escape(printable(word))
