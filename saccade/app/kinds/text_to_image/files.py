"""Where drawn images are written to: a sheet for each prompt, or a file for each image."""

import math
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from PIL import Image

from saccade.app.cli.inputs import check_file
from saccade.app.kinds.found_files import make_folder
from saccade.app.kinds.text_to_image.model import ImagePrediction
from saccade.app.look.draw.figure import write
from saccade.app.look.draw.fonts import warn_of_fonts
from saccade.app.look.draw.layout import label
from saccade.app.look.draw.png import png_bytes
from saccade.app.look.draw.text import paste_text, text_width
from saccade.errors import ConfigError

USUAL = "images.png"
FRAME = 192  # pixels at least that an image takes on a sheet
GAP, LINE, SIZE = 8, 30, 20
INK = "#14181f"


class DrawnFiles:
    """Names files as images come: for one prompt the name that was given, for several numbers.

    What ends in .png gets a sheet for each prompt; anything else is a folder, and every image is a
    file in it with its very pixels.
    """

    def __init__(self, out: Path | None, *, several: bool) -> None:
        self.out, self.several, self._prompts = out or _free(Path(USUAL)), several, count(1)
        self.sheets = self.out.suffix == ".png"
        if self.sheets:
            check_file(self.out)
        elif self.out.suffix and not self.out.is_dir():
            raise ConfigError(
                f"{self.out.name}: images are written as .png, not {self.out.suffix}; name such a "
                "file, or a folder"
            )
        else:
            make_folder(self.out)

    def take(self, images: Sequence[ImagePrediction]) -> list[Path]:
        """Write the images of one prompt; gives a file for each of them, or the sheet of all."""
        number = next(self._prompts)
        if not images:  # a blank line, which counts
            return []
        if self.sheets:
            stem = f"{self.out.stem}-{number}" if self.several else self.out.stem
            return [write(self.out.with_name(f"{stem}.png"), png_bytes(sheet(images)))]
        before = f"{number}-" if self.several else ""
        return [one.save(self.out / f"{before}{i}.png") for i, one in enumerate(images, start=1)]


def _free(path: Path) -> Path:
    """A name that no file has yet: nobody has said that one may be written over."""
    others = (path.with_name(f"{path.stem}-{number}{path.suffix}") for number in count(2))
    return path if not path.exists() else next(one for one in others if not one.exists())


def sheet(images: Sequence[ImagePrediction]) -> Image.Image:
    """The images of a prompt in rows and columns, the prompt above them."""
    across = math.ceil(math.sqrt(len(images)))
    down = math.ceil(len(images) / across)
    own = images[0].pixels.shape[-1]
    side = own * math.ceil(FRAME / own)
    width = GAP + across * (side + GAP)
    lines = _lines(label(images[0].prompt), width - 2 * GAP)
    head = GAP + LINE * len(lines)
    whole = Image.new("RGB", (width, head + down * (side + GAP)), "white")
    for number, line in enumerate(lines):
        paste_text(whole, (GAP, GAP / 2 + LINE * (number + 0.5)), line, SIZE, INK)
    for place, one in enumerate(images):
        row, column = divmod(place, across)
        corner = GAP + column * (side + GAP), head + row * (side + GAP)
        whole.paste(one.image.resize((side, side), Image.Resampling.BICUBIC), corner)
    warn_of_fonts([images[0].prompt])
    return whole


def _lines(text: str, width: int) -> list[str]:
    """Words in lines that are not wider than that, unless a word is."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and text_width(longer, SIZE) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines
