"""Where a captioner looked, word by word over the picture, and the forms it can be shown in."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxtyping import Float, UInt8
from torch import Tensor

from saccade.app.look.axis import laid
from saccade.app.look.captioning.film import Film, draw_film, draw_film_svg
from saccade.app.look.captioning.images import Marked
from saccade.app.look.captioning.text import draw_words
from saccade.app.look.draw.picture import write
from saccade.app.look.html import framed, page_html
from saccade.data.images.lattice import Lattice
from saccade.errors import ConfigError


@dataclass(frozen=True)
class PictureLook:
    """Where each word looked: a map over the picture for each.

    `hard` says that it was one cell at a time.
    """

    rows: list[str]
    maps: Float[Tensor, "words h w"]
    lattice: Lattice
    picture: UInt8[Tensor, "3 H W"]
    title: str
    caption: str
    document: Callable[[], dict[str, Any]]
    hard: bool = False
    boxes: tuple[Marked, ...] = ()

    def save(self, path: str | Path, *, cells: bool = False) -> Path:
        """Write the film, the page or the numbers, by the file's ending.

        With `cells` the film shows the cells as they are, square.
        """
        path = Path(path)
        writers: dict[str, Callable[[], bytes]] = {
            ".html": lambda: page_html(self.document()).encode(),
            ".svg": lambda: draw_film_svg(self._film(cells=cells)).encode(),
            ".png": lambda: draw_film(self._film(cells=cells)),
            ".json": self._json,
        }
        if path.suffix not in writers:
            raise ConfigError(
                f"{path.name}: a look is saved as {', '.join(writers)}, not {path.suffix or 'that'}"
            )
        return write(path, writers[path.suffix]())

    def text(self, *, colour: bool) -> str:
        """For a terminal: each word and where on the picture it looked."""
        return draw_words(self.rows, self.maps, self.lattice, colour=colour)

    def _repr_png_(self) -> bytes:
        """What a notebook shows where it shows no pages."""
        return draw_film(self._film())

    def _repr_html_(self) -> str:
        """What a notebook shows: the page in a frame of its own."""
        return framed(self.document())

    def _film(self, *, cells: bool = False) -> Film:
        return Film(
            self.title,
            self.caption,
            self.picture,
            self.rows,
            self.maps,
            self.lattice,
            self.boxes,
            cells,
            self.hard,
        )

    def _json(self) -> bytes:
        maps = [[[round(w, 6) for w in line] for line in one] for one in self.maps.tolist()]
        boxes = [{"label": label, "box": list(box)} for label, box in self.boxes]
        table = {"title": self.title, "caption": self.caption, "words": self.rows, "boxes": boxes}
        table |= {"grid": laid(self.lattice), "hard": self.hard, "maps": maps}
        return json.dumps(table, ensure_ascii=False).encode()
