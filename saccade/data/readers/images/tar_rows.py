"""Images in tar files of samples, with captions or labels; none is decoded."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

from saccade.data.batching.packed_rows import PackedRows
from saccade.data.images.members import Member
from saccade.data.readers.columns import require_column
from saccade.data.readers.images.rows import ENDINGS, ImageRow, captions_of
from saccade.data.readers.label_values import labels_of
from saccade.data.readers.report import BadRow, Problem, parse_rows
from saccade.data.readers.tar_samples import (
    IMAGE,
    TarRecord,
    tar_keys,
    tar_records,
    whole_record,
)
from saccade.data.readers.text.records import first_key
from saccade.errors import DataError
from saccade.regular import regular_file

CAPTIONS = ("captions", "caption", "text")
MakeRow = Callable[[dict[str, Any], Member, str, int, str], ImageRow]


def tar_captions(paths: Iterable[Path]) -> Iterator[ImageRow | Problem]:
    """An image with its captions for each sample; other keys of its .json are left aside."""
    return chain.from_iterable(_rows(path, _captioned) for path in paths)


def tar_images(paths: Iterable[Path]) -> Iterator[ImageRow | Problem]:
    """The images alone."""
    return chain.from_iterable(_rows(path, _alone) for path in paths)


@dataclass
class TarLabels:
    """One tar whose samples are images with labels."""

    path: Path
    label: str  # the key that was asked for
    usual: tuple[str, ...]
    used: list[str] = field(default_factory=list[str])

    @property
    def name(self) -> str:
        return str(self.path)

    def splits(self) -> list[str]:
        """Samples name none."""
        return ["train"]

    def rows(self, split: str) -> Iterator[ImageRow | Problem]:
        """The images with their labels."""
        keys = tar_keys(self.path)
        key = require_column(self.name, keys, self.label, self.usual, "label")
        return _rows(self.path, _labelled, key)


def _captioned(fields: dict[str, Any], image: Member, name: str, number: int, _: str) -> ImageRow:
    key = first_key(fields, CAPTIONS)
    return ImageRow(image, captions_of(fields[key], key), {}, name, number)


def _labelled(fields: dict[str, Any], image: Member, name: str, number: int, key: str) -> ImageRow:
    labels = labels_of(fields[first_key(fields, [key])], key)
    return ImageRow(image, (), {"labels": labels}, name, number)


def _alone(fields: dict[str, Any], image: Member, name: str, number: int, _: str) -> ImageRow:
    return ImageRow(image, (), {}, name, number)


def _rows(path: Path, row: MakeRow, key: str = "") -> Iterator[ImageRow | Problem]:
    about = regular_file(path, DataError)
    return iter(_rows_now(path, about.st_size, about.st_mtime_ns, row, key))


@lru_cache(maxsize=1024)
def _rows_now(
    path: Path, _: int, __: int, row: MakeRow, key: str
) -> PackedRows[ImageRow | Problem]:
    """All of a tar in its present state: what is held out is of the same rows as what is learnt."""
    name = str(path)

    def parse(raw: TarRecord, number: int) -> ImageRow:
        fields = whole_record(raw)
        image = fields.get(IMAGE)
        if not isinstance(image, Member):
            raise BadRow(f"missing image: the sample has none of {', '.join(ENDINGS)}")
        return row(fields, image, name, number, key)

    return PackedRows(parse_rows(tar_records(path), name, parse))
