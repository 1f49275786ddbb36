"""Timings are medians of runs that take turns."""

import time

import torch

from saccade.app.bench.timing import by_the_wall, measure

CPU = torch.device("cpu")


def test_works_run_in_turn_and_the_median_counts() -> None:
    ran: list[str] = []
    works = {name: lambda name=name: ran.append(name) for name in "ab"}
    times = measure(works, CPU, least_seconds=0.0, least=5)
    assert ran == ["a", "b"] * 6  # once to warm up, then five rounds
    assert times["a"].seconds >= 0
    assert times["b"].milliseconds == 1000 * times["b"].seconds


def test_one_slow_run_in_five_does_not_change_the_median() -> None:
    waits = iter([0.0, 0.0, 0.2, 0.0, 0.0, 0.0])
    times = measure({"now and then": lambda: time.sleep(next(waits))}, CPU, least_seconds=0.0)
    assert times["now and then"].seconds < 0.1


def test_the_wall_clock_waits_for_the_end() -> None:
    assert by_the_wall(lambda: time.sleep(0.02), CPU) >= 0.02
