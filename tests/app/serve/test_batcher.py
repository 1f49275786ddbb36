"""Waiting lines without models: who is taken with whom, and who is refused."""

import asyncio
import threading
from collections.abc import Callable, Sequence

import pytest

from saccade.app.serve.batcher import Batcher, Job, Line
from saccade.app.serve.http.errors import RequestError
from saccade.app.serve.metrics import Metrics
from saccade.app.serve.settings import ServeSettings
from saccade.app.serve.worker import Worker
from saccade.errors import DataError


def line(*jobs: Job) -> Line:
    made = Line("run", lambda batch, beat: None, Worker("run"))
    made.waiting.extend(jobs)
    return made


def test_equal_keys_are_taken_together_in_their_order() -> None:
    async def act() -> None:
        jobs = [Job(i, key=key) for i, key in enumerate("aabab")]
        waiting = line(*jobs)
        assert [job.work for job in waiting.take(10)] == [0, 1, 3]
        assert [job.work for job in waiting.take(10)] == [2, 4]
        assert waiting.take(10) == []

    asyncio.run(act())


def test_a_batch_has_room_for_so_many_texts_and_one_job_always_fits() -> None:
    async def act() -> None:
        waiting = line(*(Job(size, key="a", size=size) for size in (3, 2, 1, 9)))
        assert [job.size for job in waiting.take(4)] == [3, 1]
        assert [job.size for job in waiting.take(4)] == [2]
        assert [job.size for job in waiting.take(4)] == [9]

    asyncio.run(act())


def test_without_a_key_everyone_stays_alone() -> None:
    async def act() -> None:
        waiting = line(Job(0), Job(1), Job(2, key="a"))
        assert [[job.work for job in waiting.take(10)] for _ in range(3)] == [[0], [1], [2]]

    asyncio.run(act())


def with_batcher(
    decode: Callable[[Sequence[Job], Callable[[], None]], None], *works: object, **limits: int
) -> list[object]:
    """What becomes of these works when they are submitted at once, all with one key."""

    async def act() -> list[object]:
        batcher = Batcher(ServeSettings(**limits), Metrics())
        batcher.open("run", decode, Worker("run"))
        jobs = [Job(work, key="a") for work in works]
        for job in jobs:
            try:
                batcher.submit("run", job)
            except RequestError as error:
                job.fail(error)
        return await asyncio.gather(*(job.answer for job in jobs), return_exceptions=True)

    return asyncio.run(act())


def double(jobs: Sequence[Job], beat: Callable[[], None]) -> None:
    if len(jobs) > 1 and any(job.work == 13 for job in jobs):
        raise RuntimeError("thirteen")
    for job in jobs:
        if job.work == 13:
            raise DataError("thirteen cannot be doubled")
        job.finish(job.work * 2)


def test_answers_go_to_those_who_asked() -> None:
    assert with_batcher(double, *range(10)) == list(range(0, 20, 2))


def test_one_more_than_may_wait_is_refused_at_once() -> None:
    *taken, refused = with_batcher(double, 1, 2, 3, queue=2)
    assert taken == [2, 4]
    assert isinstance(refused, RequestError)
    assert (refused.status, refused.code) == (429, "busy")
    assert int(refused.headers["Retry-After"]) >= 1


def test_a_mistake_in_a_batch_is_the_mistake_of_one() -> None:
    one, bad, other = with_batcher(double, 1, 13, 3)
    assert (one, other) == (2, 6)
    assert isinstance(bad, RequestError)
    assert (bad.status, bad.message) == (422, "thirteen cannot be doubled")


def test_what_is_given_up_while_it_waits_is_not_decoded() -> None:
    seen: list[object] = []

    def decode(jobs: Sequence[Job], beat: Callable[[], None]) -> None:
        seen.extend(job.work for job in jobs)
        double(jobs, beat)

    async def act() -> None:
        batcher = Batcher(ServeSettings(), Metrics())
        batcher.open("run", decode, Worker("run"))
        jobs = [Job(work, key=work) for work in range(3)]
        for job in jobs:
            batcher.submit("run", job)
        batcher.give_up("run", jobs[1])
        assert batcher.depth == 2
        assert [await jobs[0].answer, await jobs[2].answer] == [0, 4]

    asyncio.run(act())
    assert seen == [0, 2]


def test_a_batch_waits_to_fill_when_it_is_told_to() -> None:
    sizes: list[int] = []

    def decode(jobs: Sequence[Job], beat: Callable[[], None]) -> None:
        sizes.append(len(jobs))
        double(jobs, beat)

    async def act() -> None:
        batcher = Batcher(ServeSettings(wait_ms=100.0), Metrics())
        batcher.open("run", decode, Worker("run"))
        jobs = [Job(work, key="a") for work in range(3)]
        for job in jobs:
            batcher.submit("run", job)
            await asyncio.sleep(0.005)
        await asyncio.gather(*(job.answer for job in jobs))

    asyncio.run(act())
    assert sizes == [3]


def test_decoding_happens_in_a_thread_of_the_runs_own() -> None:
    names: list[str] = []

    def decode(jobs: Sequence[Job], beat: Callable[[], None]) -> None:
        names.append(threading.current_thread().name)
        double(jobs, beat)

    with_batcher(decode, 1)
    assert names == ["saccade run"]


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("queue", 0, "queue=0 must be at least 1"),
        ("wait_ms", -1.0, r"wait_ms=-1.0 must be 0"),
        ("deadline_s", 0.0, "deadline_s=0.0 must be above 0 and finite"),
        ("grace_s", float("inf"), "grace_s=inf must be above 0 and finite"),
        ("look_bytes", 5, "look_bytes=5 must be at least 100000"),
    ],
)
def test_limits_that_cannot_be_are_refused(field: str, value: float, said: str) -> None:
    with pytest.raises(Exception, match=said):
        ServeSettings(**{field: value})
