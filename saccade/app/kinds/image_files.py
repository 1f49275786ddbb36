"""`saccade predict` for kinds that read images: files, folders and archives.

An image that cannot be read is told and passed over; the others are answered all the same.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from saccade.app.cli.output import counting, json_list, say, tell
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


def check_images(given: tuple[str, ...]) -> None:
    """Refuse what are no images before anything is loaded."""
    if not given or "-" in given:
        raise ConfigError(
            "name the images: files, folders, .tar or .zip archives; standard input is for text"
        )


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
    images = list(named_images(given))
    alone = len(given) == 1 and not holds_images(Path(given[0]))
    done = failed = 0
    # On a terminal the captions themselves are the progress.
    with (
        counting(doing, shown=not sys.stdout.isatty()) as progress,
        json_list(wanted=json) as add,
    ):
        for first in range(0, len(images), tool.batch):
            some = [(n, _read(tool, n, image)) for n, image in images[first : first + tool.batch]]
            said = iter(predict([image for _, image in some if isinstance(image, Tensor)]))
            for name, one in some:
                if isinstance(one, DataError):
                    failed += 1
                    if alone:
                        raise one
                    say(str(one))
                    row = {"file": name, "error": str(one)}
                else:
                    row = {"file": name, **next(said)}
                add(row) if json else _show(row, alone=alone)
            done += len(some)
            progress(done, len(images))
    if failed:
        raise SomeFailedError(f"{failed:,} of {len(images):,} images could not be read")


def _read(tool: ImageTool, name: str, image: Path | Member | DataError) -> Tensor | DataError:
    try:
        return image if isinstance(image, DataError) else tool.prepare(image, name=name)
    except DataError as error:
        return error


def _show(row: dict[str, Any], *, alone: bool) -> None:
    for one in () if "error" in row else (row, *row.get("others", [])):
        tell(*(() if alone else (_one_field(row["file"]),)), one["text"])


def _one_field(name: str) -> str:
    return name.replace("\t", " ").replace("\n", " ")
