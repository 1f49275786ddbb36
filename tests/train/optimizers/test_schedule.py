"""The learning rate rises in a line to its peak and falls from there without a jump."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.train.optimizers.schedule import SCHEDULES, ScheduleKind, learning_rate

kinds = st.sampled_from(sorted(SCHEDULES))
warmups = st.integers(1, 50)


def rate(kind: ScheduleKind, update: int, *, warmup: int, steps: int = 200) -> float:
    return learning_rate(kind, 3e-4, update, warmup=warmup, steps=steps)


@given(kind=kinds, warmup=warmups)
def test_the_warm_up_is_a_line_from_zero_to_the_peak(kind: ScheduleKind, warmup: int) -> None:
    for update in range(1, warmup + 1):
        assert rate(kind, update, warmup=warmup) == pytest.approx(3e-4 * update / warmup)


@given(kind=kinds, warmup=warmups)
def test_the_rate_never_rises_after_the_peak_nor_jumps(kind: ScheduleKind, warmup: int) -> None:
    course = [rate(kind, update, warmup=warmup) for update in range(warmup, 201)]
    falls = [before - after for before, after in pairwise(course)]
    assert course[0] == max(course) == pytest.approx(3e-4)
    assert min(falls) >= 0
    assert max(falls) < 3e-4 * (1 - math.sqrt(warmup / (warmup + 1))) + 3e-4 * math.pi / 150


@given(warmup=warmups, steps=st.integers(60, 300))
def test_the_cosine_is_half_way_down_half_way_through_and_ends_at_zero(
    warmup: int, steps: int
) -> None:
    middle = warmup + (steps - warmup) // 2
    exact = 0.5 + 0.5 * math.cos(math.pi * (middle - warmup) / (steps - warmup))
    assert rate("cosine", middle, warmup=warmup, steps=steps) == pytest.approx(3e-4 * exact)
    assert abs(exact - 0.5) < 0.1
    assert rate("cosine", steps, warmup=warmup, steps=steps) == pytest.approx(0, abs=1e-18)
    assert rate("cosine", steps + 9, warmup=warmup, steps=steps) == pytest.approx(0, abs=1e-18)


@given(warmup=warmups, steps=st.integers(60, 300))
def test_the_line_falls_by_the_same_at_every_update_and_ends_at_zero(
    warmup: int, steps: int
) -> None:
    course = [
        rate("linear", update, warmup=warmup, steps=steps) for update in range(warmup, steps + 1)
    ]
    falls = [before - after for before, after in pairwise(course)]
    assert falls == pytest.approx([3e-4 / (steps - warmup)] * len(falls))
    assert rate("linear", steps, warmup=warmup, steps=steps) == pytest.approx(0, abs=1e-18)
    assert rate("linear", steps + 9, warmup=warmup, steps=steps) == pytest.approx(0, abs=1e-18)


@given(warmup=warmups)
def test_four_times_as_far_the_inverse_square_root_is_half(warmup: int) -> None:
    assert rate("inverse-sqrt", 4 * warmup, warmup=warmup) == pytest.approx(1.5e-4)


@pytest.mark.parametrize("kind", sorted(SCHEDULES))
def test_without_a_warm_up_the_first_update_has_the_peak(kind: ScheduleKind) -> None:
    assert rate(kind, 1, warmup=0) == pytest.approx(3e-4, rel=1e-3)
