"""`saccade predict` for kinds that read images: files, folders, archives, patterns, standard input.

An image that cannot be read is told and passed over; the others are answered all the same.
"""

import glob
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from saccade.app.cli.output import counting, json_list, say, tell
from saccade.data.images.members import Member
from saccade.data.readers.images.named import holds_images, named_images
from saccade.errors import ConfigError, DataError, SaccadeError
from saccade.printable import printable


class SomeFailedError(SaccadeError):
    """All is done but for what could not be read; that was told before."""

    exit_code = 1


@runtime_checkable
class ImageTool(Protocol):
    """It makes images fit, and takes so many at a time."""

    @property
    def batch(self) -> int: ...

    def prepare(self, image: Any, *, name: str = "") -> Any: ...


Row = dict[str, Any]
Fields = Iterable[tuple[str, ...]]
STANDARD_INPUT = "-"
PATTERN = "*?["
# How the files of images begin that Pillow is asked to read here.
MAGIC = (b"\xff\xd8\xff", b"\x89PNG", b"GIF8", b"BM", b"RIFF")


def check_images(given: tuple[str, ...]) -> None:
    """Refuse what are no images before anything is loaded."""
    if not given:
        raise ConfigError(
            "name the images: files, folders, .tar or .zip archives, patterns in quotes, or - for "
            "an image or names of files on standard input"
        )
    if STANDARD_INPUT in given and len(given) > 1:
        raise ConfigError("- is standard input alone; leave the other names out")


def _expanded(given: tuple[str, ...]) -> Iterator[str | bytes]:
    """Every name there is for a pattern; of standard input the image, or the names in it."""
    for one in given:
        if one == STANDARD_INPUT:
            raw = sys.stdin.buffer.read()
            if not raw.strip():
                raise DataError("standard input is empty; give an image, or names of files")
            if raw.startswith(MAGIC):
                yield raw
            else:
                lines = raw.decode(errors="surrogateescape").splitlines()
                yield from (line for line in lines if line.strip())
        elif any(mark in one for mark in PATTERN) and not Path(one).exists():
            names = sorted(glob.glob(one, recursive=True))
            if not names:
                raise DataError(f"no file is named like {printable(one)}; look at the pattern")
            yield from names
        else:
            yield one


def given_images(given: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Every image that is named, with its name; or why there is none."""
    for one in _expanded(given):
        if isinstance(one, bytes):
            yield "standard input", one
        else:
            yield from named_images([one])


def texts(row: Row, alone: bool) -> Fields:
    """The text, and those of the others."""
    return [(one["text"],) for one in (row, *row.get("others", []))]


def predict_images(
    tool: ImageTool,
    given: tuple[str, ...],
    predict: Callable[[list[Any]], list[Row]],
    *,
    doing: str,
    json: bool,
    fields: Callable[[Row, bool], Fields] = texts,
    prints: bool = True,
) -> None:
    """Print what `predict` says of each image, in the order in which they were named.

    It gives a table for each image; `fields` makes lines of one, which has none beside it or some.
    What is written elsewhere `prints` nothing.
    """
    images = list(given_images(given))
    alone = len(images) == 1 and len(given) == 1 and not holds_images(Path(given[0]))
    done = failed = 0
    # On a terminal the captions themselves are the progress.
    with (
        counting(doing, shown=not (prints and sys.stdout.isatty())) as progress,
        json_list(wanted=json) as add,
    ):
        for first in range(0, len(images), tool.batch):
            some = [(n, _read(tool, n, image)) for n, image in images[first : first + tool.batch]]
            said = iter(predict([image for _, image in some if not isinstance(image, DataError)]))
            for name, one in some:
                if isinstance(one, DataError):
                    failed += 1
                    if alone:
                        raise one
                    say(str(one))
                    row = {"file": name, "error": str(one)}
                else:
                    row = {"file": name, **next(said)}
                if json:
                    add(row)
                elif prints and "error" not in row:
                    of = () if alone else (one_field(row["file"]),)
                    for line in fields(row, alone):
                        tell(*of, *line)
            done += len(some)
            progress(done, len(images))
    if failed:
        raise SomeFailedError(f"{failed:,} of {len(images):,} images could not be read")


def _read(tool: ImageTool, name: str, image: Path | Member | bytes | DataError) -> Any:
    """An image as the tool wants it, or why there is none."""
    try:
        return image if isinstance(image, DataError) else tool.prepare(image, name=name)
    except DataError as error:
        return error


def one_field(name: str) -> str:
    """In one field of one line."""
    return name.replace("\t", " ").replace("\n", " ")
