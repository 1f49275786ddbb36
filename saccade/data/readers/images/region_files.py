"""Where the regions of images lie, as detectors write it down. Numbers are pixels.

    {"image": "a.jpg", "boxes": [[left, top, right, bottom], …], "labels": ["cat", …]}
    {"images": [{"id", "file_name"}], "annotations": [{"image_id", "bbox", "category_id"}], …}
    [{"image_id": 139, "bbox": [left, top, width, height], "score": 0.9}, …]

JSON Lines, of which labels may be left out, and which may have scores; COCO's instances; COCO's
results, whose images are known by their numbers alone: 000000000139.jpg is number 139.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any, NamedTuple, cast

from saccade.errors import DataError
from saccade.printable import printable

FORMS = 'JSON Lines with "image" and "boxes", or COCO\'s JSON'
LEAST, MOST = 0.3, 36  # scores of objects that become regions, and how many of an image do
Sides = tuple[float, float, float, float]


class PixelBox(NamedTuple):
    """Left, top, right and bottom in pixels, what is there, if anybody knows, and how likely.

    `place` is the line, or the number of the box, in its file.
    """

    box: Sides
    label: str = ""
    score: float = 1.0
    place: int = 0


def likeliest(boxes: Sequence[PixelBox]) -> list[PixelBox]:
    """Those that become regions, the likeliest first; of equals, as the file has them."""
    likely = [one for one in boxes if one.score >= LEAST]
    return sorted(likely, key=lambda one: -one.score)[:MOST]


@dataclass
class RegionFile:
    """The boxes of images, by the names and by the numbers that a file calls them by."""

    path: Path
    by_name: dict[str, list[PixelBox]] = field(default_factory=dict[str, list[PixelBox]])
    by_number: dict[str, list[PixelBox]] = field(default_factory=dict[str, list[PixelBox]])

    def of(self, name: str) -> list[PixelBox]:
        """Those of an image; one that the file does not name is refused."""
        found = self.find(name)
        if found is None:
            raise DataError(
                f"{printable(self.path)} has no boxes of {printable(name)}; name a file that has, "
                "or a detector"
            )
        return found

    def find(self, name: str) -> list[PixelBox] | None:
        """Those of an image, if the file names it."""
        file = PurePath(name)
        for known in (str(file), self._from_here(name), file.name):
            if known in self.by_name:
                return self.by_name[known]
        return self.by_number.get(file.stem.lstrip("0") or "0")

    @property
    def labels(self) -> tuple[str, ...]:
        """What the boxes are called, each name once."""
        every = (*self.by_name.values(), *self.by_number.values())
        return tuple(sorted({one.label for some in every for one in some} - {""}))

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
            labels = _as_many(line, "labels", boxes, "", where)
            scores = [_score(one, where) for one in _as_many(line, "scores", boxes, 1.0, where)]
            found.by_name[str(PurePath(name))] = [
                PixelBox(pixel_box(box, where), str(label), score, number)
                for box, label, score in zip(boxes, labels, scores)
            ]
        case _:
            raise DataError(f'{where}: a line has an "image" and its "boxes"; give {FORMS}')


def _as_many(line: Any, key: str, boxes: list[Any], default: Any, where: str) -> list[Any]:
    some = line.get(key, [default] * len(boxes))
    if not isinstance(some, list) or len(cast(list[Any], some)) != len(boxes):
        raise DataError(f"{where}: {len(boxes)} boxes have other than as many {key}")
    return cast(list[Any], some)


def _score(value: Any, where: str) -> float:
    if not _is_number(value):
        raise DataError(f"{where}: a score is a number, not {value!r:.60}")
    return float(value)


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
                sides, score = pixel_box(box, where, sides=True), _score(one.get("score", 1), where)
                made.append((str(key), PixelBox(sides, label, score, number)))
            case _:
                raise DataError(f'{where}: it has no "image_id" with a "bbox"; give {FORMS}')
    return made
