"""An attention matrix as SVG: text stays text, for papers and pages."""

from xml.sax.saxutils import escape

from saccade.app.look.draw.colour import ink, shade
from saccade.app.look.draw.layout import FONT, GAP, Layout, printable


def draw_svg(rows: list[str], columns: list[str], weights: list[list[float]], *, title: str) -> str:
    """Each cell as dark as its weight; weights of a tenth or more are written in it."""
    layout = Layout.of(rows, columns, measure=lambda word: 0.56 * FONT * len(word))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{layout.width:.0f}" '
        f'height="{layout.height:.0f}" viewBox="0 0 {layout.width:.0f} {layout.height:.0f}" '
        f'font-family="Helvetica, Arial, sans-serif" font-size="{FONT}" role="img">',
        f"<title>{svg_text(title)}</title>",
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{GAP}" y="{GAP + FONT}" fill="#5b6472" font-size="13">{svg_text(title)}</text>',
    ]
    for j in range(0, len(columns), layout.every):
        word, (x, y) = columns[j], layout.corner(0, j)
        x += layout.cell / 2 + 4
        parts.append(
            f'<text transform="translate({x:.1f} {y - 8:.1f}) rotate(-55)">{svg_text(word)}</text>'
        )
    for i in range(0, len(rows), layout.every):
        word, (x, y) = rows[i], layout.corner(i, 0)
        parts.append(
            f'<text x="{x - GAP:.1f}" y="{y + layout.cell / 2 + 5:.1f}" text-anchor="end">'
            f"{svg_text(word)}</text>"
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


def svg_text(word: str) -> str:
    """Escaped, and without the control characters that XML forbids."""
    return escape(printable(word))
