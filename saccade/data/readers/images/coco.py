"""Captions in one JSON file: as COCO has them, or with the splits of Karpathy and Li.

    COCO        {"images": [{"id", "file_name"}], "annotations": [{"id", "image_id", "caption"}]}
    Karpathy    {"images": [{"filename", "filepath", "split", "sentences": [{"raw"}]}]}

The "line" of a bad row is its place in the list, from 1.
"""

from collections.abc import Iterator
from typing import Any, cast

from saccade.data.readers.images.rows import ImageFinder, ImageRow, captions_of
from saccade.data.readers.report import BadRow, Problem, parse_rows
from saccade.data.readers.stems import SPLITS
from saccade.data.readers.text.records import fields_of, json_value, kind_of, shown_keys, text_under
from saccade.errors import DataError

_TRAIN_TOO = "restval"  # what Karpathy and Li left over of COCO's validation images
Id = int | str


def coco_document(raw: bytes, name: str) -> dict[str, Any]:
    """The JSON object, with a list of images in it."""
    try:
        value = json_value(raw.decode())
        if isinstance(value, list):
            raise DataError(
                f"{name} is a list, not COCO; write it as JSON Lines, an object on each line of a "
                ".jsonl file"
            )
        document = fields_of(value)
    except UnicodeDecodeError as error:
        raise DataError(f"{name} is not UTF-8: at byte {error.start}; save it as UTF-8") from None
    except BadRow as bad:
        raise DataError(f"{name} is not COCO: {bad}; fetch it again") from None
    if not isinstance(document.get("images"), list):
        held = shown_keys(document)
        raise DataError(f"{name} is not COCO: no list 'images' in it; it has {held}")
    if not by_split(document) and not isinstance(document.get("annotations"), list):
        raise DataError(
            f"{name} is not COCO captions: neither a list 'annotations', nor 'sentences' with the "
            f"images; it has {shown_keys(document)}"
        )
    return document


def by_split(document: dict[str, Any]) -> bool:
    """Whether the images carry their captions and splits themselves."""
    images: list[Any] = document["images"]
    return any(isinstance(image, dict) and "sentences" in image for image in images)


def splits_of(document: dict[str, Any]) -> list[str]:
    """The splits that some image is in."""
    images: list[Any] = document["images"]
    named = {str(image.get("split")) for image in images if isinstance(image, dict)}
    return [split for split in SPLITS if named & _names(split)]


def karpathy_rows(
    document: dict[str, Any], name: str, split: str, images: ImageFinder
) -> Iterator[ImageRow | Problem]:
    """The images of a split. One that names no split is a bad row of every split."""
    wanted, file = _names(split), f"{name}#images"

    def parse(value: object, number: int) -> ImageRow | None:
        fields = fields_of(value)
        if text_under(fields, "split") not in wanted:
            return None
        image = text_under(fields, "filename")
        folder = text_under(fields, "filepath") if "filepath" in fields else ""
        captions = captions_of(_sentences(fields), "sentences")
        found = images.find(*([f"{folder}/{image}"] if folder else []), image)
        extras = {key: fields[key] for key in ("imgid", "cocoid") if key in fields}
        return ImageRow(images.once(found, number), captions, extras, file, number)

    return parse_rows(document["images"], file, parse)


def _sentences(fields: dict[str, Any]) -> list[str]:
    sentences = fields.get("sentences")
    if not isinstance(sentences, list):
        raise BadRow(f"wrong type: 'sentences' is {kind_of(sentences)}, not a list")
    return [text_under(fields_of(sentence), "raw") for sentence in cast(list[object], sentences)]


def _names(split: str) -> set[str]:
    usual = next((names for names in SPLITS.values() if split in names), (split,))
    return {*usual, _TRAIN_TOO} if "train" in usual else set(usual)


def coco_rows(
    document: dict[str, Any], name: str, finder: ImageFinder
) -> Iterator[ImageRow | Problem]:
    """Each image with the captions that name its id, in their order."""
    images: list[object] = document["images"]
    captions: dict[Id, list[str]] = {}
    for image in images:  # those of a bad image have a home too: it is told of once, not six times
        if isinstance(image, dict) and is_id(image.get("id")):
            captions.setdefault(cast(Id, image["id"]), [])
    yield from _gather(document["annotations"], f"{name}#annotations", captions)
    taken: dict[Id, int] = {}

    def parse(value: object, number: int) -> ImageRow:
        fields = fields_of(value)
        key = new_id(fields, taken, number, "image")
        file = text_under(fields, "file_name")
        if not captions[key]:
            raise BadRow(f"no caption: none names image {key!r:.60}, {file[:200]!r}")
        image = finder.once(finder.find(file), number)
        return ImageRow(image, tuple(captions[key]), {"id": key}, f"{name}#images", number)

    yield from parse_rows(images, f"{name}#images", parse)


def _gather(annotations: list[object], name: str, into: dict[Id, list[str]]) -> Iterator[Problem]:
    """Put each caption with its image; what has none is a bad row."""
    taken: dict[Id, int] = {}

    def parse(value: object, number: int) -> None:
        fields = fields_of(value)
        if "id" in fields:
            new_id(fields, taken, number, "annotation")
        image = json_id(fields, "image_id")
        caption = captions_of(text_under(fields, "caption"), "caption")
        if image not in into:
            raise BadRow(f"no such image: no image has the id {image!r:.60}")
        into[image] += caption

    return parse_rows(annotations, name, parse)


def new_id(fields: dict[str, Any], taken: dict[Id, int], number: int, what: str) -> Id:
    """The id of a record, if none before it in the list has the same."""
    key = json_id(fields, "id")
    if taken.setdefault(key, number) != number:
        raise BadRow(f"duplicate id: {key!r:.60} was {what} {taken[key]}")
    return key


def json_id(fields: dict[str, Any], key: str) -> Id:
    """The id under a key."""
    if key not in fields:
        raise BadRow(f"missing key: no {key!r}; it has {shown_keys(fields)}")
    if not is_id(fields[key]):
        raise BadRow(f"wrong type: {key!r} is {kind_of(fields[key])}, not a whole number or string")
    return fields[key]


def is_id(value: object) -> bool:
    """Whether this is a whole number or a string."""
    return isinstance(value, int | str) and not isinstance(value, bool)
