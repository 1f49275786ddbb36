"""`saccade predict runs/show-attend-tell photo.jpg holiday/`: what is on each image.

An image that cannot be read is told and passed over; the others are described all the same.
"""

from pathlib import Path
from typing import Any

from torch import Tensor

from saccade.app.api import CaptioningModel, CaptionPrediction
from saccade.app.cli.output import counting, print_json, say
from saccade.data.images.members import Member
from saccade.data.readers.images.named import Named, holds_images, named_images
from saccade.decode.engine import Decoding
from saccade.errors import ConfigError, DataError, SaccadeError


class SomeFailedError(SaccadeError):
    """All is done but for what could not be read; that was told before."""

    exit_code = 1


def describe_images(
    model: CaptioningModel, given: tuple[str, ...], how: Decoding, json: bool
) -> None:
    """Describe files, folders and archives, in the order in which they were named."""
    if not given or "-" in given:
        raise ConfigError(
            "name the images: files, folders, .tar or .zip archives; standard input is for text"
        )
    images = list(named_images(given))
    with counting("describing") as progress:
        rows: list[dict[str, Any]] = []  # words alone: of many images pictures are too much to keep
        for first in range(0, len(images), model.tool.batch):
            rows += _described(model, images[first : first + model.tool.batch], how)
            progress(len(rows), len(images))
    if json:
        print_json(rows)
    else:
        _print(rows, alone=len(given) == 1 and not holds_images(Path(given[0])))
    failed = sum("error" in row for row in rows)
    if failed:
        raise SomeFailedError(f"{failed:,} of {len(rows):,} images could not be read")


def _described(model: CaptioningModel, images: list[Named], how: Decoding) -> list[dict[str, Any]]:
    read = [(name, _read(model, name, image)) for name, image in images]
    pictures = [picture for _, picture in read if isinstance(picture, Tensor)]
    said = iter(model.predict(pictures, **vars(how)))
    return [_as_table(name, next(said) if isinstance(one, Tensor) else one) for name, one in read]


def _read(
    model: CaptioningModel, name: str, image: Path | Member | DataError
) -> Tensor | DataError:
    try:
        if isinstance(image, DataError):
            raise image
        return model.tool.prepare(image, name=name)
    except DataError as error:
        say(str(error))
        return error


def _print(rows: list[dict[str, Any]], *, alone: bool) -> None:
    for row in rows:
        for one in () if "error" in row else (row, *row.get("others", [])):
            print(one["text"] if alone else f"{_one_field(row['file'])}\t{one['text']}")


def _one_field(name: str) -> str:
    return name.replace("\t", " ").replace("\n", " ")


def _as_table(name: str, found: CaptionPrediction | DataError) -> dict[str, Any]:
    if isinstance(found, DataError):
        return {"file": name, "error": str(found)}
    table = {"file": name, "text": found.text, "score": found.score}
    others = [{"text": other.text, "score": other.score} for other in found.others]
    return {**table, "others": others} if others else table
