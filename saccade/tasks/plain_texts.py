"""Texts without labels as the user's files have them, and the part that is held out of them."""

from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from saccade.data.readers import TextsRead, read_texts, splits
from saccade.errors import DataError

HELD_OUT = 0.1  # the last part of a text without a validation split, as is usual for streams
Unit = Literal["stream", "lines"]


@runtime_checkable
class TextSource(Protocol):
    """Where texts are, and whether each line of a file is one of them."""

    @property
    def data(self) -> str: ...

    @property
    def field(self) -> str: ...

    @property
    def unit(self) -> Unit: ...

    @property
    def skip_bad(self) -> int: ...


def read_plain_texts(source: TextSource, split: str | None) -> tuple[list[str], str]:
    """The texts of a split and a line about them; None is all of a single file."""
    if split in ("train", "valid") and "valid" not in splits(Path(source.data)):
        return _held_out(source, split)
    read = _read(source, split or "train")
    return read.texts, read.summary()


def _read(source: TextSource, split: str) -> TextsRead:
    return read_texts(
        Path(source.data),
        split,
        field=source.field,
        whole=source.unit == "stream",
        skip_bad=source.skip_bad,
    )


def _held_out(source: TextSource, split: str) -> tuple[list[str], str]:
    """The last tenth is for validation where the user gave no such split."""
    read = _read(source, "train")
    texts = read.texts
    if source.unit == "stream" and len(texts) == 1:
        cut = int(len(texts[0]) * (1 - HELD_OUT))
        texts = [texts[0][:cut] if split == "train" else texts[0][cut:]]
    else:
        cut = int(len(texts) * (1 - HELD_OUT))
        texts = texts[:cut] if split == "train" else texts[cut:]
    if not any(texts):
        raise DataError(f"{read.summary()}: too little to hold a tenth out; add a validation file")
    note = (
        "the last tenth, held out" if split == "valid" else f"{read.summary()}, first nine tenths"
    )
    return texts, note
