"""Whatever is wrong with a row is told with its place, its rule and the way out."""

from pathlib import Path
from typing import Any

import pytest

from saccade.data.readers import QUESTIONS, asked_splits, read_asked
from saccade.errors import DataError
from tests.data.asked_made import FORMS, PICTURES, WRITERS, Record, jsonl
from tests.data.images_made import Files, in_folder, in_zip, rows

QUESTION: Record = {"image": "a.png", "question": "what is it?", "answers": ["dog"]}
PHRASE: Record = {"image": "a.png", "phrase": "it", "box": [4, 2, 20, 10]}
CHOICE: Record = {"image": "a.png", "sentences": ["x", "y"], "right": 1}
GOOD = {"questions": QUESTION, "referring": PHRASE, "choices": CHOICE}


def less(record: Record, *keys: str) -> Record:
    return {key: value for key, value in record.items() if key not in keys}


PROBLEMS: dict[str, tuple[str, Any, str]] = {
    "no image": (
        "questions",
        less(QUESTION, "image"),
        "missing key: no 'image'; it has 'question', 'answers'",
    ),
    "an image of null": (
        "questions",
        {**QUESTION, "image": None},
        "missing key: no 'image'; it has 'question', 'answers'",
    ),
    "an empty image": (
        "questions",
        {**QUESTION, "image": " "},
        "missing image: 'image' is empty; name the image's file",
    ),
    "an image of a number": (
        "questions",
        {**QUESTION, "image": 7},
        "missing image: '7' is not in ",
    ),
    "a lost image": ("questions", {**QUESTION, "image": "x.png"}, "missing image: 'x.png' is not"),
    "an image elsewhere": (
        "questions",
        {**QUESTION, "image": "../a.png"},
        "outside the data: '../a.png' is not a plain name below the data's folder",
    ),
    "no question": (
        "questions",
        less(QUESTION, "question"),
        "missing key: no 'question'; it has 'image', 'answers'",
    ),
    "an empty question": (
        "questions",
        {**QUESTION, "question": " \n"},
        "empty: 'question' has nothing to read; write it, or take the row away",
    ),
    "a question of a list": (
        "questions",
        {**QUESTION, "question": ["x"]},
        "wrong type: 'question' is a list, not a string",
    ),
    "half a character": (
        "questions",
        {**QUESTION, "question": "\ud800"},
        "lone surrogate: in 'question', half of a character",
    ),
    "no answers": (
        "questions",
        less(QUESTION, "answers"),
        "no answers: neither 'answers' nor 'answer'; it has 'image', 'question'; give one",
    ),
    "an empty list of answers": (
        "questions",
        {**QUESTION, "answers": []},
        "no answers: 'answers' is an empty list; give at least one",
    ),
    "an answer of a number": (
        "questions",
        {**QUESTION, "answers": ["two", 2]},
        "wrong type: 'answers' is a number, not a string",
    ),
    "an answer of no text": (
        "questions",
        {**QUESTION, "answers": [{"text": "x"}]},
        "wrong type: 'answers' is null, not a string",
    ),
    "an empty answer": (
        "questions",
        {**less(QUESTION, "answers"), "answer": ""},
        "empty: 'answer' has nothing to read; write it, or take the row away",
    ),
    "no phrase": (
        "referring",
        less(PHRASE, "phrase"),
        "missing key: no 'phrase'; it has 'image', 'box'",
    ),
    "an empty phrase": (
        "referring",
        {**PHRASE, "phrase": ""},
        "empty: 'phrase' has nothing to read; write it, or take the row away",
    ),
    "no box": ("referring", less(PHRASE, "box"), "missing key: no 'box'; it has 'image', 'phrase'"),
    "a box of three": (
        "referring",
        {**PHRASE, "box": [1, 2, 3]},
        "wrong type: 'box' is a list of 3, not a list of four numbers",
    ),
    "a box of words": (
        "referring",
        {**PHRASE, "box": [1, 2, "x", 3]},
        "not a number: 'box' is 'x'; give a finite number",
    ),
    "a box outside": (
        "referring",
        {**PHRASE, "box": [4, 2, 60, 10]},
        "outside the image: [4, 2, 60, 10] reaches out of 40 × 20; cut it at the edge",
    ),
    "an empty box": (
        "referring",
        {**PHRASE, "box": [4, 2, 4, 10]},
        "empty box: [4, 2, 4, 10] has no area; draw it again, or take it away",
    ),
    "a swapped box": (
        "referring",
        {**PHRASE, "box": [20, 2, 4, 10]},
        "swapped corners: [20, 2, 4, 10] ends before it begins; write left, top, right, bottom",
    ),
    "shares": (
        "referring",
        {**PHRASE, "box": [0.1, 0.1, 0.5, 0.5]},
        "shares for pixels: [0.1, 0.1, 0.5, 0.5] lies within 1 pixel of 40 × 20; multiply by the "
        "image's width and height",
    ),
    "another size": (
        "referring",
        {**PHRASE, "width": 400, "height": 200},
        "another size: 400 × 200 is declared, the upright image has 40 × 20; give the image that",
    ),
    "boxes that are none": (
        "questions",
        {**QUESTION, "boxes": "x"},
        "wrong type: 'boxes' is a string, not a list of boxes",
    ),
    "no boxes": (
        "questions",
        {**QUESTION, "boxes": []},
        "no boxes: 'boxes' is an empty list; give some, or leave it out",
    ),
    "a bad one among boxes": (
        "choices",
        {**CHOICE, "boxes": [[0, 0, 9, 9], [9, 9, 0, 0]]},
        "swapped corners: box 2: [9, 9, 0, 0] ends before it begins; write left, top, right, bot",
    ),
    "no sentences": (
        "choices",
        less(CHOICE, "sentences"),
        "missing key: no 'sentences'; it has 'image', 'right'",
    ),
    "one sentence": (
        "choices",
        {**CHOICE, "sentences": ["x"]},
        "fewer than two sentences: 'sentences' has 1; give those to choose from",
    ),
    "an empty sentence": (
        "choices",
        {**CHOICE, "sentences": ["x", ""]},
        "empty: 'sentences' has nothing to read; write it, or take the row away",
    ),
    "no right": (
        "choices",
        less(CHOICE, "right"),
        "missing key: no 'right'; it has 'image', 'sentences'",
    ),
    "right beyond": (
        "choices",
        {**CHOICE, "right": 2},
        "no such sentence: 'right' is 2, and the 2 sentences have the numbers 0 to 1; give one of",
    ),
    "right below": (
        "choices",
        {**CHOICE, "right": -1},
        "no such sentence: 'right' is -1, and the 2 sentences have the numbers 0 to 1; give one",
    ),
    "right that is a word": (
        "choices",
        {**CHOICE, "right": "x"},
        "wrong type: 'right' is a string, not a whole number; count from 0",
    ),
    "right that is true": (
        "choices",
        {**CHOICE, "right": True},
        "wrong type: 'right' is a boolean, not a whole number; count from 0",
    ),
    "a fraction": (
        "choices",
        {**CHOICE, "right": 0.5},
        "wrong type: 'right' is a number, not a whole number; count from 0",
    ),
    "a row that is a list": (
        "choices",
        [1],
        "wrong type: the row is a list, not an object with keys",
    ),
    "a row without keys": ("choices", {}, "missing key: no 'image'; it has no keys"),
}


@pytest.mark.parametrize("what", PROBLEMS)
def test_what_is_wrong_with_a_row_is_told_with_its_place(what: str, tmp_path: Path) -> None:
    name, bad, told = PROBLEMS[what]
    form = FORMS[name][0]
    data = in_folder(tmp_path, {**PICTURES, "train.jsonl": rows(GOOD[name], bad)})
    read = read_asked(data, "train", form, skip_bad=1)
    (problem,) = read.problems
    assert problem.reason.startswith(told)
    assert (problem.file, problem.line) == (str(tmp_path / "train.jsonl"), 2)
    assert len(read.items) == len(read.images) == 1
    with pytest.raises(DataError) as raised:
        read_asked(data, "train", form)
    assert f"{tmp_path}/train.jsonl:2: {told}" in str(raised.value)
    assert "mend them, or pass --skip-bad 1 to leave them out" in str(raised.value)


def test_other_boxes_for_the_same_image_are_a_bad_row(tmp_path: Path) -> None:
    boxes = [[[0, 0, 20, 10]], [[0, 0, 20, 10]], [[0, 0, 20, 11]]]
    records = [{**QUESTION, "boxes": one} for one in boxes]
    lost: Record = {**QUESTION, "question": "", "boxes": [[1, 1, 2, 2]]}  # counts for nothing
    data = in_folder(tmp_path, {**PICTURES, "train.jsonl": rows(lost, *records)})
    read = read_asked(data, "train", QUESTIONS, skip_bad=2)
    assert [problem.line for problem in read.problems] == [1, 4]
    assert read.problems[1].reason == (
        "other boxes: 'boxes' differ from those of the same image at train.jsonl:2; give an image "
        "one list, or say it once"
    )
    assert read.regions == [((0.0, 0.0, 0.5, 0.5),)]


@pytest.mark.parametrize("name", FORMS)
def test_an_image_of_bad_rows_only_is_not_there(name: str, tmp_path: Path) -> None:
    bad = {**GOOD[name], "image": "b.png", "boxes": []}
    data = in_folder(tmp_path, {**PICTURES, "train.jsonl": rows(bad, GOOD[name])})
    read = read_asked(data, "train", FORMS[name][0], skip_bad=1)
    assert [Path(row.image.name).name for row in read.images] == ["a.png"]
    assert [item.image for item in read.items] == [0]


@pytest.mark.parametrize("form", ["csv", "tsv"])
def test_cells_are_told_as_keys_are(form: str, tmp_path: Path) -> None:
    records = [QUESTION, {**QUESTION, "question": ""}, {**QUESTION, "answers": "[2]"}]
    cells = [*records, {**QUESTION, "answers": '["x'}, {**QUESTION, "answers": ""}]
    data = in_folder(tmp_path, {**PICTURES, f"train.{form}": WRITERS[form](cells)})
    read = read_asked(data, "train", QUESTIONS, skip_bad=4)
    assert [(problem.line, problem.kind) for problem in read.problems] == [
        (3, "empty"),
        (4, "wrong type"),
        (5, "not JSON"),
        (6, "no answers"),
    ]


def test_another_form_of_rows_is_told(tmp_path: Path) -> None:
    data = in_folder(tmp_path, {**PICTURES, "train.jsonl": rows(PHRASE)})
    with pytest.raises(DataError) as raised:
        read_asked(data, "train", QUESTIONS, skip_bad=9)
    assert "missing key: no 'question'; it has 'image', 'phrase', 'box'" in str(raised.value)
    assert "not one row is good: is this the data, and the form of it" in str(raised.value)


ROWS = jsonl([QUESTION])
REFUSED: dict[str, tuple[Files, str, str, str]] = {
    "nothing": ({"x.txt": b""}, "", "train", "has no questions: no .jsonl, .csv, .tsv, .parquet"),
    "images only": ({"a/x": b"", "b/y": b""}, "", "train", "file; it holds a, b"),
    "another file": (
        {"x.txt": b"a"},
        "x.txt",
        "train",
        "x.txt: questions are read from a folder, .tar, .zip or .jsonl, .csv, .tsv,",
    ),
    "lost": ({}, "x.jsonl", "train", "x.jsonl does not exist; check the path"),
    "a lost folder": ({}, "x", "train", "x does not exist"),
    "no such split": (
        {"train.jsonl": ROWS},
        "",
        "test",
        "has no 'test' split with questions: no test in .jsonl, .csv, .tsv, .parquet, .json; it ",
    ),
    "a single file is train": (
        {"x.jsonl": ROWS},
        "x.jsonl",
        "valid",
        "x.jsonl is named after no split, so it is all train: there is no 'valid' in it; give a",
    ),
    "several for a split": (
        {"train.jsonl": ROWS, "train.csv": ROWS},
        "",
        "train",
        "has train.csv, train.jsonl for one split; keep one of them, or give one file",
    ),
    "several of no split": (
        {"a.jsonl": ROWS, "b.jsonl": ROWS},
        "",
        "train",
        "has a.jsonl, b.jsonl, named after no split; keep one of them, or give one file",
    ),
    "several tests": (
        {"test_a.jsonl": ROWS, "test_b.jsonl": ROWS},
        "",
        "test",
        "has several files for 'test': test_a, test_b; pass the one you mean as the split",
    ),
    "a pickle": (
        {"refs(unc).p": b"", "instances.json": b"{}", "images/a.png": b""},
        "",
        "train",
        "has refs(unc).p, a pickle, which may run code when it is opened, so it is not read; write "
        "train.jsonl from it once, as docs/data.md shows",
    ),
    "only another form": (
        {"train_choices.jsonl": ROWS, "x/a.png": b""},
        "",
        "train",
        "has no questions: no .jsonl, .csv, .tsv, .parquet, .json file; it holds ",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_such_data_is_refused(what: str, tmp_path: Path) -> None:
    files, name, split, told = REFUSED[what]
    data = in_folder(tmp_path, files)
    with pytest.raises(DataError) as raised:
        read_asked(data / name if name else data, split, QUESTIONS)
    assert told in str(raised.value)
    assert "\n" not in str(raised.value)


def test_parquet_in_an_archive_is_refused(tmp_path: Path) -> None:
    data = in_zip(tmp_path / "x.zip", {"train.parquet": WRITERS["parquet"]([QUESTION])})
    assert asked_splits(data, QUESTIONS) == ["train"]
    with pytest.raises(DataError, match=r"train\.parquet is packed; unpack it, and give the fol"):
        read_asked(data, "train", QUESTIONS)
