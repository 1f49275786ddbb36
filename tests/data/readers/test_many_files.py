"""Patterns and parts: every file that is meant, in order, and no other."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.data.readers import read_labelled_texts, read_texts
from saccade.data.readers.many_files import matching_files, shown_parts, split_of_part
from saccade.errors import DataError


def made(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).write_text(f"{name}\n")


def test_braces_and_stars_name_files_in_natural_order(tmp_path: Path) -> None:
    made(tmp_path, *(f"a-{n}.txt" for n in range(12)), "b-0.txt", "other")
    names = [path.name for path in matching_files(tmp_path / "a-{8..11}.txt")]
    assert names == ["a-8.txt", "a-9.txt", "a-10.txt", "a-11.txt"]
    assert len(matching_files(tmp_path / "*.txt")) == 13
    assert [path.name for path in matching_files(tmp_path / "{b,a}-0.txt")] == [
        "a-0.txt",
        "b-0.txt",
    ]
    assert matching_files(tmp_path / "a-0.txt") == []  # no pattern


@given(first=st.integers(0, 30), more=st.integers(0, 30), width=st.integers(1, 4))
def test_numbers_in_braces_are_as_wide_as_the_first(first: int, more: int, width: int) -> None:
    from saccade.data.readers.many_files import _alternatives  # type: ignore[reportPrivateUsage]

    low, high = f"{first:0{width}}", f"{first + more:0{width}}"
    expected = [f"x{n:0{width}}" for n in range(first, first + more + 1)]
    assert list(_alternatives(f"x{{{low}..{high}}}")) == expected


def test_a_path_that_exists_is_no_pattern(tmp_path: Path) -> None:
    made(tmp_path, "[a].txt", "a.txt")
    assert read_texts(tmp_path / "[a].txt", "train").texts == ["[a].txt"]


def test_files_that_are_not_there_are_named(tmp_path: Path) -> None:
    made(tmp_path, "a-0.txt")
    with pytest.raises(DataError, match=r"b-\*\.txt names no file that exists; check the pattern"):
        read_texts(tmp_path / "b-*.txt", "train")
    with pytest.raises(DataError, match=r"do not exist: .*/a-1\.txt; name those that do"):
        read_texts(tmp_path / "a-{0..1}.txt", "train")


def test_files_of_several_forms_are_refused(tmp_path: Path) -> None:
    made(tmp_path, "a.txt", "a.jsonl")
    with pytest.raises(DataError, match=r"names files of \.jsonl, \.txt; name files of one form"):
        read_texts(tmp_path / "a.*", "train")
    with pytest.raises(DataError, match="keep one of them"):
        read_labelled_texts(tmp_path / "a.*", "train")


def test_all_files_of_a_pattern_are_one_text_file(tmp_path: Path) -> None:
    made(tmp_path, "b.txt", "a.txt")
    assert read_texts(tmp_path / "*.txt", "train").texts == ["a.txt", "b.txt"]
    with pytest.raises(DataError, match="there is no 'valid' in it"):
        read_texts(tmp_path / "*.txt", "valid")


def test_parts_are_named_after_their_split() -> None:
    names = ["train-00000-of-00002", "cc3m-train-0017", "train_3", "0001", "train"]
    assert [split_of_part(name) for name in names] == ["train", "cc3m-train", "train", "", "train"]
    assert shown_parts(["a", "b"]) == ["a", "b"]
    assert shown_parts(["a", "b", "c"]) == ["a", "…", "c"]
