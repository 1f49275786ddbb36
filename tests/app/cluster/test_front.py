"""The door to replicas: what one of them loses another answers, unless part of it is out."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from saccade.app.cluster import front
from saccade.app.cluster.front import Forwarding
from saccade.app.serve.http.errors import GoneError, RequestError

START = {"type": "http.response.start", "status": 200, "headers": []}
BODY = {"type": "http.response.body", "body": b"yes", "more_body": False}
SCOPE = {"type": "http", "method": "POST", "path": "/v1/predict", "headers": [], "state": {}}


class LostError(Exception):
    pass


class FullError(Exception):
    pass


class Replicas:
    """Each answer is a list of messages, or ends with an error."""

    def __init__(self, *answers: list[Any]) -> None:
        self.answers, self.asked = list(answers), list[tuple[dict[str, Any], bytes]]()

    async def __call__(self, scope: dict[str, Any], body: bytes) -> AsyncIterator[Any]:
        self.asked.append((scope, body))
        for one in self.answers.pop(0):
            if isinstance(one, Exception):
                raise one
            if one == "hang":
                await asyncio.Event().wait()
            yield one


async def asked(app: Forwarding, *, leaves: bool = False, path: str = "") -> list[Any]:
    sent, received = list[Any](), 0

    async def receive() -> dict[str, Any]:
        nonlocal received
        received += 1
        if received <= 2:
            part = (b"que", b"stion")[received - 1]
            return {"type": "http.request", "body": part, "more_body": received < 2}
        if not leaves:
            await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    await app({**SCOPE, "path": path or SCOPE["path"]}, receive, send)
    return sent


def made(replicas: Replicas, **options: Any) -> Forwarding:
    return Forwarding(replicas, lost=(LostError,), full=(FullError,), **options)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front, "AGAIN_S", 0.01)


def test_an_answer_is_passed_on_and_the_whole_body_was_asked() -> None:
    replicas = Replicas([START, BODY])
    assert asyncio.run(asked(made(replicas))) == [START, BODY]
    ((scope, body),) = replicas.asked
    assert body == b"question"
    assert "state" not in scope, "only what another process can read"


def test_what_a_lost_replica_had_taken_is_asked_of_another() -> None:
    replicas = Replicas([LostError()], [START, LostError()], [START, BODY])
    assert asyncio.run(asked(made(replicas))) == [START, BODY]
    assert [body for _, body in replicas.asked] == [b"question"] * 3


@pytest.mark.parametrize(
    ("answers", "deadline"),
    [([[START, BODY, LostError()]], 30.0), ([[LostError()]], 0.0)],
    ids=["part of it is out", "too late"],
)
def test_else_it_is_refused_clearly(answers: list[Any], deadline: float) -> None:
    with pytest.raises(RequestError, match="the replica that answered was lost; ask again") as no:
        asyncio.run(asked(made(Replicas(*answers), deadline=deadline)))
    assert (no.value.status, no.value.code) == (503, "replica_lost")


def test_where_all_are_busy_one_is_told_to_come_back() -> None:
    with pytest.raises(RequestError, match="every replica is busy; try again later") as no:
        asyncio.run(asked(made(Replicas([FullError()]))))
    assert (no.value.status, no.value.headers["Retry-After"]) == (503, "1")


def test_one_more_than_there_is_room_for_is_refused_at_once() -> None:
    async def both() -> None:
        app = made(Replicas(["hang"], [START, BODY]), room=1)
        first = asyncio.create_task(asked(app))
        await asyncio.sleep(0.05)
        with pytest.raises(RequestError, match="1 requests are under way already") as no:
            await asked(app)
        assert no.value.status == 429
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        assert await asked(app) == [START, BODY], "there is room again"

    asyncio.run(both())


def test_whoever_asks_after_health_needs_no_room() -> None:
    async def both() -> None:
        app = made(Replicas(["hang"], [START, BODY]), room=1)
        first = asyncio.create_task(asked(app))
        await asyncio.sleep(0.05)
        assert await asked(app, path="/health") == [START, BODY]
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)

    asyncio.run(both())


def test_a_replica_that_says_nothing_holds_nobody_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front, "LATE_S", 0.01)
    with pytest.raises(RequestError, match=r"no replica answered within 0.03 s \(deadline_s") as no:
        asyncio.run(asked(made(Replicas(["hang"]), deadline=0.02)))
    assert (no.value.status, no.value.code) == (504, "deadline")


def test_who_leaves_is_not_answered() -> None:
    with pytest.raises(GoneError):
        asyncio.run(asked(made(Replicas(["hang"])), leaves=True))
