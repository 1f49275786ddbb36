"""The images that rows are about: each once, in order of first appearance, with its regions."""

from pathlib import Path
from typing import Any

from saccade.data.images.members import Member
from saccade.data.readers.images.asked.forms import AskedForm, Item
from saccade.data.readers.images.asked.row import REGIONS, SIDES, AskedRow
from saccade.data.readers.images.boxes.checks import Four, Size
from saccade.data.readers.images.boxes.jsonl import FILES
from saccade.data.readers.images.boxes.rows import header_size
from saccade.data.readers.images.rows import ImageFinder, ImageRow, image_under
from saccade.data.readers.report import BadRow
from saccade.data.readers.text.records import first_key

Key = tuple[Path, str]


class AskedImages:
    """Images by number. One is counted in when the first good row is about it."""

    def __init__(self) -> None:
        self.rows: list[ImageRow] = []
        self.regions: list[tuple[Four, ...] | None] = []
        self._numbers: dict[Key, int] = {}
        self._sizes: dict[Key, Size] = {}
        self._written: dict[int, dict[str, Any]] = {}  # regions as the rows have them
        self._said: dict[int, str] = {}  # where the regions of an image were given

    def item(
        self,
        form: AskedForm[Item],
        fields: dict[str, Any],
        finder: ImageFinder,
        file: str,
        line: int,
    ) -> Item:
        """What a row says, if all of it is good."""
        image = _image(fields, finder)
        key = image.path, image.name
        number = self._numbers.get(key, len(self.rows))
        row = AskedRow(fields, number, lambda: self._size(key, image), file, line)
        item = form.item(row)
        written = {name: fields[name] for name in (*REGIONS, *SIDES) if name in fields}
        if written == self._written.get(number):
            return item  # checking hundreds of boxes once is enough
        regions = row.regions()
        if regions is not None:
            self._refuse_others(number, regions)
        if number == len(self.rows):
            self._numbers[key] = number
            self.rows.append(ImageRow(image, (), {}, file, line))
            self.regions.append(None)
        if regions is not None and self.regions[number] is None:
            self.regions[number] = regions
            self._written[number] = written
            self._said[number] = f"{Path(file).name}:{line}"
        return item

    def _size(self, key: Key, image: Member) -> Size:
        if key not in self._sizes:
            self._sizes[key] = header_size(image)
        return self._sizes[key]

    def _refuse_others(self, number: int, regions: tuple[Four, ...]) -> None:
        known = self.regions[number] if number < len(self.rows) else None
        if known not in (None, regions):
            raise BadRow(
                f"other boxes: 'boxes' differ from those of the same image at "
                f"{self._said[number]}; give an image one list, or say it once"
            )


def _image(fields: dict[str, Any], finder: ImageFinder) -> Member:
    key = first_key(fields, FILES)
    named: object = fields[key]
    if isinstance(named, str) and not named.strip():
        raise BadRow(f"missing image: {key!r} is empty; name the image's file")
    return image_under(fields, key, finder)
