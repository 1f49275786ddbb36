"""Tables of texts with labels: columns by usual or given names, and what labels are."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from saccade.data.readers import (
    LabelledTextsRead,
    TextColumns,
    labelled_text_splits,
    read_labelled_texts,
)
from saccade.errors import ConfigError, DataError


def write(folder: Path, name: str, *rows: str) -> Path:
    (folder / name).write_text("".join(f"{row}\n" for row in rows))
    return folder / name


def labels(read: LabelledTextsRead) -> list[object]:
    return [row.label for row in read.rows]


COLUMNS = {
    "text,label": ("text",),
    "id,Sentence,Label": ("Sentence",),
    "sentence1,sentence2,score": ("sentence1", "sentence2"),
    "label,premise,hypothesis": ("premise", "hypothesis"),
    "question,sentence,label": ("question", "sentence"),
    "review,title,sentiment": ("review",),
    "text;label": ("text",),
    "text\tlabel": ("text",),
}


@pytest.mark.parametrize("header", COLUMNS)
def test_columns_are_found_by_their_usual_names(header: str, tmp_path: Path) -> None:
    mark = next((mark for mark in ";\t" if mark in header), ",")
    names = header.split(mark)
    data = write(tmp_path, "a.csv", header, mark.join(f"<{name}>" for name in names))
    read = read_labelled_texts(data, "train")
    assert read.rows[0].texts == tuple(f"<{name}>" for name in COLUMNS[header])
    said = next(n for n in names if n.lower() in ("label", "score", "sentiment"))
    assert read.rows[0].label == f"<{said}>"


def test_columns_of_other_names_are_named(tmp_path: Path) -> None:
    data = write(tmp_path, "a.tsv", "text\tA\tB\tC", "x\ta\tb\tc")
    with pytest.raises(DataError, match=r"no column for the label in its first line; it has 'A', "):
        read_labelled_texts(data, "train")
    with pytest.raises(DataError, match=r"name yours with --label$"):
        read_labelled_texts(data, "train")
    read = read_labelled_texts(data, "train", TextColumns(text="A", label="C"))
    assert read.rows[0][:2] == (("a",), "c")
    read = read_labelled_texts(data, "train", TextColumns(text="B", second="A", label="C"))
    assert read.rows[0].texts == ("b", "a")
    for columns, told in {
        TextColumns(text="D", label="C"): "has no column 'D'.* name yours with --text$",
        TextColumns(text="A", second="D", label="C"): "column 'D'.* with --second$",
        TextColumns(text="A", label="D"): "has no column 'D'.* name yours with --label$",
    }.items():
        with pytest.raises(DataError, match=told):
            read_labelled_texts(data, "train", columns)


def test_columns_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ConfigError, match="task='glu' is neither auto, nor one of classes, number"):
        TextColumns(task="glu")
    with pytest.raises(ConfigError, match="second='b' without the first text; name it as well"):
        TextColumns(second="b")


KINDS: dict[tuple[str, ...], tuple[str, list[object]]] = {
    ("a", "b", "a"): ("classes", ["a", "b", "a"]),
    ("1", "10", "-1"): ("classes", ["1", "10", "-1"]),
    ("1", "2.0", "3"): ("classes", ["1", "2.0", "3"]),
    ("1", "2.5", "-3e-1"): ("number", [1.0, 2.5, -0.3]),
    ("1.5", "none"): ("classes", ["1.5", "none"]),
    ("1.5", "nan"): ("classes", ["1.5", "nan"]),
    ("1.5", "1_0"): ("classes", ["1.5", "1_0"]),
    ("a|b", "a"): ("labels", [("a", "b"), ("a",)]),
    ('["b", "a"]', "[]"): ("labels", [("a", "b"), ()]),
    ("[", "b"): ("classes", ["[", "b"]),
}


@pytest.mark.parametrize("cells", KINDS)
def test_what_labels_are_follows_from_all_of_them(cells: tuple[str, ...], tmp_path: Path) -> None:
    data = write(tmp_path, "a.tsv", "text\tlabel", *(f"t\t{cell}" for cell in cells))
    read = read_labelled_texts(data, "train")
    assert (read.kind, labels(read)) == KINDS[cells]


def test_what_labels_are_can_be_said(tmp_path: Path) -> None:
    data = write(tmp_path, "a.tsv", "text\tlabel", "t\t1", "t\t2.5", "t\t3|4")
    classes = read_labelled_texts(data, "train", TextColumns(task="classes"))
    assert (classes.kind, labels(classes)) == ("classes", ["1", "2.5", "3|4"])
    several = read_labelled_texts(data, "train", TextColumns(task="labels"))
    assert (several.kind, labels(several)) == ("labels", [("1",), ("2.5",), ("3", "4")])
    with pytest.raises(DataError, match=r"a.tsv:4: not a number: 'label' is '3\|4'"):
        read_labelled_texts(data, "train", TextColumns(task="number"))
    number = read_labelled_texts(data, "train", TextColumns(task="number"), skip_bad=1)
    assert labels(number) == [1.0, 2.5]
    semicolons = TextColumns(task="labels", separator=".")
    assert labels(read_labelled_texts(data, "train", semicolons))[1] == ("2", "5")


def test_labels_of_json_are_strings_numbers_and_lists(tmp_path: Path) -> None:
    rows = [{"text": "t", "label": label} for label in ("a", 3, True, 2.0)]
    data = write(tmp_path, "a.jsonl", *map(json.dumps, rows))
    assert labels(read_labelled_texts(data, "train")) == ["a", "3", "true", "2"]
    rows.append({"text": "t", "label": ["a", 7]})
    data = write(tmp_path, "a.jsonl", *map(json.dumps, rows))
    assert labels(read_labelled_texts(data, "train"))[-1] == ("7", "a")
    with pytest.raises(DataError, match=r"a\.jsonl:5: not one label: 'label' has 2"):
        read_labelled_texts(data, "train", TextColumns(task="classes"))


def test_names_of_classes_in_parquet_are_used(tmp_path: Path) -> None:
    features = {"label": {"names": ["bad", "good"], "_type": "ClassLabel"}}
    about = {"huggingface": json.dumps({"info": {"features": features}})}
    table = pa.table({"text": ["a", "b", "c"], "label": [1, 0, 1], "image": [b"x"] * 3})
    for part, rows in (("00000", table[:2]), ("00001", table[2:])):
        path = tmp_path / f"train-{part}-of-00002.parquet"
        pq.write_table(rows.replace_schema_metadata(about), path)
    secret = pa.table({"text": ["d"], "label": [-1]}).replace_schema_metadata(about)
    pq.write_table(secret, tmp_path / "test-00000-of-00001.parquet")
    assert labelled_text_splits(tmp_path) == ["train", "test"]
    assert labels(read_labelled_texts(tmp_path, "train")) == ["good", "bad", "good"]
    assert labels(read_labelled_texts(tmp_path, "test")) == [None]


def test_words_and_tags_may_be_lists(tmp_path: Path) -> None:
    rows = [
        {"tokens": ["We", "eat"], "ner_tags": ["O", "B-X"]},
        {"tokens": ["New York"], "ner_tags": ["B-X"]},
    ]
    data = write(tmp_path, "train.jsonl", *map(json.dumps, rows))
    write(tmp_path, "test.jsonl", json.dumps({"tokens": ["Eat"]}))
    read = read_labelled_texts(data.parent, "train")
    assert read.kind == "tags"
    assert read.rows[0][:3] == (("We eat",), ("O", "B-X"), ("We", "eat"))
    assert read.rows[1].words == ("New York",)
    assert read.summary() == "2 sentences with 3 words of 2 tags from train.jsonl"
    assert read_labelled_texts(data.parent, "test").rows[0][1:3] == (None, ("Eat",))


BAD: list[tuple[dict[str, object], str]] = [
    ({"tokens": ["a", "b"], "tags": ["O"]}, "not a tag for each word: 2 words and 1 tags"),
    ({"tokens": [], "tags": []}, "empty"),
    ({"tokens": ["a", " "], "tags": ["O", "O"]}, "empty"),
    ({"tokens": "a", "tags": ["O"]}, "wrong type: 'tokens' is a string, not a list"),
    ({"tokens": [1], "tags": ["O"]}, "wrong type: 'tokens' is a number, not a string"),
    ({"tokens": ["a"], "tags": [["O", "P"]]}, "not one label: 'tags' has 2"),
    ({"tokens": ["a"], "tags": [None]}, "no label: 'tags' holds none"),
    ({"tokens": ["a"]}, "missing key: no 'tags'; it has 'tokens'"),
]


def test_bad_rows_of_tags_are_told(tmp_path: Path) -> None:
    good: dict[str, object] = {"tokens": ["a"], "tags": ["O"]}
    data = write(tmp_path, "a.jsonl", *(json.dumps(row) for row in [good, *(b for b, _ in BAD)]))
    read = read_labelled_texts(data, "train", skip_bad=len(BAD))
    assert [(p.line, p.reason) for p in read.problems] == [
        (number, reason) for number, (_, reason) in enumerate(BAD, start=2)
    ]


def test_bad_rows_are_told_by_file_and_line(tmp_path: Path) -> None:
    raw = b"sentence1\tsentence2\tlabel\na\tb\tx\n\na\tb\n \tb\tx\n \t \tx\na\tb\t \na\tb\xff\tx\n"
    (tmp_path / "a.tsv").write_bytes(raw)
    read = read_labelled_texts(tmp_path / "a.tsv", "train", skip_bad=9)
    assert [str(problem).removeprefix(f"{tmp_path}/") for problem in read.problems] == [
        "a.tsv:3: empty",
        "a.tsv:4: not 3 columns: 2 found",
        "a.tsv:5: one side empty: 'sentence1'",
        "a.tsv:6: empty",
        "a.tsv:7: no label: 'label' is empty",
        "a.tsv:8: not UTF-8: byte 0xff at offset 3 of the line",
    ]
    with pytest.raises(DataError, match="pass --skip-bad 6 to leave them out"):
        read_labelled_texts(tmp_path / "a.tsv", "train", skip_bad=5)


def test_a_cell_of_csv_may_hold_lines_marks_and_commas(tmp_path: Path) -> None:
    data = write(tmp_path, "a.csv", "text,label", '"a, ""b""', "", 'c",x', "d,y", '"e,y', "f,z")
    read = read_labelled_texts(data, "train", skip_bad=1)
    assert [(r.texts[0], r.label, r.where.rpartition(":")[2]) for r in read.rows] == [
        ('a, "b"\n\nc', "x", "2"),
        ("d", "y", "5"),
        ("f", "z", "7"),
    ]
    assert [(problem.line, problem.kind) for problem in read.problems] == [(6, "not CSV")]


def test_test_may_lack_labels_and_others_may_not(tmp_path: Path) -> None:
    for split in ("train", "valid", "test"):
        write(tmp_path, f"{split}.csv", "text", "we eat")
    assert labels(read_labelled_texts(tmp_path, "test")) == [None]
    assert read_labelled_texts(tmp_path, "test").summary() == "1 text without labels from test.csv"
    for split in ("train", "valid"):
        with pytest.raises(DataError, match="has no column for the label"):
            read_labelled_texts(tmp_path, split)
    assert labels(read_labelled_texts(tmp_path, "train", labels_needed=False)) == [None]
    with pytest.raises(DataError, match="has no column for the label"):
        read_labelled_texts(tmp_path, "test", labels_needed=True)


def test_a_class_minus_one_of_ones_own_test_is_kept(tmp_path: Path) -> None:
    write(tmp_path, "test.csv", "text,label", "we eat,-1")
    assert labels(read_labelled_texts(tmp_path, "test")) == ["-1"]


def test_duplicates_are_counted_and_kept(tmp_path: Path) -> None:
    data = write(tmp_path, "a.csv", "text,label", "a,x", "a,x", "a,y")
    told = read_labelled_texts(data, "train").summary()
    assert told == "3 texts of 2 classes from a.csv; 1 duplicate kept"
