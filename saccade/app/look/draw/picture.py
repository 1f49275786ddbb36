"""One look: a matrix of attention with words on both sides, and the forms it can be shown in."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxtyping import Float
from torch import Tensor

from saccade.app.look.draw.png import draw_png
from saccade.app.look.draw.svg import draw_svg
from saccade.app.look.draw.terminal import draw_text
from saccade.app.look.html import framed, page_html
from saccade.errors import ConfigError, WriteError


@dataclass(frozen=True)
class Look:
    """Where each row's word looked among the columns' words."""

    rows: list[str]
    columns: list[str]
    weights: Float[Tensor, "rows columns"]
    title: str
    caption: str  # what the model wrote or read
    document: Callable[[], dict[str, Any]]

    def save(self, path: str | Path) -> Path:
        """Write a picture or the numbers, by the file's ending."""
        path = Path(path)
        writers = {
            ".html": self._html,
            ".svg": self._svg,
            ".png": self._png,
            ".json": self._json,
        }
        if path.suffix not in writers:
            raise ConfigError(
                f"{path.name}: a look is saved as {', '.join(writers)}, not {path.suffix or 'that'}"
            )
        return write(path, writers[path.suffix]())

    def text(self, *, colour: bool) -> str:
        """For a terminal: each row's word and the columns shaded by how much it looked at them."""
        return draw_text(self.rows, self.columns, self.weights.tolist(), colour=colour)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """What a notebook shows: the page in a frame of its own, else the picture."""
        return {"text/html": framed(self.document()), "image/svg+xml": self._svg().decode()}

    def _html(self) -> bytes:
        return page_html(self.document()).encode()

    def _svg(self) -> bytes:
        return draw_svg(self.rows, self.columns, self.weights.tolist(), title=self.title).encode()

    def _png(self) -> bytes:
        return draw_png(self.rows, self.columns, self.weights.tolist(), title=self.title)

    def _json(self) -> bytes:
        rounded = [[round(weight, 6) for weight in row] for row in self.weights.tolist()]
        table = {"title": self.title, "rows": self.rows, "columns": self.columns}
        return json.dumps({**table, "weights": rounded}, ensure_ascii=False).encode()


def save_document(document: dict[str, Any], path: Path) -> Path:
    """Write the page of a look document."""
    return write(path, page_html(document).encode())


def write(path: Path, content: bytes) -> Path:
    """Write a file, or say in one line why not."""
    try:
        path.write_bytes(content)
    except OSError as error:
        raise WriteError(f"cannot write {path}: {error.strerror}") from error
    return path
