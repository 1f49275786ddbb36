"""S14: every error has one shape, and the same id in its body and its headers."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.app.serve.faults import faulty
from tests.app.serve.serving import LocalServer, eventually

JSON = {"Content-Type": "application/json"}
Ask = Callable[[LocalServer], httpx.Response]
ERRORS: dict[str, tuple[int, str, Ask]] = {
    "not JSON": (400, "bad_json", lambda s: s.post("/v1/predict", content=b"{", headers=JSON)),
    "no route": (404, "not_found", lambda s: s.get("/no/such")),
    "no run": (404, "no_run", lambda s: s.predict("We", run="none")),
    "wrong method": (405, "method", lambda s: s.get("/v1/predict")),
    "too large": (413, "too_large", lambda s: s.predict("x" * 70_000)),
    "not told as JSON": (415, "content_type", lambda s: s.post("/v1/predict", content=b"{}")),
    "foreign host": (421, "host", lambda s: s.get("/info", headers={"Host": "evil.com"})),
    "wrong field": (422, "invalid", lambda s: s.predict("We", beam=0)),
    "too long": (422, "too_long", lambda s: s.predict("x" * 5000)),
    "inside": (500, "internal", lambda s: s.predict("BOOM")),
}


@pytest.fixture(scope="module")
def server(runs: dict[str, Path]) -> Iterator[LocalServer]:
    with LocalServer([runs["translator"]], queue=2, deadline_s=2.0) as running:
        yield running


def check(answer: httpx.Response, status: int, code: str) -> None:
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert set(body) == {"error", "id"}
    assert set(body["error"]) == {"code", "message", "field"}
    assert body["error"]["code"] == code
    assert isinstance(body["error"]["message"], str)
    assert body["error"]["message"]
    assert body["error"]["field"] is None or isinstance(body["error"]["field"], str)
    assert answer.headers["X-Request-Id"] == body["id"]
    if status in (429, 503):
        assert int(answer.headers["Retry-After"]) >= 1


@pytest.mark.parametrize("name", ERRORS)
def test_every_error_has_one_shape(server: LocalServer, name: str) -> None:
    status, code, ask = ERRORS[name]
    with faulty(server, "translator"):
        check(ask(server), status, code)
    assert f'status="{status}"' in server.get("/metrics").text


@pytest.mark.slow
def test_a_full_queue_and_a_deadline_have_it_too(server: LocalServer) -> None:
    with faulty(server, "translator") as faults, ThreadPoolExecutor() as pool:
        faults.gate.clear()
        asked = [pool.submit(server.predict, "We", beam=1)]
        eventually(lambda: faults.texts == ["We"])
        asked += [pool.submit(server.predict, "We", beam=2) for _ in range(2)]
        eventually(lambda: server.service.batcher.depth == 2)
        check(server.predict("We"), 429, "busy")
        assert "2 requests are waiting" in server.predict("We").json()["error"]["message"]
        assert server.get("/health").status_code == 200
        check(asked[0].result(), 504, "deadline")
        for answer in (one.result() for one in asked[1:]):  # it may show before
            codes = {503: "busy", 504: "deadline"}
            check(answer, answer.status_code, codes[answer.status_code])


def test_good_answers_have_an_id_as_well_and_no_two_the_same(server: LocalServer) -> None:
    answers = [server.predict("We", beam=1) for _ in range(2)]
    ids = [answer.json()["id"] for answer in answers]
    assert ids == [answer.headers["X-Request-Id"] for answer in answers]
    assert len(set(ids)) == 2
