"""One row of such data: what is under its keys, checked."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from saccade.data.readers.images.boxes.checks import Four, Size, checked_box, four_numbers
from saccade.data.readers.images.boxes.jsonl import BOXES
from saccade.data.readers.images.boxes.rows import agreed_size
from saccade.data.readers.report import BadRow
from saccade.data.readers.text.records import as_text, first_key, kind_of, text_under

BOX, REGIONS = ("box", "bbox"), ("boxes", "bboxes")
SIDES = ("height", "width")


@dataclass(frozen=True)
class AskedRow:
    """The keys of a row, the number of its image, and where it stands.

    `size` gives the image's height and width: only rows with boxes ask for it.
    """

    fields: dict[str, Any]
    image: int
    size: Callable[[], Size]
    file: str
    line: int

    def text(self, key: str) -> str:
        """The text under a key, with something to read in it."""
        return _filled(text_under(self.fields, key), key)

    def texts(self, key: str) -> tuple[str, ...]:
        """A text, or a list of them; in VQA's files each is under a key `answer` of its own."""
        value = self.fields[key]
        every: list[object] = cast(list[object], value) if isinstance(value, list) else [value]
        bare = (
            cast(dict[str, object], one).get("answer") if isinstance(one, dict) else one
            for one in every
        )
        return tuple(_filled(as_text(one, key), key) for one in bare)

    def box(self) -> Four:
        """The box, as shares of the image's sides."""
        key = first_key(self.fields, BOX)
        return self._shares(self.fields[key], key)

    def regions(self) -> tuple[Four, ...] | None:
        """The regions of the image, where the row has them."""
        key = next((key for key in REGIONS if key in self.fields), None)
        if key is None:
            return None
        value = self.fields[key]
        if not isinstance(value, list):
            raise BadRow(f"wrong type: {key!r} is {kind_of(value)}, not a list of boxes")
        if not value:
            raise BadRow(f"no boxes: {key!r} is an empty list; give some, or leave it out")
        return tuple(
            self._shares(one, key, told=f"box {place}")
            for place, one in enumerate(cast(list[object], value), start=1)
        )

    def _shares(self, value: object, key: str, *, told: str = "") -> Four:
        declared = {side: self.fields.get(side) for side in SIDES}
        size = agreed_size(self.size(), **declared)
        try:
            found = checked_box("", four_numbers(value, key), BOXES[key], size).box
        except BadRow as bad:
            kind, _, detail = str(bad).partition(": ")
            raise BadRow(": ".join(filter(None, (kind, told, detail)))) from None
        return found.left, found.top, found.right, found.bottom


def _filled(text: str, key: str) -> str:
    if not text or text.isspace():
        raise BadRow(f"empty: {key!r} has nothing to read; write it, or take the row away")
    return text
