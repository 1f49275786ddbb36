"""A matrix of attention with words on both sides, and the forms it can be shown in."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jaxtyping import Float
from torch import Tensor

from saccade.app.look.document import LookDocument
from saccade.app.look.draw.png import draw_png
from saccade.app.look.draw.svg import draw_svg
from saccade.app.look.draw.terminal import draw_text
from saccade.app.look.html import framed, page_html
from saccade.data.files.whole_files import write_whole
from saccade.errors import ConfigError, WriteError


@dataclass(frozen=True)
class MatrixLook:
    """Where each row's word looked among the columns' words."""

    rows: list[str]
    columns: list[str]
    weights: Float[Tensor, "rows columns"] = field(repr=False)
    title: str
    caption: str  # what the model wrote or read
    document: Callable[[], LookDocument] = field(repr=False)

    def save(self, path: str | Path) -> Path:
        """Write a figure or the numbers, by the file's ending."""
        writers: dict[str, Callable[[], bytes]] = {
            ".html": lambda: page_html(self.document()).encode(),
            ".svg": lambda: self._svg().encode(),
            ".png": lambda: draw_png(self.rows, self.columns, self._numbers, title=self.title),
            ".json": self._json,
        }
        return save_by_ending(path, writers)

    def text(self, *, colour: bool, width: int | None = None) -> str:
        """For a terminal: each row's word and the columns shaded by how much it looked at them."""
        drawn: dict[str, Any] = {"colour": colour, "width": width}
        return draw_text(self.rows, self.columns, self._numbers, **drawn)

    @property
    def _numbers(self) -> list[list[float]]:
        return self.weights.tolist()

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """What a notebook shows: the page in a frame of its own, else the figure."""
        return {"text/html": framed(self.document()), "image/svg+xml": self._svg()}

    def _svg(self) -> str:
        return draw_svg(self.rows, self.columns, self._numbers, title=self.title)

    def _json(self) -> bytes:
        rounded = [[round(weight, 6) for weight in row] for row in self._numbers]
        table = {"title": self.title, "rows": self.rows, "columns": self.columns}
        return json.dumps({**table, "weights": rounded}, ensure_ascii=False).encode()


def save_by_ending(path: str | Path, writers: dict[str, Callable[[], bytes]]) -> Path:
    """Write the form that belongs to the file's ending."""
    path = Path(path)
    if path.suffix not in writers:
        raise ConfigError(
            f"{path.name}: a look is saved as {', '.join(writers)}, not {path.suffix or 'that'}"
        )
    return write(path, writers[path.suffix]())


def save_document(document: LookDocument, path: Path) -> Path:
    """Write the page of a look document."""
    return write(path, page_html(document).encode())


def write(path: Path, content: bytes) -> Path:
    """Write a file, or say in one line why not; what was there is then as it was."""
    try:
        write_whole(path, content)
    except OSError as error:
        raise WriteError(f"cannot write {path}: {error.strerror}") from error
    return path
