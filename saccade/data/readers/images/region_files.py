"""Where the regions of images lie, as detectors write it down. Numbers are pixels.

    {"image": "a.jpg", "boxes": [[left, top, right, bottom], …], "labels": ["cat", …]}
    {"images": [{"id", "file_name"}], "annotations": [{"image_id", "bbox", "category_id"}], …}
    [{"image_id": 139, "bbox": [left, top, width, height], "score": 0.9}, …]

JSON Lines, of which labels may be left out; COCO's instances; COCO's results, whose images are
known by their numbers alone: 000000000139.jpg is number 139.
"""

import json
import math
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any, NamedTuple, cast

from saccade.errors import DataError
from saccade.printable import printable

FORMS = 'JSON Lines with "image" and "boxes", or COCO\'s JSON'
Sides = tuple[float, float, float, float]


class PixelBox(NamedTuple):
    """Left, top, right and bottom in pixels, and what is there, if anybody knows."""

    box: Sides
    label: str = ""


@dataclass
class RegionFile:
    """The boxes of images, by the names and by the numbers that a file calls them by."""

    path: Path
    by_name: dict[str, list[PixelBox]] = field(default_factory=dict[str, list[PixelBox]])
    by_number: dict[str, list[PixelBox]] = field(default_factory=dict[str, list[PixelBox]])

    def of(self, name: str) -> list[PixelBox]:
        """Those of an image; one that the file does not name is refused."""
        file = PurePath(name)
        for known in (str(file), self._from_here(name), file.name):
            if known in self.by_name:
                return self.by_name[known]
        number = file.stem.lstrip("0") or "0"
        if number in self.by_number:
            return self.by_number[number]
        raise DataError(
            f"{printable(self.path)} has no boxes of {printable(name)}; name a file that has, "
            "or a detector"
        )

    def _from_here(self, name: str) -> str:
        """As seen from the folder that the file is in."""
        path, folder = Path(name).resolve(), self.path.parent.resolve()
        return str(path.relative_to(folder)) if path.is_relative_to(folder) else name


def read_region_file(path: Path) -> RegionFile:
    """All boxes of a file."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise DataError(f"{printable(path)} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise DataError(f"{printable(path)} is no text; give {FORMS}") from None
    found = RegionFile(path)
    if path.suffix in (".jsonl", ".ndjson"):
        for number, line in enumerate(text.splitlines(), start=1):
            if line.strip():
                _take_line(found, _json(line, f"{printable(path)}:{number}"), number)
        return found
    whole = _json(text, printable(path))
    if isinstance(whole, list):
        _take_results(found, cast(list[Any], whole))
    else:
        _take_instances(found, whole)
    return found


def pixel_box(value: Any, where: str, *, sides: bool = False) -> Sides:
    """Four numbers, by corners or by left, top, width and height."""
    numbers: list[Any] = list(value) if isinstance(value, list | tuple) else []
    if len(numbers) != 4 or not all(_is_number(one) for one in numbers):
        raise DataError(
            f"{where}: a box is [left, top, right, bottom] in pixels, not {value!r:.60}"
        )
    left, top, right, bottom = map(float, numbers)
    if sides:
        right, bottom = left + right, top + bottom
    if right <= left or bottom <= top:
        raise DataError(
            f"{where}: the box {value!r:.60} has no area; its right is its left or less"
        )
    return left, top, right, bottom


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise DataError(f"{where} is no JSON: {error}; give {FORMS}") from None


def _take_line(found: RegionFile, line: Any, number: int) -> None:
    where = f"{printable(found.path)}:{number}"
    match line:
        case {"image": str(name), "boxes": [*boxes]}:
            labels = line.get("labels", [""] * len(boxes))
            if not isinstance(labels, list) or len(cast(list[Any], labels)) != len(boxes):
                raise DataError(f"{where}: {len(boxes)} boxes have other than as many labels")
            pairs = zip(boxes, map(str, cast(list[Any], labels)))
            found.by_name[str(PurePath(name))] = [
                PixelBox(pixel_box(box, where), label) for box, label in pairs
            ]
        case _:
            raise DataError(f'{where}: a line has an "image" and its "boxes"; give {FORMS}')


def _take_instances(found: RegionFile, whole: Any) -> None:
    match whole:
        case {"images": [*images], "annotations": [*annotations]}:
            pass
        case _:
            raise DataError(f"{printable(found.path)} holds no boxes; give {FORMS}")
    kinds = {
        str(one["id"]): str(one["name"])
        for one in whole.get("categories", [])
        if isinstance(one, dict) and {"id", "name"} <= cast(dict[str, Any], one).keys()
    }
    names = dict[str, str]()
    for number, image in enumerate(images, start=1):
        match image:
            case {"id": int() | str() as key, "file_name": str(name)}:
                names[str(key)] = str(PurePath(name))
            case _:
                where = f"{printable(found.path)}#images:{number}"
                raise DataError(f'{where}: an image has an "id" and a "file_name"')
    found.by_name.update({name: [] for name in names.values()})
    for key, box in _annotated(found.path, annotations, kinds):
        if key not in names:
            raise DataError(f"{printable(found.path)} has a box of image {key}, and no such image")
        found.by_name[names[key]].append(box)


def _take_results(found: RegionFile, results: list[Any]) -> None:
    for key, box in _annotated(found.path, results, {}):
        found.by_number.setdefault(key.lstrip("0") or "0", []).append(box)


def _annotated(path: Path, some: list[Any], kinds: dict[str, str]) -> list[tuple[str, PixelBox]]:
    made = list[tuple[str, PixelBox]]()
    for number, one in enumerate(some, start=1):
        where = f"{printable(path)}, box {number}"
        match one:
            case {"image_id": int() | str() as key, "bbox": box}:
                label = kinds.get(str(one.get("category_id")), "")
                made.append((str(key), PixelBox(pixel_box(box, where, sides=True), label)))
            case _:
                raise DataError(f'{where}: it has no "image_id" with a "bbox"; give {FORMS}')
    return made
