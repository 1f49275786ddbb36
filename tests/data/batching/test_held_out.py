"""What is held out for validation: the same share of each class."""

import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.data.batching.held_out import held_out
from saccade.data.readers import held_out_part, read_labelled_texts
from saccade.data.readers.labelled_texts.rows import LabelledText, LabelledTextsRead
from saccade.errors import DataError


@given(classes=st.lists(st.integers(0, 3)), every=st.integers(2, 20))
def test_each_class_gives_its_share(classes: list[int], every: int) -> None:
    out = held_out(classes, 1 / every)
    mine = Counter(one for one, held in zip(classes, out, strict=True) if held)
    assert all(mine[one] == count // every for one, count in Counter(classes).items())


def test_train_and_what_is_held_out_of_it_are_all_rows_once(tmp_path: Path) -> None:
    lines = [f"text {n},{'ab'[n % 10 == 0]}" for n in range(200)]
    (tmp_path / "a.csv").write_text("\n".join(["text,label", *lines]))
    read = read_labelled_texts(tmp_path / "a.csv", "train")
    train, valid = (held_out_part(read, split, 0.1).rows for split in ("train", "valid"))
    assert sorted(train + valid) == sorted(read.rows)
    assert Counter(row.label for row in valid) == {"a": 18, "b": 2}
    with pytest.raises(DataError, match=r"held_out=0, and 200 texts .* give one, or --held-out"):
        held_out_part(read, "valid", 0)
    with pytest.raises(
        DataError, match=r"too few to hold .* add texts, or a validation split, or --held-out 0\.01"
    ):
        held_out_part(read, "valid", 0.001)


@given(counts=st.lists(st.integers(1, 19), min_size=2, max_size=4))
def test_the_share_that_a_message_names_is_enough(counts: list[int]) -> None:
    rows = [
        LabelledText((f"{n}",), str(one)) for one, many in enumerate(counts) for n in range(many)
    ]
    read = LabelledTextsRead(rows, [], 0, ["a.csv"])
    with pytest.raises(DataError, match="too few to hold some out") as raised:
        held_out_part(read, "valid", 0.05)
    told = re.search(r"--held-out ([0-9.]+)$", str(raised.value))
    assert bool(told) == (max(counts) > 1)
    if told:
        assert held_out_part(read, "valid", float(told[1])).rows
