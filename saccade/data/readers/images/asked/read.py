"""Read a split of questions, phrases or choices about images; no image is decoded.

Any number of rows may be about one image. What is wrong with a row is told with its place, and the
rest of the rows about its image stay.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from saccade.data.readers.images.asked.find import ENDINGS, WHOLE, find_asked
from saccade.data.readers.images.asked.forms import AskedForm, Item
from saccade.data.readers.images.asked.images import AskedImages
from saccade.data.readers.images.asked.tables import asked_table
from saccade.data.readers.images.boxes.checks import Four
from saccade.data.readers.images.rows import SUBSET, ImageFinder, ImageRow
from saccade.data.readers.images.source import TableSource
from saccade.data.readers.report import Problem, RowsRead, collect, counted, listed, parse_rows
from saccade.data.readers.stems import SPLITS, fitting_stems, one_stem
from saccade.errors import DataError
from saccade.printable import printable

_USUAL = {name for names in SPLITS.values() for name in names}


@dataclass(frozen=True, kw_only=True)
class AskedRead(RowsRead[Item]):
    """What is said of images. `images` has each once, and `regions` its boxes, or None."""

    form: AskedForm[Item]
    images: list[ImageRow]
    regions: list[tuple[Four, ...] | None]

    @property
    def items(self) -> Sequence[Item]:
        return self.rows

    @property
    def size(self) -> str:
        about = counted(len(self.rows), self.form.noun)
        told = f"{about} about {counted(len(self.images), 'image')}"
        boxes = sum(len(found) for found in self.regions if found is not None)
        return f"{told} with {counted(boxes, 'region')}" if boxes else told


def read_asked(
    data: Path, split: str, form: AskedForm[Item], *, skip_bad: int = 0
) -> AskedRead[Item]:
    """All rows of a split, in order.

    Over `skip_bad` bad rows stop the reading with a list of them; fewer are left out and counted.
    """
    found = find_asked(data, form)
    stems = one_stem(data, split, found)
    sources = found.get(stems[0] if stems else WHOLE, [])
    if not sources:
        raise DataError(
            f"{printable(data)} has no {split!r} split with {form.name}: no {split} in {ENDINGS}; "
            f"it has {listed(list(found))}"
        )
    images = AskedImages()
    finders = [source.places(*_image_folders(source, split)) for source in sources]
    for source in sources:
        source.require_train(split)
    rows = (
        row
        for source, finder in zip(sources, finders)
        for row in _rows(source, finder, form, images)
    )
    names = [source.file.name for source in sources]
    into = partial(AskedRead[Item], form=form, images=images.rows, regions=images.regions)
    read = collect(rows, names, into, skip_bad=skip_bad)
    return replace(
        read, files=[*names, *dict.fromkeys(name for one in finders for name in one.used)]
    )


def asked_splits(data: Path, form: AskedForm[Any]) -> list[str]:
    """Which of train, valid and test there are."""
    found = find_asked(data, form)
    return [split for split in SPLITS if fitting_stems(split, found)] or ["train"]


def _image_folders(source: TableSource, split: str) -> list[str]:
    """Where images of a split lie, by its name, or by COCO's: train2014."""
    usual = next((names for names in SPLITS.values() if split in names), (split,))
    file = Path(source.entry.name).name
    said = SUBSET.search(file)
    words = [word for word in re.split(r"[._-]", file.lower()) if word in _USUAL]
    held = [name for name in source.tree.folders(source.entry.folder) if SUBSET.fullmatch(name)]
    mine = [name for name in held if name.startswith(usual)]
    return [*dict.fromkeys([*([said[0]] if said else []), *mine, *words]), *usual]


def _rows(
    source: TableSource, finder: ImageFinder, form: AskedForm[Item], images: AskedImages
) -> Iterator[Item | Problem]:
    table, name = asked_table(source, form), source.file.name
    name += f"#{form.name}" if source.entry.form == "json" else ""

    def parse(raw: Any, number: int) -> Item | None:
        fields = table.record(raw)
        return None if fields is None else images.item(form, fields, finder, name, number)

    return parse_rows(table.rows, name, parse, first=table.first)
