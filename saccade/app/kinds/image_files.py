"""`saccade predict` for kinds that read images: files, folders, archives, patterns, standard input.

An image that cannot be read is told and passed over; the others are answered all the same.
"""

import glob
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from saccade.app.cli.inputs import ready_lines
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
HEAD = 1 << 16  # bytes of standard input that tell whether it is an image
PATTERN = "*?["
NO_NAME = (b"\xff\xd8\xff", b"\x89PNG", b"GIF8")  # how images begin, and hardly ever a name


def check_images(given: tuple[str, ...]) -> None:
    """Refuse what are no images before anything is loaded."""
    if not given:
        raise ConfigError(
            "name the images: files, folders, .tar or .zip archives, patterns in quotes, or - for "
            "an image or names of files on standard input"
        )
    if "" in given:
        raise ConfigError("'' names no image; give its file, or . for all in this folder")
    if STANDARD_INPUT in given and len(given) > 1:
        raise ConfigError("- is standard input alone; leave the other names out")


def given_images(given: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Every image that is named, with its name; or why there is none."""
    return chain.from_iterable(image_batches(given, 1))


def image_batches(given: tuple[str, ...], size: int) -> Iterator[list[tuple[str, Any]]]:
    """The same, so many at once at most; none is decoded yet.

    Of names on standard input those that are there, as soon as there are any.
    """
    if given == (STANDARD_INPUT,):
        for some in _standard_input():
            yield from _cut(iter(some), size)
    else:
        yield from _cut(named_images(chain.from_iterable(map(_matching, given))), size)


def _cut(images: Iterator[tuple[str, Any]], size: int) -> Iterator[list[tuple[str, Any]]]:
    while some := list(islice(images, size)):
        yield some


def _standard_input() -> Iterator[Iterable[tuple[str, Any]]]:
    """The image, or images of the names that come in."""
    stream: Any = sys.stdin.buffer
    begun: bytes = stream.read1(HEAD)
    if begun.startswith(NO_NAME) or b"\0" in begun:  # which no name holds, and every image
        yield [("standard input", begun + stream.read())]
        return
    empty = True
    for lines in ready_lines(begun):
        names = [line.decode(errors="surrogateescape") for line in lines if line.strip()]
        if names:
            empty = False
            yield named_images(names)
    if empty:
        raise DataError("standard input is empty; give an image, or names of files")


def _matching(one: str) -> list[str]:
    """Every name there is for a pattern; a name itself."""
    if not any(mark in one for mark in PATTERN) or os.path.exists(one):
        return [one]
    names = sorted(glob.glob(one, recursive=True))
    if not names:
        raise DataError(f"no file is named like {printable(one)}; look at the pattern")
    return names


def texts(row: Row, alone: bool) -> Fields:
    """The text, and those of the others."""
    return [(one["text"],) for one in (row, *row.get("others", []))]


def guess_fields(guesses: Sequence[Row], alone: bool) -> list[tuple[str, str]]:
    """Classes with their probabilities: all guesses, or the best where others stand beside it."""
    some = guesses if alone else guesses[:1]
    return [(one["label"], f"{one['probability']:.4f}") for one in some]


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
    batches, total = image_batches(given, tool.batch), _count(given)
    first = next(batches)  # there is one: without any image an error was raised
    alone = _alone(given, first, total)
    done = failed = 0
    # On a terminal the captions themselves are the progress.
    with (
        counting(doing, shown=not (prints and sys.stdout.isatty())) as progress,
        json_list(wanted=json) as add,
    ):
        for images in chain([first], batches):
            some = [(name, _read(tool, name, image)) for name, image in images]
            said = iter(predict([image for _, image in some if not isinstance(image, DataError)]))
            for name, one in some:
                if isinstance(one, DataError):
                    failed += 1
                    row = _told(name, one, alone)
                else:
                    row = {"file": name, **next(said)}
                if json:
                    add(row)
                elif prints and "error" not in row:
                    of = () if alone else (one_field(row["file"]),)
                    for line in fields(row, alone):
                        tell(*of, *line)
            done += len(some)
            progress(done, total)
    if failed:
        raise SomeFailedError(f"{failed:,} of {done:,} images could not be read")


def _told(name: str, error: DataError, alone: bool) -> Row:
    """Say that an image cannot be read; where there is no other, that is all there is to say."""
    if alone:
        raise error
    say(str(error))
    return {"file": name, "error": str(error)}


def _count(given: tuple[str, ...]) -> int | None:
    """How many images there are; None if nobody knows yet."""
    return None if given == (STANDARD_INPUT,) else sum(1 for _ in given_images(given))


def _alone(given: tuple[str, ...], first: list[tuple[str, Any]], total: int | None) -> bool:
    """Whether there is one image, so that nobody need be told which; names may be any number."""
    if total is None:
        return isinstance(first[0][1], bytes)
    return total == 1 and len(given) == 1 and not holds_images(Path(given[0]))


def _read(tool: ImageTool, name: str, image: Path | Member | bytes | DataError) -> Any:
    """An image as the tool wants it, or why there is none."""
    try:
        return image if isinstance(image, DataError) else tool.prepare(image, name=name)
    except DataError as error:
        return error


def one_field(name: str) -> str:
    """In one field of one line."""
    return name.replace("\t", " ").replace("\n", " ")
