"""Data sets whose first line is a row, read as they are given out."""

import json
from pathlib import Path

import pytest

from saccade.data.readers import TextColumns, labelled_text_splits, read_labelled_texts
from saccade.errors import DataError


def refusal(data: Path, **columns: str) -> str:
    with pytest.raises(DataError) as caught:
        read_labelled_texts(data, "train", TextColumns(**columns))
    return str(caught.value)


def test_fasttext_is_read_by_its_labels(tmp_path: Path) -> None:
    file = tmp_path / "train.txt"
    file.write_text("__label__pos a fine film\n__label__neg a dull one\n")
    read = read_labelled_texts(tmp_path, "train")
    assert [(row.texts, row.label) for row in read.rows] == [
        (("a fine film",), "pos"),
        (("a dull one",), "neg"),
    ]
    file.write_text("__label__a __label__b x y\n__label__a z\n__label__a\n")
    read = read_labelled_texts(tmp_path, "train", skip_bad=1)
    assert (read.kind, read.rows[0].label, read.skipped) == ("labels", ("a", "b"), {"empty": 1})


def test_ag_news_is_read_with_the_names_of_its_classes(tmp_path: Path) -> None:
    rows = '"3","Wall St. Bears","Short-sellers, ""Street""\\nx"\n"1","World news",""\n'
    (tmp_path / "train.csv").write_text(rows)
    read = read_labelled_texts(tmp_path, "train")
    assert [row.label for row in read.rows] == ["3", "1"]
    assert read.rows[0].texts == ('Wall St. Bears Short-sellers, "Street" x',)
    (tmp_path / "classes.txt").write_text("World\nSports\nBusiness\n")
    assert read_labelled_texts(tmp_path, "train").labels == ["Business", "World"]
    (tmp_path / "classes.txt").write_text("World\nSports\n")
    told = refusal(tmp_path)
    assert "train.csv:1: no such class: '3', and classes.txt names 2" in told


def test_columns_of_known_forms_may_be_given_by_their_numbers(tmp_path: Path) -> None:
    file = tmp_path / "train.csv"
    file.write_text('"3","Wall St. Bears","Short-sellers\\nx"\n"1","World news","y"\n')
    (tmp_path / "classes.txt").write_text("World\nSports\nBusiness\n")
    for text, expected in (("2", "Wall St. Bears"), ("3", "Short-sellers x")):
        read = read_labelled_texts(file, "train", TextColumns(text=text, label="1"))
        assert (read.rows[0].texts, read.labels) == ((expected,), ["Business", "World"])
    sts = "main\tMSRvid\t2012\t0001\t{}\ta plane\tone plane\n"
    file.write_text(sts.format("5.000") + sts.format("2.5"))
    read = read_labelled_texts(file, "train", TextColumns(text="6", second="7", label="5"))
    assert [(row.texts, row.label) for row in read.rows] == [
        (("a plane", "one plane"), 5.0),
        (("a plane", "one plane"), 2.5),
    ]


def test_the_sts_benchmark_is_read_as_it_is_given_out(tmp_path: Path) -> None:
    row = 'main\tMSRvid\t2012\t0001\t{}\tA "plane is here.\tA plane.{}\n'
    (tmp_path / "sts-train.csv").write_text(row.format("5.000", "") + row.format(2.5, "\ts\tt"))
    (tmp_path / "sts-dev.csv").write_text(row.format("3.000", ""))
    read = read_labelled_texts(tmp_path, "train")
    assert read.kind == "number"
    assert [row.label for row in read.rows] == [5.0, 2.5]
    assert {row.texts for row in read.rows} == {('A "plane is here.', "A plane.")}
    assert labelled_text_splits(tmp_path) == ["train", "valid"]


@pytest.mark.parametrize("name", ["sms.tsv", "sms.csv", "SMSSpamCollection"])
def test_columns_without_names_are_given_by_their_numbers(tmp_path: Path, name: str) -> None:
    file, mark = tmp_path / name, "," if name.endswith("csv") else "\t"
    file.write_text(f"ham{mark}Go there\nspam{mark}Free entry\n")
    assert refusal(file).endswith(
        "it has 'ham', 'Go there'; name yours with --text (by its number, as --text 2 --label 1, "
        "if that line is a row)"
    )
    read = read_labelled_texts(file, "train", TextColumns(text="2", label="1"))
    assert [(row.texts[0], row.label) for row in read.rows] == [
        ("Go there", "ham"),
        ("Free entry", "spam"),
    ]


def test_snli_and_multinli_are_read_as_they_are_given_out(tmp_path: Path) -> None:
    row = {"gold_label": "neutral", "sentence1": "a", "sentence2": "b"}
    lines = f"{json.dumps(row)}\n{json.dumps({**row, 'gold_label': '-'})}\n"
    for name in ("snli_1.0_train", "snli_1.0_dev"):
        (tmp_path / f"{name}.jsonl").write_text(lines)
        (tmp_path / f"{name}.txt").write_text("gold_label\tsentence1\tsentence2\nneutral\ta\tb\n")
    read = read_labelled_texts(tmp_path, "train")
    assert (len(read.rows), read.passed_over) == (1, {"no gold label": 1})
    other = tmp_path / "multinli_1.0"
    other.mkdir()
    for name in ("train", "dev_matched", "dev_mismatched"):
        (other / f"multinli_1.0_{name}.jsonl").write_text(lines)
    assert labelled_text_splits(other) == ["train", "valid", "valid_mismatched"]
    assert read_labelled_texts(other, "train").summary().startswith("MNLI: 1 pair of 1 class")


def test_a_folder_of_configurations_names_one(tmp_path: Path) -> None:
    (tmp_path / "plain_text").mkdir()
    (tmp_path / "plain_text" / "train.csv").write_text("text,label\na,b\n")
    assert refusal(tmp_path).endswith(f", or the folder below: --data {tmp_path}/plain_text")
