"""Texts in folders of their classes, as aclImdb and others are given out."""

from pathlib import Path

import pytest

from saccade.data.readers.labelled_texts.read import labelled_text_splits, read_labelled_texts
from saccade.errors import DataError


def written(root: Path, files: dict[str, bytes]) -> Path:
    for name, raw in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw)
    return root


IMDB = {
    "README": b"what it is",
    "imdb.vocab": b"the\n",
    "imdbEr.txt": b"0.5\n",
    "train/urls_pos.txt": b"http://\n",
    "train/pos/0_9.txt": b"A fine film.<br />\nI liked it.",
    "train/pos/1_8.txt": "Très bon.".encode(),
    "train/neg/0_1.txt": b"Dull.",
    "train/neg/notes.md": b"not a text of the data",
    "train/unsup/0_0.txt": b"Nobody said.",
    "test/pos/0_10.txt": b"Good.",
    "test/neg/0_2.txt": b"Bad.",
}


def test_the_films_of_imdb_are_read_as_they_are_given_out(tmp_path: Path) -> None:
    data = written(tmp_path / "aclImdb", IMDB)
    assert labelled_text_splits(data) == ["train", "test"]
    read = read_labelled_texts(data, "train")
    assert [(row.texts, row.label) for row in read.rows] == [
        (("Dull.",), "neg"),
        (("A fine film.<br /> I liked it.",), "pos"),
        (("Très bon.",), "pos"),
    ]
    assert (read.kind, read.labels) == ("classes", ["neg", "pos"])
    assert read.rows[0].where.endswith("train/neg/0_1.txt")
    assert [row.label for row in read_labelled_texts(data, "test").rows] == ["neg", "pos"]


def test_classes_that_lie_right_in_the_data_are_all_train(tmp_path: Path) -> None:
    data = written(tmp_path, {"sport/1.txt": b"a", "art/1.txt": b"b", ".git/1.txt": b"c"})
    assert labelled_text_splits(data) == ["train"]
    assert [row.label for row in read_labelled_texts(data, "train").rows] == ["art", "sport"]


def test_a_table_that_is_named_train_goes_before_folders(tmp_path: Path) -> None:
    files = {"train.csv": b"text,label\na,x\n", "one/1.txt": b"a", "two/1.txt": b"b"}
    assert [row.label for row in read_labelled_texts(written(tmp_path, files), "train").rows] == [
        "x"
    ]


@pytest.mark.parametrize(
    ("raw", "reason"), [(b" \n", "empty: no text in it"), (b"\xff", "not UTF-8")]
)
def test_a_bad_file_is_told_of_and_may_be_left_out(tmp_path: Path, raw: bytes, reason: str) -> None:
    files = {"train/a/1.txt": b"good", "train/b/1.txt": b"good", "train/b/2.txt": raw}
    data = written(tmp_path, files)
    with pytest.raises(DataError, match=reason):
        read_labelled_texts(data, "train")
    assert len(read_labelled_texts(data, "train", skip_bad=1).rows) == 2
