"""A row for each image with boxes, or a problem for each box of it that is bad."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from saccade.data.images.decode import ImageError, upright_size
from saccade.data.images.members import Member
from saccade.data.readers.images.boxes.checks import CheckedBox, Size, finite_number
from saccade.data.readers.images.coco import Id
from saccade.data.readers.images.rows import ImageFinder, ImageRow
from saccade.data.readers.images.source import TableSource
from saccade.data.readers.report import BadRow, Problem, parse_rows
from saccade.errors import DataError

MAX_ANNOTATION = 4_000_000  # bytes of the file of one image

Raw = TypeVar("Raw")
Found = list[ImageRow | Problem]


@dataclass
class BoxFile:
    """A file with the boxes of a split, or of all; `read` gives its rows."""

    source: TableSource
    read: Callable[[TableSource, ImageFinder], Iterator[ImageRow | Problem]]
    used: list[str] = field(default_factory=list[str])

    @property
    def name(self) -> str:
        return self.source.file.name

    def rows(self, split: str) -> Iterator[ImageRow | Problem]:
        self.source.require_train(split)
        finder = self.source.places()
        self.used = finder.used
        return self.read(self.source, finder)


def image_rows(
    records: Iterable[Raw], file: str, parse: Callable[[Raw, int], Found]
) -> Iterator[ImageRow | Problem]:
    """What `parse` makes of each record and its number; a BadRow is a problem of the record."""
    for found in parse_rows(records, file, parse):
        if isinstance(found, Problem):
            yield found
        else:
            yield from found


def try_box(
    file: str, line: int, make: Callable[[], CheckedBox], *, told: str = ""
) -> CheckedBox | Problem:
    """A box, or what is wrong with it; `told` says which it is where the line does not."""
    try:
        return make()
    except BadRow as bad:
        kind, _, detail = str(bad).partition(": ")
        return Problem(file, line, ": ".join(filter(None, (kind, told, detail))))


def boxed_image(
    image: Member,
    size: Size,
    boxes: Iterable[CheckedBox | Problem],
    *,
    file: str,
    line: int,
    classes: Mapping[str, Id] | None = None,
    **extras: object,
) -> Found:
    """The row of an image, or the problems with its boxes.

    `classes` are those that the data declare, used or not, with their numbers there.
    """
    every = list(boxes)
    problems: Found = [one for one in every if isinstance(one, Problem)]
    if problems:
        return problems
    good = [one for one in every if isinstance(one, CheckedBox)]
    held: dict[str, object] = {
        "objects": tuple(one.box for one in good),
        "size": size,
        "clipped": sum(one.clipped for one in good),
        "around": sum(one.around for one in good),
        "classes": classes or {},
        **extras,
    }
    return [ImageRow(image, (), held, file, line)]


def image_size(image: Member, *, height: object = None, width: object = None) -> Size:
    """Height and width of the upright image; a BadRow where others are declared."""
    return agreed_size(header_size(image), height=height, width=width)


def header_size(image: Member) -> Size:
    """Height and width of the upright image, which is not decoded."""
    try:
        return upright_size(image)
    except ImageError as error:
        raise BadRow(error.reason) from None


def agreed_size(size: Size, *, height: object = None, width: object = None) -> Size:
    """The size, if no other is declared.

    Sides of 0 are not declared: some tools write them before they have seen the image.
    """
    if not height and not width:
        return size
    told = finite_number(height, "height"), finite_number(width, "width")
    if not any(told) or told == size:
        return size
    swapped = told == size[::-1]
    way_out = (
        "the sides are swapped, as where boxes were drawn without the image's EXIF rotation; "
        "save the image upright"
        if swapped
        else "give the image that was annotated, or mend the size and the boxes"
    )
    raise BadRow(
        f"another size: {told[1]:.10g} × {told[0]:.10g} is declared, the upright image has "
        f"{size[1]} × {size[0]}; {way_out}"
    )


def small_file(member: Member) -> bytes:
    """The bytes of an annotation of one image."""
    try:
        return member.read(most=MAX_ANNOTATION)
    except DataError as error:
        raise BadRow(f"unreadable: {error}") from None
