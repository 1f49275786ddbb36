"""Tables with first lines that name columns and ones that are rows; lists of JSON; texts of CSV."""

import json

import pytest

from saccade.data.readers import read_pairs, read_texts
from saccade.data.readers.text.read import text_rows
from tests.data.readers.text.test_read import Write, pairs, refusal, write

__all__ = ["write"]  # a fixture


@pytest.mark.parametrize(
    "header",
    [
        "en\tde",
        "id\tEnglish\tGerman",
        "english_sentence\tgerman_sentence",
        "n\ten_XX\tdeu",
        "en\tde-Latn-DE",
    ],
)
def test_a_header_of_languages_is_no_pair(write: Write, header: str) -> None:
    row = "7\ta\tb" if header.count("\t") > 1 else "a\tb"
    folder = write(train_tsv=f"{header}\n{row}\n".encode())
    assert pairs(folder).pairs == [("a", "b")]
    first, second = header.split("\t")[-2:]
    assert refusal(lambda: read_pairs(folder, "train")) == (
        f"{folder}/train.tsv:1 has {first!r}, {second!r}: say which is the source: "
        f"--source {first} --target {second}"
    )
    assert refusal(lambda: read_pairs(folder, "train", source="en", target="fr")).endswith(
        f"and not both 'en' and 'fr'; --source {first} --target {second} would name two of them"
    )


@pytest.mark.parametrize("header", ["Source\tTarget", "src\ttgt", "note\tsrc\ttrg"])
def test_a_header_that_tells_the_order_is_read(write: Write, header: str) -> None:
    """Also where endings of parallel files were asked for, which other splits have."""
    row = "7\ta\tb" if header.count("\t") > 1 else "a\tb"
    folder = write(train_tsv=f"{header}\n{row}\n".encode())
    assert read_pairs(folder, "train").pairs == pairs(folder).pairs == [("a", "b")]


@pytest.mark.parametrize(
    ("asked", "header"),
    [
        (("inptu", "output"), "input,output"),
        (("en", "de"), "question,answer"),
        (("text", "target"), "source,target"),
        (("3", "2"), "source,target"),
    ],
)
@pytest.mark.parametrize("form", ["tsv", "csv", "jsonl"])
def test_names_that_are_not_found_are_refused_and_not_passed_over(
    write: Write, asked: tuple[str, str], header: str, form: str
) -> None:
    first, second = header.split(",")
    rows = [["note", first, second], ["7", "a", "b"]]
    if form == "jsonl":
        folder = write(train_jsonl=json.dumps(dict(zip(*rows))).encode())
        told = f"1: missing key: no {asked[0]!r}"
    else:
        mark = "\t" if form == "tsv" else ","
        raw = "".join(f"{mark.join(row)}\n" for row in rows).encode()
        folder = write(train_tsv=raw) if form == "tsv" else write(train_csv=raw)
        told = (
            f"{folder}/train.{form}:1 has the columns 'note', {first!r}, {second!r}, and not both "
            f"{asked[0]!r} and {asked[1]!r}; --source {first} --target {second} would name two of "
            "them"
        )
    assert told in refusal(lambda: read_pairs(folder, "train", source=asked[0], target=asked[1]))
    assert read_pairs(folder, "train").pairs == [("a", "b")]


@pytest.mark.parametrize(
    "row", ["a\tb\tCC-BY 2.0 (France) Attribution: tatoeba.org #1", "12\ta\t345\tb"]
)
def test_tsv_of_tatoeba_is_read_as_it_is_given_out(write: Write, row: str) -> None:
    assert read_pairs(write(train_tsv=f"{row}\n{row}\n".encode()), "train").pairs[0] == ("a", "b")
    assert read_pairs(write(fra_txt=f"{row}\n".encode() * 2) / "fra.txt", "train").pairs[0] == (
        "a",
        "b",
    )


def test_columns_without_names_are_given_by_their_numbers(write: Write) -> None:
    folder = write(train_tsv=b"x\ta\tb\n" * 2)
    assert read_pairs(folder, "train", source="2", target="3").pairs[0] == ("a", "b")
    assert refusal(lambda: read_pairs(folder, "train")) == (
        f"{folder}/train.tsv:1 does not say which columns are source and target: it has 'x', 'a', "
        "'b'; give their numbers, such as --source 1 --target 2, or their names in a first line"
    )
    assert refusal(lambda: read_pairs(folder, "train", source="2", target="4")).endswith(
        "train.tsv has 3 columns; --source and --target are their numbers, from 1 to 3"
    )


def test_pairs_of_csv_are_read_by_their_names_or_numbers(write: Write) -> None:
    folder = write(
        train_csv=b'id,English words/sentences,French words/sentences\n7,"a, b","c\nd"\n'
    )
    assert read_pairs(folder, "train", source="en", target="fr").pairs == [("a, b", "c\nd")]
    assert refusal(lambda: read_pairs(folder, "train")).endswith(
        "--source 'English words/sentences' --target 'French words/sentences'"
    )
    folder = write(train_csv=b'"a, b",c\nd,e\n')
    assert read_pairs(folder, "train", source="1", target="2").pairs == [("a, b", "c"), ("d", "e")]
    assert "train.csv:1 does not say which columns are" in refusal(
        lambda: read_pairs(folder, "train")
    )


def test_json_that_is_a_list_or_lines_is_read(write: Write) -> None:
    folder = write(train_json=b'[{"en": "a", "de": "b"},\n {"en": "c"}]')
    read = pairs(folder, skip_bad=1)
    assert read.pairs == [("a", "b")]
    assert str(read.problems[0]).startswith(f"{folder}/train.json:2: missing key: no 'de'")
    assert pairs(write(train_json=b'{"en": "a", "de": "b"}\n')).pairs == [("a", "b")]
    assert read_texts(write(train_json=b'[{"text": "a"}]'), "train").texts == ["a"]
    told = refusal(lambda: pairs(write(train_json=b"[1,")))
    assert told.startswith(f"{folder}/train.json: not JSON: Expecting value at column 4; write it")


def test_texts_of_csv_are_read_by_the_name_of_a_column(write: Write) -> None:
    folder = write(train_csv=b'id,text\n1,"a, b"\n2,c\n')
    assert read_texts(folder, "train").texts == ["a, b", "c"]
    assert refusal(lambda: read_texts(folder, "train", field="body")) == (
        f"{folder}/train.csv:1 names no column 'body'; it has 'id', 'text'; name yours with --field"
    )
    assert refusal(lambda: list(text_rows(folder / "train.csv", field="body"))).endswith(
        "names no column 'body'; it has 'id', 'text'; give one of them that name"
    )
