"""Images beside what was made of them, in a grid."""

import math
from collections.abc import Sequence

from jaxtyping import UInt8
from PIL import Image
from torch import Tensor

from saccade.app.look.images import pillow_image

SHORTEST = 256  # pixels: small images of a few are drawn larger, each pixel a square
GAP = 4  # between the images of a pair; twice as much between pairs
PAPER = "#ffffff"

Pixels = UInt8[Tensor, "3 H W"]


def draw_pairs(pairs: Sequence[tuple[Pixels, Pixels]]) -> Image.Image:
    """Each image and to its right the other one; many are in rows, about as wide as high."""
    side = pairs[0][0].shape[-1]
    columns = max(1, round(math.sqrt(len(pairs) / 2)))
    rows = -(-len(pairs) // columns)
    larger = max(1, SHORTEST // (side * columns))
    size, gap = side * larger, GAP
    step = 2 * size + 3 * gap
    whole = Image.new("RGB", (columns * step + gap, rows * (size + 2 * gap) + 2 * gap), PAPER)
    for number, pair in enumerate(pairs):
        row, column = divmod(number, columns)
        for place, pixels in enumerate(pair):
            image = pillow_image(pixels).resize((size, size), Image.Resampling.NEAREST)
            left = 2 * gap + column * step + place * (size + gap)
            whole.paste(image, (left, 2 * gap + row * (size + 2 * gap)))
    return whole
