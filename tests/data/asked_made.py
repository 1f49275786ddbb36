"""Small data sets of questions, phrases and choices about images, in every form of file."""

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from saccade.data.readers import CHOICES, QUESTIONS, REFERRING, AskedForm
from tests.data.boxes_made import blank
from tests.data.images_made import rows

Record = dict[str, Any]
WIDTH, HEIGHT = 40, 20
PICTURES = {name: blank(WIDTH, HEIGHT) for name in ("a.png", "b.png", "c.png")}

ASKED: Sequence[Record] = (
    {"image": "b.png", "question": "what is it?", "answers": ["a dog", "dog", "dog"]},
    {"image": "a.png", "question": "how many, or none?", "answers": ["two"]},
    {"image": "b.png", "question": "is it red?", "answers": ["no"], "boxes": [[0, 0, 20, 10]]},
)
REFERS: Sequence[Record] = (
    {"image": "b.png", "phrase": "the dog on the left", "box": [4, 2, 20, 10]},
    {"image": "b.png", "phrase": "the other", "box": [20, 10, 40, 20], "boxes": [[0, 0, 40, 20]]},
    {"image": "c.png", "phrase": 'a "cat", maybe', "box": [0.5, 1, 2, 3]},
)
CHOSEN: Sequence[Record] = (
    {"image": "a.png", "sentences": ["a dog runs", "a dog sleeps", "a cat"], "right": 1},
    {"image": "a.png", "sentences": ["yes", "no"], "right": 0, "boxes": [[1, 1, 2, 2]]},
)
FORMS: dict[str, tuple[AskedForm[Any], Sequence[Record]]] = {
    "questions": (QUESTIONS, ASKED),
    "referring": (REFERRING, REFERS),
    "choices": (CHOICES, CHOSEN),
}


def jsonl(records: Sequence[Record]) -> bytes:
    return rows(*records)


def comma(records: Sequence[Record]) -> bytes:
    sink, names = io.StringIO(), columns(records)
    writer = csv.DictWriter(sink, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: cell(value) for key, value in one.items()} for one in records)
    return sink.getvalue().encode()


def tab(records: Sequence[Record]) -> bytes:
    names = columns(records)
    lines = [names, *([cell(one.get(name, "")) for name in names] for one in records)]
    return "".join("\t".join(line) + "\n" for line in lines).encode()


def parquet(records: Sequence[Record]) -> bytes:
    sink, names = io.BytesIO(), columns(records)
    held = [{name: decimal(one.get(name)) for name in names} for one in records]
    pq.write_table(pa.Table.from_pylist(held), sink)
    return sink.getvalue()


def document(records: Sequence[Record]) -> bytes:
    return json.dumps(list(records), indent=1).encode()


def columns(records: Sequence[Record]) -> list[str]:
    return list(dict.fromkeys(key for one in records for key in one))


def cell(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def decimal(value: Any) -> Any:
    """Parquet's lists are of one type."""
    if isinstance(value, list) and not any(isinstance(one, str) for one in value):
        return [decimal(one) for one in value]
    return float(value) if isinstance(value, int) else value


WRITERS = {"jsonl": jsonl, "csv": comma, "tsv": tab, "parquet": parquet, "json": document}
