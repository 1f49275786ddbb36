"""Texts without labels as the user's files have them, and the part that is held out of them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

from saccade.config import ModelConfig, WordModelConfig
from saccade.data.batching.row_choice import RowChoice
from saccade.data.readers import TextsRead, TextStream, read_texts, splits, stream_texts
from saccade.errors import ConfigError, DataError
from saccade.tasks.corpus import CorpusPart, TextCorpus
from saccade.tasks.running_texts import RunningTexts

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
    def window(self) -> int: ...

    @property
    def skip_bad(self) -> int: ...


Source = TypeVar("Source", bound=TextSource)
ReadTexts = Callable[[Source, str | None], tuple[Sequence[str], str]]  # a split, and a line on it


def check_window(source: TextSource, model: ModelConfig) -> None:
    """Refuse windows of a stream that are longer than what a model reads."""
    most = model.most_words if isinstance(model, WordModelConfig) else None
    if source.unit == "stream" and most is not None and source.window > most:
        raise ConfigError(
            f"window={source.window} is more than the model's longest={most}; give --window "
            f"{most}, or --model.longest {source.window}"
        )


def read_plain_texts(source: TextSource, split: str | None) -> tuple[Sequence[str], str]:
    """The texts of a split and a line about them; None is all of a single file."""
    if split in ("train", "valid") and "valid" not in splits(Path(source.data)):
        return _held_out(source, split)
    read = _read(source, split or "train")
    return read.texts, read.summary()


def text_parts(source: Source, read: ReadTexts[Source]) -> tuple[CorpusPart, CorpusPart]:
    """The same texts as `read` gives to train and to validate on, as they stream."""
    if source.data:
        return _parts(source)
    train, valid = (
        CorpusPart.in_memory(split, *read(source, split)) for split in ("train", "valid")
    )
    return train, valid


def text_part(source: Source, split: str | None, read: ReadTexts[Source]) -> CorpusPart:
    """The same texts as `read` gives, as they stream."""
    if not source.data:
        return CorpusPart.in_memory(split or "test", *read(source, split))
    if split in ("train", "valid") and "valid" not in splits(Path(source.data)):
        train, valid = _parts(source)
        return train if split == "train" else valid
    stream = _stream(source, split or "train")
    return CorpusPart(TextCorpus(stream, _alone, "texts", "text", _running(stream)))


def _parts(source: TextSource) -> tuple[CorpusPart, CorpusPart]:
    train = _stream(source, "train")
    if "valid" in splits(Path(source.data)):
        parts = (
            TextCorpus(stream, _alone, "texts", "text", _running(stream))
            for stream in (train, _stream(source, "valid"))
        )
        return CorpusPart(next(parts)), CorpusPart(next(parts))
    cut = _cut_single if source.unit == "stream" else _alone
    running = _running(train, held_out=HELD_OUT)
    corpus = TextCorpus(train, cut, f"held out of {source.unit}", "text", running)
    return (
        CorpusPart(corpus, "train", RowChoice(end=1 - HELD_OUT), _told_of_train),
        CorpusPart(corpus, "valid", RowChoice(start=1 - HELD_OUT), _told_of_valid),
    )


def _running(stream: TextStream[str], held_out: float = 0.0) -> RunningTexts | None:
    return RunningTexts(stream, held_out) if stream.running else None


def _alone(texts: Iterable[str]) -> Iterator[tuple[str, ...]]:
    return ((text,) for text in texts)


def _cut_single(texts: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """A text that is all there is as two: of two texts, too, the last is held out."""
    rest = iter(texts)
    first, second = next(rest, None), next(rest, None)
    if first is not None and second is None:
        cut = int(len(first) * (1 - HELD_OUT))
        first, second = first[:cut], first[cut:]
    return _alone(chain((text for text in (first, second) if text is not None), rest))


def _options(source: TextSource) -> dict[str, Any]:
    whole = source.unit == "stream"
    return {"field": source.field, "whole": whole, "skip_bad": source.skip_bad}


def _stream(source: TextSource, split: str) -> TextStream[str]:
    return stream_texts(Path(source.data), split, **_options(source))


def _read(source: TextSource, split: str) -> TextsRead:
    return read_texts(Path(source.data), split, **_options(source))


def _held_out(source: TextSource, split: str) -> tuple[Sequence[str], str]:
    """The last tenth is for validation where the user gave no such split."""
    read = _read(source, "train")
    texts = [text for (text,) in _cut_single(read.texts)] if source.unit == "stream" else read.texts
    cut = int(len(texts) * (1 - HELD_OUT))
    texts = texts[:cut] if split == "train" else texts[cut:]
    told = _told_of_valid if split == "valid" else _told_of_train
    return texts, told(sum(map(bool, texts)), read.summary())


def _told_of_train(count: int, whole: str) -> str:
    return f"{_enough(count, whole)}, first nine tenths"


def _told_of_valid(count: int, whole: str) -> str:
    return _enough(count, whole) and "the last tenth, held out"


def _enough(count: int, whole: str) -> str:
    if not count:
        raise DataError(f"{whole}: too little to hold a tenth out; add a validation file")
    return whole
