"""Pictures to look at: as people see them, as models do, and what is known of them."""

import base64
import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import UInt8
from PIL import Image
from torch import Tensor

from saccade.data import shapes
from saccade.data.images.decode import decode
from saccade.data.images.fit import fitted
from saccade.data.images.members import Member
from saccade.data.readers.images.rows import ImageRow
from saccade.data.shapes import Scene
from saccade.errors import ConfigError
from saccade.tasks.captioning.captioner import Describer
from saccade.tasks.captioning.data import Captioned
from saccade.tasks.captioning.regions import marked_boxes, on_square

SIDE = 384  # pixels at which a picture is shown, where it has as many


class Marked(NamedTuple):
    """A part of a picture: left, top, right and bottom as shares of its sides."""

    label: str
    box: tuple[float, float, float, float]


@dataclass(frozen=True)
class Shown:
    """A square picture for people, and how a model is given the same.

    Models see few pixels; people are shown as many as there are.
    """

    name: str
    picture: UInt8[Tensor, "3 side side"]
    seen_by: Callable[[Describer], UInt8[Tensor, "3 size size"]]
    boxes: tuple[Marked, ...] = ()
    references: tuple[str, ...] = ()

    @classmethod
    def of(cls, image: Any, describer: Describer, *, name: str = "") -> "Shown":
        """An image of the user's: a file, its bytes, or pixels."""
        if isinstance(image, str):
            image = Path(image)
        name = name or (image.name if isinstance(image, Path | Member) else "picture")
        files = isinstance(image, bytes | Path | Member)
        pixels = decode(image, name=name, short=2 * SIDE) if files else image
        if not isinstance(pixels, Tensor):
            raise ConfigError(f"{name}: give a file, its bytes or a uint8 tensor to look at")
        side = min(SIDE, max(pixels.shape[1:]))
        picture = fitted(pixels, max(side, describer.settings.image), describer.settings.fit)
        return cls(name, picture, lambda who: who.prepare(image, name=name))

    @classmethod
    def of_scene(cls, scene: Scene, name: str) -> "Shown":
        """A scene of shapes, of which everything is known."""
        parts = zip(scene.objects, shapes.visible_boxes(scene).tolist())
        boxes = tuple(Marked(f"{t.colour} {t.kind}", _corners(box)) for t, box in parts)

        def seen_by(who: Describer) -> UInt8[Tensor, "3 size size"]:
            return _drawn(scene, who.settings.image)

        return cls(name, _drawn(scene, SIDE), seen_by, boxes, tuple(shapes.captions(scene)))

    @classmethod
    def of_row(cls, row: ImageRow, describer: Describer) -> "Shown":
        """A picture of the user's data, with its captions, and its boxes if it has any."""
        plain = cls.of(row.image, describer)
        boxes = list[Marked]()
        for word, found in marked_boxes(row).items():
            places = on_square(row, found, describer.settings.fit).clamp(0, 1)
            boxes += [Marked(word, (a, b, c, d)) for a, b, c, d in places.tolist()]
        return cls(plain.name, plain.picture, plain.seen_by, tuple(boxes), row.captions)

    def entry(self, seen: int) -> dict[str, Any]:
        """What the document says of it; `seen` is the side in pixels that the model sees."""
        return {
            "name": self.name,
            "source": data_url(self.picture),
            "side": self.picture.shape[-1],
            "seen": seen,
            "boxes": [
                {"label": label, "box": [round(x, 4) for x in box]} for label, box in self.boxes
            ],
            "references": list(self.references),
        }


def shown_split(told: Captioned, rows: int, describer: Describer, split: str) -> list[Shown]:
    """The first pictures of a split, with all that is known of them."""
    if rows < 1:
        raise ConfigError(f"--rows {rows} must be 1 or more")
    if told.scenes:
        some = told.scenes[:rows]
        return [Shown.of_scene(scene, f"{split} {i}") for i, scene in enumerate(some)]
    return [Shown.of_row(row, describer) for row in told.rows[:rows]]


def data_url(picture: UInt8[Tensor, "3 H W"]) -> str:
    """A picture as text, small enough for many on one page."""
    buffer = io.BytesIO()
    image_of(picture).save(buffer, "JPEG", quality=90, subsampling=0)
    return f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def image_of(picture: UInt8[Tensor, "3 H W"]) -> Image.Image:
    return Image.fromarray(np.ascontiguousarray(picture.permute(1, 2, 0).cpu().numpy()))


def _drawn(scene: Scene, size: int) -> UInt8[Tensor, "3 size size"]:
    return torch.from_numpy(shapes.render(scene, size)).permute(2, 0, 1).contiguous()


def _corners(box: list[float]) -> tuple[float, float, float, float]:
    cx, cy, w, h = box
    return cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2
