"""The images that rows are about: each once, in order of first appearance, with its regions."""

from pathlib import Path
from typing import Any

from saccade.data.images.members import Member
from saccade.data.readers.images.asked.forms import AskedForm, Item
from saccade.data.readers.images.asked.row import REGIONS, SIDES, AskedRow
from saccade.data.readers.images.boxes import jsonl
from saccade.data.readers.images.boxes.checks import Four, Size
from saccade.data.readers.images.boxes.rows import header_size
from saccade.data.readers.images.rows import ENDINGS, ImageFinder, ImageRow, image_under
from saccade.data.readers.report import BadRow
from saccade.data.readers.text.records import first_key

Key = tuple[Path, str]
_DIGITS = 12  # of a number in COCO's names
FILES = (
    *(*jsonl.FILES, "image_path", "img_path", "img", "img_fn", "image_name", "image_filename"),
    *("image_file", "imageId", "image_id"),
)


class AskedImages:
    """Images by number. One is counted in when the first good row is about it."""

    def __init__(self) -> None:
        self.rows: list[ImageRow] = []
        self.regions: list[tuple[Four, ...] | None] = []
        self._numbers: dict[Key, int] = {}
        self._sizes: dict[Key, Size] = {}
        self._written: dict[int, dict[str, Any]] = {}  # regions as the rows have them
        self._said: dict[int, str] = {}  # where the regions of an image were given
        self._found: dict[tuple[int, str], Member] = {}  # by finder and name: many rows ask again

    def item(
        self,
        form: AskedForm[Item],
        fields: dict[str, Any],
        finder: ImageFinder,
        file: str,
        line: int,
    ) -> Item:
        """What a row says, if all of it is good."""
        image = self._image(fields, finder)
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

    def _image(self, fields: dict[str, Any], finder: ImageFinder) -> Member:
        key = first_key(fields, FILES)
        named: object = fields[key]
        if isinstance(named, bool) or not isinstance(named, int | str):
            return image_under(fields, key, finder)
        name = str(named).strip()
        if not name:
            raise BadRow(f"missing image: {key!r} is empty; name the image's file")
        if (id(finder), name) not in self._found:
            numbered = name.isascii() and name.isdigit() and len(name) <= _DIGITS
            self._found[id(finder), name] = (
                _numbered(name, finder) if numbered else image_under({key: name}, key, finder)
            )
        return self._found[id(finder), name]


def _numbered(number: str, finder: ImageFinder) -> Member:
    """The image of this number, by COCO's names or that alone."""
    long = number.zfill(_DIGITS)
    names = [*(f"COCO_{subset}_{long}" for subset in finder.subsets), long, number]
    return finder.find(number, *(f"{name}{ending}" for name in names for ending in ENDINGS))
