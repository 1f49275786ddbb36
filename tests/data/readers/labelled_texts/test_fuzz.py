"""Any bytes are read or refused with a SaccadeError; clean rows come back as they were written."""

import csv
import gzip
import io
import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saccade.data.files import unpacking
from saccade.data.glue import GLUE
from saccade.data.readers import (
    LabelledTextsRead,
    TextColumns,
    labelled_text_splits,
    read_labelled_texts,
)
from saccade.errors import DataError
from tests.marks import one_fast

FRAGMENTS = [
    *(b"\n", b"\r\n", b"\r", b"\t", b"\0", b" ", b"a", b"\xef\xbb\xbf", b"\xff", b"\xc3\xa9"),
    *("\u2028".encode(), b"{", b"[", b"]", b":", b",", b";", b'"', b'""', b"|", b"#", b"-", b"_"),
    *(b"text\tlabel\n", b"text,label\n", b"sentence1\tsentence2\tscore\n", b"a\tb\t1.5\n"),
    *(b"gj04\t1\t\tWe eat\n", b"Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n", b"1\t2\t3\ta\tb\n"),
    *(b"id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n", b"gold_label", b"index"),
    *(b'{"text": "a", "label": "b"}\n', b'{"tokens": ["a"], "tags": ["O"]}\n', b'"label": [1]}'),
    *(b'{"text": "a", "label": 1e999}\n', b'{"text": "\\ud800", "label": []}\n', b"nan", b"1e999"),
    *(b"a O\n", b"1\tWe\twe\tPRON\tPRP\t_\t4\tnsubj\t_\t_\n", b"1-2\t", b"-DOCSTART- O\n"),
    *(b"9" * 4_400, b"[" * 3_000, b"PAR1", b"\x1f\x8b\x08", b"null"),
]
FORMS = ["tsv", "csv", "jsonl", "parquet", "conll", "conllu", "txt"]
likely = st.lists(st.sampled_from(FRAGMENTS) | st.binary(max_size=4), max_size=25).map(b"".join)
content = st.binary(max_size=200) | likely
COLUMNS = [
    TextColumns(),
    TextColumns(task="number"),
    TextColumns(task="labels"),
    TextColumns(task="tags"),
    TextColumns(text="a", label="2"),
    *(TextColumns(task=name) for name in GLUE),
]


def read_every_way(data: Path) -> None:
    """Whatever the readers do with this, they may raise nothing but a DataError."""
    tries: list[Callable[[], object]] = [lambda: labelled_text_splits(data)]
    for columns in COLUMNS:
        for split in ("train", "test"):
            tries.append(lambda c=columns, s=split: read_labelled_texts(data, s, c, skip_bad=9))
    for attempt in tries:
        try:
            found = attempt()
        except DataError as error:
            str(error).encode()  # a message that cannot be printed would be a second failure
        else:
            if isinstance(found, LabelledTextsRead):
                found.summary().encode()


@pytest.mark.parametrize("form", one_fast(FORMS))
@settings(deadline=None, max_examples=40)
@given(raw=content, packed=st.booleans())
def test_any_bytes_in_any_form(form: str, raw: bytes, packed: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"train.{form}{'.gz' * packed}"
        file.write_bytes(gzip.compress(raw, 1) if packed else raw)
        read_every_way(Path(folder))
        read_every_way(file)


clean = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\t\0\ufeff"), min_size=1
).filter(str.strip)
name = clean.map(str.strip).filter(lambda text: "|" not in text and text[0] not in "[{")
rows = st.lists(st.tuples(clean, clean, name), min_size=1, max_size=6)


def tsv(table: list[dict[str, str]]) -> bytes:
    every = [list(table[0]), *(list(row.values()) for row in table)]
    return "".join("\t".join(row) + "\n" for row in every).encode()


def comma(table: list[dict[str, str]]) -> bytes:
    sink = io.StringIO()
    writer = csv.DictWriter(sink, list(table[0]), lineterminator="\r\n")
    writer.writeheader()
    writer.writerows(table)
    return sink.getvalue().encode()


def jsonl(table: list[dict[str, str]]) -> bytes:
    return "\n".join(json.dumps(row) for row in table).encode()


def parquet(table: list[dict[str, str]]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(table), sink)
    return sink.getvalue()


WRITERS = {"tsv": tsv, "csv": comma, "jsonl": jsonl, "parquet": parquet}


@settings(deadline=None, max_examples=60)
@given(rows=rows, pair=st.booleans(), packed=st.booleans())
def test_clean_rows_survive_every_form(
    rows: list[tuple[str, str, str]], pair: bool, packed: bool
) -> None:
    names = ("sentence1", "sentence2", "label") if pair else ("text", "other", "label")
    table = [dict(zip(names, row)) for row in rows]
    texts = [(first, second) if pair else (first,) for first, second, _ in rows]
    for form, write in WRITERS.items():
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / f"train.{form}{'.gz' * packed}"
            file.write_bytes(gzip.compress(write(table), 1) if packed else write(table))
            read = read_labelled_texts(file, "train", TextColumns(task="classes"))
        assert [row.texts for row in read.rows] == texts
        assert [row.label for row in read.rows] == [label for *_, label in rows]


@settings(deadline=None, max_examples=40)
@given(texts=st.lists(st.text(st.sampled_from('ab,;"\n ')).filter(str.strip), min_size=1))
def test_any_cell_of_csv_comes_back_and_no_number_shifts(texts: list[str]) -> None:
    raw = comma([{"text": text, "label": "x"} for text in texts])
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "a.csv").write_bytes(raw)
        read = read_labelled_texts(Path(folder) / "a.csv", "train")
    assert [row.texts[0] for row in read.rows] == texts
    starts = [2 + sum(1 + text.count("\n") for text in texts[:n]) for n in range(len(texts))]
    assert [int(row.where.rpartition(":")[2]) for row in read.rows] == starts


@settings(deadline=None, max_examples=60)
@given(numbers=st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=6))
def test_numbers_survive_every_form(numbers: list[float]) -> None:
    table = [{"text": "a", "label": repr(number)} for number in numbers]
    for form, write in WRITERS.items():
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / f"a.{form}").write_bytes(write(table))
            read = read_labelled_texts(
                Path(folder) / f"a.{form}", "train", TextColumns(task="number")
            )
        assert [row.label for row in read.rows] == numbers


word = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"], exclude_characters="#\ufeff"),
    min_size=1,
).filter(lambda text: bool(text.strip()) and text != "-DOCSTART-")
sentences = st.lists(st.lists(st.tuples(word, word), min_size=1), min_size=1, max_size=5)


@settings(deadline=None, max_examples=80)
@given(sentences=sentences, mark=st.sampled_from(["\t", " ", "   "]), universal=st.booleans())
def test_clean_sentences_survive_conll(
    sentences: list[list[tuple[str, str]]], mark: str, universal: bool
) -> None:
    def line(number: int, one: str, tag: str) -> str:
        if universal:
            return "\t".join([str(number), one, "_", f"{tag}!", *"______"])
        return f"{one}{mark}{tag}!"

    blocks = [
        "".join(line(n, *both) + "\n" for n, both in enumerate(sentence, start=1))
        for sentence in sentences
    ]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / ("a.conllu" if universal else "a.conll")
        file.write_text("\n".join(blocks))
        read = read_labelled_texts(file, "train")
    assert [[*zip(row.words, row.label or ())] for row in read.rows] == [  # pyright: ignore
        [(one, f"{tag}!") for one, tag in sentence] for sentence in sentences
    ]


BOMBS: dict[str, bytes] = {
    "train.tsv.gz": b"text\tlabel\n" + b"a\tb\n" * 200_000,
    "train.csv.gz": b"text,label\n" + b'"' + b"a\n" * 400_000,
    "train.jsonl.gz": b'{"text": "a", "label": "b"}\n' * 30_000,
    "train.conll.gz": b"a O\n\n" * 150_000,
}


@pytest.mark.parametrize("file", BOMBS)
def test_a_bomb_is_refused_and_named(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking, "FREE", 500_000)
    (tmp_path / file).write_bytes(gzip.compress(BOMBS[file], 9))
    with pytest.raises(DataError, match=rf"{file} takes up .* it looks like a bomb"):
        read_labelled_texts(tmp_path, "train", skip_bad=10_000_000)


@pytest.mark.parametrize("packed", [False, True])
def test_a_cell_of_parquet_that_bursts_is_refused(
    packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking, "FREE", 500_000)
    text = pa.array(["x" * (2 * unpacking.FREE)], pa.large_string())
    path = tmp_path / "train.parquet"
    pq.write_table(pa.table({"text": text, "label": ["a"]}), path, compression="zstd")
    if packed:
        path = path.rename(tmp_path / "train.parquet.gz")
        path.write_bytes(gzip.compress(path.read_bytes()))
    with pytest.raises(DataError, match=r"train\.parquet.* it looks like a bomb"):
        read_labelled_texts(path, "train")
