"""Made ahead of time: the same things in the same order, whatever is asked for."""

import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.train.prefetch import Prefetch


@given(
    starts=st.lists(st.tuples(st.integers(0, 50), st.integers(1, 8)), min_size=1, max_size=5),
    ahead=st.integers(0, 4),
)
def test_every_position_gets_its_own_also_after_a_jump(
    starts: list[tuple[int, int]], ahead: int
) -> None:
    batch = Prefetch(lambda position: position * position, ahead=ahead)
    for start, count in starts:
        for position in range(start, start + count):
            assert batch(position) == position * position


def test_one_after_another_each_is_made_once_and_in_order() -> None:
    made: list[int] = []
    batch = Prefetch(made.append, ahead=3)
    for position in range(20):
        batch(position)
    assert made[:20] == list(range(20))
    assert len(made) <= 23


def test_all_are_made_by_one_thread_for_a_task_remembers_its_epoch() -> None:
    threads: set[int] = set()

    def make(position: int) -> int:
        threads.add(threading.get_ident())
        time.sleep(0.001)
        return position

    batch = Prefetch(make)
    assert [batch(position) for position in (0, 1, 2, 7, 8, 3)] == [0, 1, 2, 7, 8, 3]
    assert len(threads) == 1
    assert threading.get_ident() not in threads


def test_the_next_is_made_while_the_last_is_used() -> None:
    coming = threading.Event()
    batch = Prefetch(lambda position: coming.set() if position == 1 else None)
    batch(0)
    assert coming.wait(timeout=5)


def test_a_failure_is_that_of_the_position_that_failed() -> None:
    def make(position: int) -> int:
        if position == 2:
            raise ValueError("position 2 cannot be made")
        return position

    batch = Prefetch(make)
    assert [batch(0), batch(1)] == [0, 1]
    with pytest.raises(ValueError, match="position 2 cannot be made"):
        batch(2)
    assert batch(3) == 3
