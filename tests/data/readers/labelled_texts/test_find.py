"""Which files hold which split of texts with labels."""

from pathlib import Path

import pytest

from saccade.data.readers import labelled_text_splits, read_labelled_texts
from saccade.errors import DataError

ROWS = "text,label\nwe eat,x\n"


def files(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).write_text(ROWS)
    return folder


def test_splits_are_named_as_everywhere(tmp_path: Path) -> None:
    files(tmp_path, "my_train.csv", "dev.csv", "test.CSV", "notes.csv", ".train.csv")
    assert labelled_text_splits(tmp_path) == ["train", "valid", "test"]
    assert [len(read_labelled_texts(tmp_path, s).rows) for s in ("train", "dev", "notes")] == [
        1
    ] * 3


def test_a_single_file_is_train(tmp_path: Path) -> None:
    data = files(tmp_path, "dev.csv") / "dev.csv"
    assert labelled_text_splits(data) == ["train"]
    assert len(read_labelled_texts(data, "train").rows) == 1
    with pytest.raises(DataError, match="is a single file, so it is all train: there is no 'test'"):
        read_labelled_texts(data, "test")


REFUSED = {
    "nothing": (
        (),
        "",
        "has no 'train' split: no train file ending in .tsv, .csv, .* holds nothing",
    ),
    "no train": (
        ("dev.csv",),
        "",
        "it holds dev.csv; name a file so, or give one file as the data",
    ),
    "two": (("train.csv", "train.tsv"), "", "has train.csv, train.tsv for one split; keep one"),
    "several": (
        ("a_train.csv", "b_train.csv"),
        "",
        "has several files for 'train': a_train, b_train; to train, call the one you mean 'train'",
    ),
    "a document": (("a.docx",), "a.docx", "texts with labels are not read from .docx; give .tsv,"),
    "no file": ((), "a.csv", "a.csv does not exist; check the path"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_found_is_refused_in_one_line(what: str, tmp_path: Path) -> None:
    names, file, told = REFUSED[what]
    with pytest.raises(DataError, match=told) as raised:
        read_labelled_texts(files(tmp_path, *names) / file, "train")
    assert "\n" not in str(raised.value)


def test_a_txt_file_with_named_columns_is_a_table_and_one_of_words_is_not(tmp_path: Path) -> None:
    (tmp_path / "table.txt").write_text("text\tlabel\nwe eat\tx\n")
    (tmp_path / "words.txt").write_text("text\tNN\nof\tIN\n\nmine\tPRP\n")
    table, words = (read_labelled_texts(tmp_path / f"{n}.txt", "train") for n in ("table", "words"))
    assert (table.kind, table.rows[0].texts) == ("classes", ("we eat",))
    assert (words.kind, words.rows[0].words) == ("tags", ("text", "of"))


def test_an_empty_file_a_folder_and_a_header_alone_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").touch()
    (tmp_path / "b.csv").write_text("text,label\n")
    (tmp_path / "c.csv").write_bytes(b"\xff\n")
    (tmp_path / "train.csv").mkdir()
    for data, told in {
        "a.csv": "a.csv is empty: it holds no lines",
        "b.csv": "b.csv: no rows at all",
        "c.csv": "c.csv:1: not UTF-8: .*; the first line must name the columns",
        "": "train.csv is a directory where a file should be",
    }.items():
        with pytest.raises(DataError, match=told):
            read_labelled_texts(tmp_path / data, "train")
