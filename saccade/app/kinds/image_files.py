"""`saccade predict` for kinds that read images: files, folders and archives.

An image that cannot be read is told and passed over; the others are answered all the same.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from saccade.app.cli.output import counting, print_json, say
from saccade.data.images.members import Member
from saccade.data.readers.images.named import holds_images, named_images
from saccade.errors import ConfigError, DataError, SaccadeError


class SomeFailedError(SaccadeError):
    """All is done but for what could not be read; that was told before."""

    exit_code = 1


@runtime_checkable
class ImageTool(Protocol):
    """It makes images fit, and takes so many at a time."""

    @property
    def batch(self) -> int: ...

    def prepare(self, image: Any, *, name: str = "") -> Tensor: ...


def predict_images(
    tool: ImageTool,
    given: tuple[str, ...],
    predict: Callable[[list[Tensor]], list[dict[str, Any]]],
    *,
    doing: str,
    json: bool,
) -> None:
    """Print what `predict` says of each image, in the order in which they were named.

    It gives a table for each image, with `text` and, where there is more to say, `others`.
    """
    if not given or "-" in given:
        raise ConfigError(
            "name the images: files, folders, .tar or .zip archives; standard input is for text"
        )
    images = list(named_images(given))
    with counting(doing) as progress:
        rows: list[dict[str, Any]] = []  # words alone: many images are too much to keep
        for first in range(0, len(images), tool.batch):
            some = [(n, _read(tool, n, image)) for n, image in images[first : first + tool.batch]]
            said = iter(predict([image for _, image in some if isinstance(image, Tensor)]))
            rows += [
                {"file": name, **(next(said) if isinstance(one, Tensor) else {"error": str(one)})}
                for name, one in some
            ]
            progress(len(rows), len(images))
    if json:
        print_json(rows)
    else:
        _print(rows, alone=len(given) == 1 and not holds_images(Path(given[0])))
    failed = sum("error" in row for row in rows)
    if failed:
        raise SomeFailedError(f"{failed:,} of {len(rows):,} images could not be read")


def _read(tool: ImageTool, name: str, image: Path | Member | DataError) -> Tensor | DataError:
    try:
        if isinstance(image, DataError):
            raise image
        return tool.prepare(image, name=name)
    except DataError as error:
        say(str(error))
        return error


def _print(rows: list[dict[str, Any]], *, alone: bool) -> None:
    for row in rows:
        for one in () if "error" in row else (row, *row.get("others", [])):
            print(one["text"] if alone else f"{_one_field(row['file'])}\t{one['text']}")


def _one_field(name: str) -> str:
    return name.replace("\t", " ").replace("\n", " ")
