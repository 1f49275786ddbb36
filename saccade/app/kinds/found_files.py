"""Where objects that were found are written to: COCO's JSON, YOLO's texts, drawn images."""

import io
import json
from collections.abc import Collection
from itertools import count
from pathlib import Path
from typing import Literal

from PIL import Image

from saccade.app.kinds.detection.model import ObjectsPrediction
from saccade.app.look.draw.boxes import DrawnBox, draw_boxes
from saccade.app.look.draw.figure import write
from saccade.data.images.given import pixels_of
from saccade.data.writers.boxes import FoundBox, FoundInImage, class_ids, coco_dataset, yolo_lines
from saccade.errors import ConfigError, WriteError

FoundFormat = Literal["text", "coco", "yolo"]
NAMES = "classes.txt"


def check_targets(form: FoundFormat, out: Path | None, draw: Path | None, *, json: bool) -> None:
    """Refuse what does not go together, before anything is looked for."""
    if form == "text" and out is not None:
        raise ConfigError(f"--out {out} is of --format coco or yolo; lines are printed, so use >")
    if form != "text" and json:
        raise ConfigError(
            f"--json prints, and --format {form} goes to a file; leave one of them out"
        )
    if form == "coco" and (out is None or out.suffix != ".json"):
        raise ConfigError("--format coco is one file; name it with --out x.json")
    if form == "yolo" and (out is None or out.is_file()):
        raise ConfigError("--format yolo is a text for each image; name a folder with --out x")
    for folder in (draw, out if form == "yolo" else None):
        if folder is not None:
            make_folder(folder)


def make_folder(folder: Path) -> None:
    """Unless it is there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteError(f"cannot make the folder {folder}: {error.strerror}") from error


class FoundFiles:
    """Takes predictions as they are made; what is one file is written in the end."""

    def __init__(
        self, classes: tuple[str, ...], form: FoundFormat, out: Path | None, draw: Path | None
    ) -> None:
        self.classes, self.form, self.out, self.draw = classes, form, out, draw
        self._found: list[FoundInImage] = []
        self._names: set[str] = set()

    def take(self, one: ObjectsPrediction) -> None:
        """Draw it, or write its text; COCO waits for the last."""
        stem = self._stem(one.name)
        if self.draw is not None:
            write(self.draw / f"{stem}.png", quick_png(drawn(one, self.classes)))
        found = FoundInImage(
            self._file(one.name),
            one.size,
            [FoundBox(o.label, o.score, *o.box) for o in one.objects],
        )
        if self.form == "coco":
            self._found.append(found)
        elif self.form == "yolo":
            assert self.out is not None
            lines = yolo_lines(found, class_ids(self.classes, first=0))
            write(self.out / f"{stem}.txt", "".join(f"{line}\n" for line in lines).encode())

    def finish(self) -> Path | None:
        """The whole document, or the names that YOLO's numbers stand for; gives its place.

        Where not a single image could be read, there is nothing to write.
        """
        if self.out is None or not self._names:
            return None
        if self.form == "coco":
            whole = coco_dataset(self._found, class_ids(self.classes))
            return write(self.out, json.dumps(whole, ensure_ascii=False).encode())
        return write(self.out / NAMES, "".join(f"{name}\n" for name in self.classes).encode())

    def _file(self, name: str) -> str:
        """Named from the folder that COCO's file is in, where the image lies below it."""
        folder, path = Path() if self.out is None else self.out.parent, Path(name).resolve()
        below = path.is_relative_to(folder.resolve())
        return path.relative_to(folder.resolve()).as_posix() if below else name

    def _stem(self, name: str) -> str:
        """An image's own name, with a number where another has it already."""
        stem = free_stem(Path(name).stem, {*self._names, Path(NAMES).stem})
        self._names.add(stem)
        return stem


def free_stem(plain: str, taken: Collection[str]) -> str:
    """A name, or with the first number that makes it one which nobody has."""
    names = (plain if number == 1 else f"{plain}-{number}" for number in count(1))
    return next(name for name in names if name not in taken)


def quick_png(image: Image.Image) -> bytes:
    """Soon rather than small: photographs have many pixels."""
    buffer = io.BytesIO()
    image.save(buffer, "PNG", compress_level=2)
    return buffer.getvalue()


def drawn(one: ObjectsPrediction, classes: tuple[str, ...]) -> Image.Image:
    """The image with its objects, each in the colour of its class."""
    height, width = one.size
    boxes = [
        DrawnBox(
            (o.box[0] / width, o.box[1] / height, o.box[2] / width, o.box[3] / height),
            f"{o.label} {o.score:.2f}",
            classes.index(o.label),
        )
        for o in one.objects
    ]
    return draw_boxes(pixels_of(one.image, name=one.name, short=max(one.size)), boxes)
