"""A finding is plain data: to JSON and back is the identity."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.app.figures.finding import file_name, from_json, over_seeds, read_reports, to_json
from saccade.errors import SaccadeError
from tests.app.figures.reports import report

numbers = st.floats(-1e6, 1e6, allow_nan=False)


@given(values=st.lists(numbers, min_size=1, max_size=5), holds=st.sampled_from([True, False, None]))
def test_to_json_and_back_is_the_identity(values: list[float], holds: bool | None) -> None:
    one = report(over_seeds(1, values), holds=holds)
    assert from_json(to_json(one), where="x") == one


@given(values=st.lists(numbers, min_size=1, max_size=5))
def test_a_mean_lies_between_the_smallest_and_the_largest(values: list[float]) -> None:
    mark = over_seeds(2, values)
    assert mark.low - 1e-6 <= mark.mean <= mark.high + 1e-6
    assert (mark.low, mark.high) == (min(values), max(values))


def test_claims_are_read_in_their_order(tmp_path: Path) -> None:
    for key in ("C10", "C2"):
        (tmp_path / f"{file_name(key)}.json").write_text(to_json(report(key=key)))
    assert [one.key for one in read_reports(tmp_path)] == ["C2", "C10"]


def test_a_damaged_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "c03.json").write_text("{")
    with pytest.raises(SaccadeError, match=r"c03.json is not JSON: .*; delete it"):
        read_reports(tmp_path)
    (tmp_path / "c03.json").write_text(json.dumps({"key": 3}))
    with pytest.raises(SaccadeError, match=r"c03.json.key=3 must be str, not int"):
        read_reports(tmp_path)
