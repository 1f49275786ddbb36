"""Whose turn it is, and who is told that there is no time, without a server."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest

from saccade.app.serve.batcher import Batcher, Job
from saccade.app.serve.http.errors import RequestError
from saccade.app.serve.metrics import Metrics
from saccade.app.serve.schedule import Schedule
from saccade.app.serve.settings import ServeSettings
from saccade.app.serve.worker import Worker


@dataclass(eq=False)
class Piece:
    client: str
    units: float = 1.0
    ends: float = float("inf")
    sort: str = "look"
    gone: bool = False
    key: str | None = None
    size: int = 1


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def run(schedule: Schedule, clock: list[float], one: Piece, seconds: float) -> None:
    schedule.enter(one.client)
    schedule.begin([one])
    clock[0] += seconds
    schedule.end(whole=True)


def clients(order: list[Piece]) -> str:
    return "".join(one.client for one in order)


def test_clients_take_turns_however_much_each_asks_for(clock: list[float]) -> None:
    schedule, waiting = Schedule(), [Piece(client) for client in "aaaaabbc"]
    for one in waiting:
        schedule.enter(one.client)
    assert clients(schedule.in_turn(waiting)) == "abcabaaa"


def test_one_client_is_served_in_its_order(clock: list[float]) -> None:
    schedule, waiting = Schedule(), [Piece("a", units) for units in (3.0, 1.0, 2.0)]
    assert schedule.in_turn(waiting) == waiting


def test_what_took_long_is_held_against_a_client_but_not_for_ever(clock: list[float]) -> None:
    schedule = Schedule()
    run(schedule, clock, Piece("b"), 1.0)
    run(schedule, clock, Piece("a", 9.0), 9.0)
    waiting = [Piece("a"), *[Piece("b") for _ in range(9)]]
    for one in waiting:
        schedule.enter(one.client)
    assert clients(schedule.in_turn(waiting)) == "bbbbbbbbab"


def test_who_was_away_has_saved_nothing_up(clock: list[float]) -> None:
    schedule = Schedule()
    for _ in range(10):
        run(schedule, clock, Piece("a"), 1.0)
    waiting = [*[Piece("a") for _ in range(3)], *[Piece("new") for _ in range(3)]]
    for one in waiting:
        schedule.enter(one.client)
    order = [one.client for one in schedule.in_turn(waiting)]
    assert order[:4] in (
        ["new", "a", "new", "a"],
        ["a", "new", "a", "new"],
        ["new", "new", "a", "new"],
    )


def test_who_cannot_be_served_in_time_is_late_and_the_others_do_not_wait_for_him(
    clock: list[float],
) -> None:
    schedule = Schedule()
    run(schedule, clock, Piece("a"), 2.0)  # a unit takes two seconds
    schedule.begin([Piece("a", 3.0)])
    clock[0] += 1.0  # five more are left of it
    soon, long, short = (Piece("a", units, clock[0] + 10.0) for units in (1.5, 3.0, 0.4))
    assert schedule.left == pytest.approx(5.0)
    assert schedule.late([soon, long, short], 32) == [long]


def test_what_has_never_been_measured_is_taken_and_judged_by_what_runs(clock: list[float]) -> None:
    schedule, waiting = Schedule(), [Piece("a", ends=clock[0] + 30) for _ in range(64)]
    assert schedule.late(waiting, 32) == []
    schedule.begin(waiting[:1])
    clock[0] += 2.0
    assert (
        len(schedule.late(waiting[1:], 32)) == 63 - 12
    )  # of two seconds each, in 28, with a margin


def test_what_takes_longer_than_usual_is_thought_to_take_longer_still(
    clock: list[float],
) -> None:
    schedule = Schedule()
    run(schedule, clock, Piece("a"), 1.0)
    schedule.begin([Piece("a")])
    waits = Piece("b", ends=clock[0] + 30)
    clock[0] += 14.0
    assert schedule.late([waits], 32) == []
    clock[0] += 1.1
    assert schedule.late([waits], 32) == [waits]


def test_a_machine_that_has_become_slower_is_believed_at_once_but_not_for_one_bad_moment(
    clock: list[float],
) -> None:
    schedule = Schedule()
    for seconds in (*[0.4] * 20, 0.8):
        run(schedule, clock, Piece("a"), seconds)
    assert schedule.cost(Piece("a")) == pytest.approx(0.4)
    run(schedule, clock, Piece("a"), 0.8)
    schedule.begin([Piece("a")])
    waits = Piece("a", ends=clock[0] + 1.5)
    assert schedule.late([waits], 32) == [waits]


def test_one_bad_moment_refuses_nobody_who_finds_the_line_idle(clock: list[float]) -> None:
    schedule = Schedule()
    for seconds in (0.1, 100.0):
        run(schedule, clock, Piece("a"), seconds)
    assert schedule.late([Piece("a", ends=clock[0] + 30)], 32) == []
    clock[0] += 301.0
    for _ in range(3):
        assert schedule.late([Piece("a", ends=clock[0] + 30)], 32) == []
        run(schedule, clock, Piece("a"), 90.0)
    waits = Piece("a", ends=clock[0] + 30)
    assert schedule.late([waits], 32) == [waits]
    clock[0] += 301.0  # it may be otherwise now
    assert schedule.late([Piece("a", ends=clock[0] + 30)], 32) == []


def test_those_who_are_decoded_together_do_not_wait_for_each_other(clock: list[float]) -> None:
    schedule = Schedule()
    run(schedule, clock, Piece("a", key="k"), 2.0)
    schedule.begin([Piece("a", key="k")])
    alike = [Piece("a", ends=clock[0] + 10, key="k") for _ in range(64)]
    assert [len(batch) for batch in schedule.batches(alike, 32)] == [32, 32]
    assert schedule.late(alike, 32) == []
    apart = [Piece("a", ends=clock[0] + 10, key=str(i)) for i in range(64)]
    assert len(schedule.late(apart, 32)) == 61


def test_a_slow_small_thing_says_nothing_of_large_ones(clock: list[float]) -> None:
    """The first of all is slow: nobody is to be refused for that."""
    schedule = Schedule()
    run(schedule, clock, Piece("a", 10.0), 2.0)
    large = Piece("a", 5000.0, ends=clock[0] + 30)
    assert (schedule.least(large), schedule.cost(large)) == (0.0, 2.0)
    assert schedule.late([large], 32) == []


def test_lines_that_are_full_make_room_for_a_client_that_has_fewer() -> None:
    def decode(jobs: Sequence[Job], beat: Callable[[], None]) -> None:
        for job in jobs:
            job.finish(job.work)

    async def act() -> list[object]:
        batcher = Batcher(ServeSettings(queue=4), Metrics())
        batcher.open("run", decode, Worker("run"))
        jobs = [Job(place, client=client) for place, client in enumerate("aaaab")]
        for job in jobs:
            batcher.submit("run", job)
        assert batcher.refusal("a") is not None
        with pytest.raises(RequestError, match="4 requests are waiting"):
            batcher.submit("run", Job(9, client="a"))
        return await asyncio.gather(*(job.answer for job in jobs), return_exceptions=True)

    *first, last, other = asyncio.run(act())
    assert (first, other) == ([0, 1, 2], 4)
    assert isinstance(last, RequestError)
    assert (last.status, last.code) == (429, "busy")
