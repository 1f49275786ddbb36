"""What Parquet and Arrow tables share: columns, and the features that Hugging Face notes in them.

An image is a struct of bytes and a path, or bytes alone, or a path alone. Names of classes are in
the metadata of the schema, where labels are only their numbers.
"""

import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, cast

from saccade.errors import DataError
from saccade.printable import printable


class TableColumns(NamedTuple):
    """The names of columns, and the features of them that are noted, as JSON."""

    names: list[str]
    features: bytes

    @classmethod
    def of(cls, schema: Any) -> "TableColumns":
        return cls(list(schema.names), (schema.metadata or {}).get(b"huggingface", b""))


def pyarrow_module(name: str) -> Any:
    """A part of pyarrow, which comes with `saccade[data]`."""
    try:
        return import_module(f"pyarrow.{name}")
    except ImportError:
        raise DataError(
            "reading Parquet and Arrow needs pyarrow, which is not installed: "
            "pip install 'saccade[data]'"
        ) from None


@contextmanager
def refuse_damaged(path: Path, form: str) -> Generator[None]:
    """A damaged file makes pyarrow raise errors of any kind: a DataError of one line instead."""
    try:
        yield
    except (DataError, OSError) as error:
        if isinstance(error, DataError) or error.errno is not None:
            raise
        raise DataError(_damaged(path, form, error)) from None
    except Exception as error:
        raise DataError(_damaged(path, form, error)) from None


def _damaged(path: Path, form: str, error: Exception) -> str:
    reason = printable(str(error).partition("\n")[0][:200]) or type(error).__name__
    return f"{printable(path)} is not a whole {form} file ({reason}); fetch it again"


def bytes_in(value: object) -> bytes | None:
    """The bytes of an image in a cell, if it holds them."""
    if isinstance(value, dict):
        value = cast(dict[str, object], value).get("bytes")
    return value if isinstance(value, bytes) else None


def class_label_names(features: bytes, column: str) -> list[str]:
    """The names of a column's classes by their numbers, where the file has them."""
    try:
        feature = json.loads(features)["info"]["features"][column]
        while "feature" in feature or isinstance(feature, list):  # of each label in a list of them
            feature = feature[0] if isinstance(feature, list) else feature["feature"]
        names = feature["names"]
    except (KeyError, TypeError, IndexError, ValueError, RecursionError):
        return []
    listed = cast(list[object], names) if isinstance(names, list) else []
    texts = [name for name in listed if isinstance(name, str)]
    return texts if len(texts) == len(set(texts)) == len(listed) else []


def rows_of_batch(batch: Any) -> Iterator[dict[str, Any] | None]:
    """Each row of a record batch; None for one with a text that is not UTF-8."""
    try:
        yield from batch.to_pylist()
    except UnicodeDecodeError:
        for index in range(batch.num_rows):
            try:
                yield batch.slice(index, 1).to_pylist()[0]
            except UnicodeDecodeError:
                yield None
