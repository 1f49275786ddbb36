"""Images to look at: as people see them, as models do, and what is known of them."""

import base64
import io
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import UInt8
from PIL import Image
from torch import Tensor

from saccade.app.look.document import ImageEntry, MarkedBox
from saccade.data import shapes
from saccade.data.images.given import pixels_of
from saccade.data.images.members import Member
from saccade.data.images.square import fit_square
from saccade.data.readers.images.rows import ImageRow
from saccade.data.shapes import Scene
from saccade.errors import ConfigError
from saccade.printable import printable
from saccade.tasks.captioning.data import Captioned
from saccade.tasks.captioning.regions import marked_boxes, on_square

SIDE = 384  # pixels at which an image is shown, where it has as many
LONGEST = 576  # of the longer side of one that is shown in its own proportions
SIDES = ((24, SIDE), (120, 192))  # up to so many images on a page are shown at so many pixels
SMALLEST = 96


@runtime_checkable
class SeesImages(Protocol):
    """A model that is given square images of a size."""

    @property
    def settings(self) -> Any:
        """With the side of the images, `image`, and how they become square, `fit`."""
        ...

    def prepare(self, image: Any, *, name: str = "") -> UInt8[Tensor, "3 size size"]: ...


@dataclass(frozen=True)
class ShownImage:
    """An image for people, and how a model is given the same.

    Models see few pixels; people are shown as many as there are.
    """

    name: str
    pixels: UInt8[Tensor, "3 H W"]
    seen_by: Callable[[SeesImages], UInt8[Tensor, "3 size size"]]
    boxes: tuple[MarkedBox, ...] = ()
    references: tuple[str, ...] = ()

    @classmethod
    def of(cls, image: Any, tool: SeesImages, *, name: str = "") -> "ShownImage":
        """An image of the user's: a file, its bytes, or pixels."""
        image = _file(image)
        name = name or (image.name if isinstance(image, Path | Member) else "image")
        pixels = pixels_of(image, name=name, short=2 * SIDE)
        side = min(SIDE, max(pixels.shape[1:]))
        square = fit_square(pixels, max(side, tool.settings.image), tool.settings.fit)
        return cls(name, square, lambda who: who.prepare(image, name=name))

    @classmethod
    def in_full(cls, image: Any, *, name: str = "") -> "ShownImage":
        """In its own proportions, for models that see all of it squeezed to a square."""
        image = _file(image)
        name = name or (image.name if isinstance(image, Path | Member) else "image")
        pixels = pixels_of(image, name=name, short=LONGEST)
        whole = cls(name, pixels, lambda who: who.prepare(image, name=name))
        return whole.shrunk(LONGEST)

    def shrunk(self, longest: int) -> "ShownImage":
        """With fewer pixels along the longer side, if it has more."""
        height, width = self.pixels.shape[1:]
        if max(height, width) <= longest:
            return self
        scale = longest / max(height, width)
        size = max(1, round(width * scale)), max(1, round(height * scale))
        small = pillow_image(self.pixels).resize(size, Image.Resampling.BICUBIC)
        pixels = torch.from_numpy(np.asarray(small).transpose(2, 0, 1).copy())
        return replace(self, pixels=pixels)

    def among(self, count: int) -> "ShownImage":
        """Smaller where there are many on a page."""
        if count == 1:
            return self
        return self.shrunk(next((side for most, side in SIDES if count <= most), SMALLEST))

    @classmethod
    def of_scene(cls, scene: Scene, name: str) -> "ShownImage":
        """A scene of shapes, of which everything is known."""
        parts = zip(scene.objects, shapes.visible_boxes(scene).tolist())
        boxes = tuple(
            MarkedBox(label=f"{t.colour} {t.kind}", box=_corners(*box)) for t, box in parts
        )

        def seen_by(who: SeesImages) -> UInt8[Tensor, "3 size size"]:
            return _drawn(scene, who.settings.image)

        return cls(name, _drawn(scene, SIDE), seen_by, boxes, tuple(shapes.captions(scene)))

    @classmethod
    def of_row(cls, row: ImageRow, tool: SeesImages) -> "ShownImage":
        """An image of the user's data, with its captions, and its boxes if it has any."""
        plain, boxes = cls.of(row.image, tool), list[MarkedBox]()
        for word, found in marked_boxes(row).items():
            places = on_square(row, found, tool.settings.fit).clamp(0, 1)
            boxes += [MarkedBox(label=word, box=box) for box in places.tolist()]
        return replace(plain, boxes=tuple(boxes), references=row.captions)

    def entry(self, seen: int) -> ImageEntry:
        """What the document says of it; `seen` is the side in pixels that the model sees."""
        return ImageEntry(
            name=self.name,
            source=data_url(self.pixels),
            side=self.pixels.shape[-1],
            seen=seen,
            boxes=[replace(one, box=[round(x, 4) for x in one.box]) for one in self.boxes],
            references=list(self.references),
        )


def _file(image: Any) -> Any:
    """The path that a string names, unless that is a folder; anything else as it is."""
    path = Path(image) if isinstance(image, str) else image
    if isinstance(path, Path) and os.path.isdir(path):
        raise ConfigError(
            f"{printable(path)} is a folder; name the images in it that you want to look at"
        )
    return path


def image_entries(shown: Sequence[ShownImage], tools: Sequence[SeesImages]) -> list[ImageEntry]:
    """What a document says of its images; smaller ones where there are many."""
    seen = max(tool.settings.image for tool in tools)
    return [one.among(len(shown)).entry(seen) for one in shown]


def names_of(shown: Sequence[ShownImage]) -> str:
    """What the title of their document says of images."""
    return shown[0].name if len(shown) == 1 else f"{len(shown)} images"


def evenly(count: int, rows: int) -> list[int]:
    """The numbers of so many of them, spread evenly over all."""
    return torch.linspace(0, count - 1, min(rows, count)).round().long().unique().tolist()


def split_images(captioned: Captioned, rows: int, tool: SeesImages, split: str) -> list[ShownImage]:
    """The first images of a split, with all that is known of them."""
    if rows < 1:
        raise ConfigError(f"--rows {rows} must be 1 or more")
    if captioned.scenes:
        some = captioned.scenes[:rows]
        return [ShownImage.of_scene(scene, f"{split} {i}") for i, scene in enumerate(some)]
    return [ShownImage.of_row(row, tool) for row in captioned.rows[:rows]]


def data_url(pixels: UInt8[Tensor, "3 H W"]) -> str:
    """An image as text, small enough for many on one page."""
    buffer = io.BytesIO()
    pillow_image(pixels).save(buffer, "JPEG", quality=90, subsampling=0)
    return f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def pillow_image(pixels: UInt8[Tensor, "3 H W"]) -> Image.Image:
    return Image.fromarray(np.ascontiguousarray(pixels.permute(1, 2, 0).cpu().numpy()))


def _drawn(scene: Scene, size: int) -> UInt8[Tensor, "3 size size"]:
    return torch.from_numpy(shapes.render(scene, size)).permute(2, 0, 1).contiguous()


def _corners(cx: float, cy: float, w: float, h: float) -> list[float]:
    return [cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2]
