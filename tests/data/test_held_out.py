"""What is held out for validation: the same share of each class."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.data.held_out import held_out
from saccade.data.readers import held_out_part, read_labelled_texts
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
    with pytest.raises(DataError, match="too few to hold some out for validation; add texts"):
        held_out_part(read, "valid", 0.001)
