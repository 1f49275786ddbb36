"""What the fast tests leave out is what is said, and nothing else."""

from typing import Any

import pytest

from tests.conftest import MOST, pytest_runtest_call
from tests.marks import one_fast, one_fast_of_each


def marked(found: list[Any]) -> list[Any]:
    """Values, and whether each is slow."""
    return [
        (one.values, [mark.name for mark in one.marks] == ["slow"])
        if isinstance(one, type(pytest.param()))
        else one
        for one in found
    ]


def test_the_first_is_fast_and_none_is_lost() -> None:
    assert marked(one_fast("abc")) == ["a", (("b",), True), (("c",), True)]
    assert marked(one_fast([("a", 1), ("b", 2)])) == [("a", 1), (("b", 2), True)]


def test_the_first_of_each_group_is_fast() -> None:
    groups = {"gpt2": "gpt", "bert": "bert", "gpt2-large": "gpt"}
    assert marked(one_fast_of_each(groups)) == ["gpt2", "bert", (("gpt2-large",), True)]


def computing(request: pytest.FixtureRequest, seconds: float) -> None:
    """What is done around a test that computes for so long."""
    times = iter([(0.0, 0, 0, 0, 0), (seconds / 2, 0, seconds / 2, 0, 0)])  # itself, its processes
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.times", lambda: next(times))
        around = pytest_runtest_call(request.node)
        next(around)
        with pytest.raises(StopIteration):
            next(around)


def test_a_fast_test_that_computes_for_long_fails(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request.config.option, "markexpr", "not slow")
    computing(request, MOST - 1)
    with pytest.raises(
        pytest.fail.Exception, match=r"it computes for 21\.0 s: make it cheaper, or"
    ):
        computing(request, MOST + 1)
    monkeypatch.setattr(request.config.option, "markexpr", "")
    computing(request, MOST + 1)
