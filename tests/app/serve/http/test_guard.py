"""S12: foreign names, foreign paths, foreign origins; markup stays data."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from saccade.app.serve.batcher import Batcher
from saccade.app.serve.http.access import TOKEN, Hosts, Token, token_for
from saccade.app.serve.http.errors import RequestError
from saccade.app.serve.http.guard import Guard, Message, Receive, Scope, Send
from saccade.app.serve.metrics import Metrics
from saccade.app.serve.settings import ServeSettings
from saccade.errors import ConfigError
from tests.app.serve.serving import LocalServer


@pytest.mark.parametrize(
    "host",
    ["evil.com", "evil.com:8000", "localhost.evil.com", "127.0.0.1.evil.com", "127.0.0.1:x",
     "[::1", "[::1]x", "", "localhost:80:80", "localhost@evil.com", "10.0.0.1", "LOCALHOST.:80"],
)  # fmt: skip
def test_foreign_host_names_are_refused(server: LocalServer, host: str) -> None:
    answer = server.get("/health", headers={"Host": host})
    assert (answer.status_code, answer.json()["error"]["code"]) == (421, "host")


@pytest.mark.parametrize("host", ["localhost", "LocalHost:1", "127.0.0.1", "[::1]:8000"])
def test_this_machine_is_not_foreign(server: LocalServer, host: str) -> None:
    assert server.get("/health", headers={"Host": host}).status_code == 200


def test_on_all_addresses_any_address_will_do_but_no_name() -> None:
    hosts = Hosts("0.0.0.0", ("models.example",))
    for good in ("192.168.0.7:8000", "[fe80::1]", "models.example:8000"):
        hosts.check(good)
    with pytest.raises(RequestError, match=r"not called 'evil\.com'; start it with --hosts"):
        hosts.check("evil.com")


@pytest.mark.parametrize(
    "path",
    ["/../etc/passwd", "/static/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/page/dom.js",
     "/v1/predict/", "//", "/runs/translator/config.json", "/\x7f"],
)  # fmt: skip
def test_there_are_no_files_to_reach(server: LocalServer, path: str) -> None:
    head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    status, code = server.raw(head.encode())
    assert (status, code) in ((404, "not_found"), (400, "bad_request"))


def test_no_other_origin_may_read(server: LocalServer) -> None:
    origin = {"Origin": "http://evil.com", "Access-Control-Request-Method": "POST"}
    answer = server.get("/info", headers=origin)
    assert not [name for name in answer.headers if name.startswith("access-control")]
    assert server.raw(b"OPTIONS /v1/predict HTTP/1.1\r\nHost: localhost\r\n\r\n")[0] == 405


FOREIGN: list[dict[str, str]] = [
    {"Origin": "http://evil.com"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:1"},  # another program of this machine
    {"Origin": "http://127.0.0.1.evil.com"},
    {"Origin": "not a page at all"},
    {"Origin": "http://[::1"},
    {"Origin": "http://{own}/x"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "cross-site", "Origin": "http://{own}"},
]


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
@pytest.mark.parametrize("path", ["/v1/predict", "/v1/look"])
def test_a_page_of_others_cannot_have_anything_done(
    server: LocalServer, path: str, headers: dict[str, str]
) -> None:
    headers = {
        name: value.format(own=f"127.0.0.1:{server.port}") for name, value in headers.items()
    }
    before = server.metric("batch_size_count")
    answer = server.post(path, {"text": "We eat.", "beam": 1}, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "origin")
    assert server.metric("batch_size_count") == before


@pytest.mark.parametrize(
    "headers",
    [{}, {"Origin": "http://{own}"}, {"Origin": "http://{own}", "Sec-Fetch-Site": "same-origin"}],
    ids=str,
)
def test_our_own_page_and_programs_can(server: LocalServer, headers: dict[str, str]) -> None:
    headers = {
        name: value.format(own=f"127.0.0.1:{server.port}") for name, value in headers.items()
    }
    assert server.post("/v1/predict", {"text": "We"}, headers=headers).status_code == 200


def test_a_name_that_is_allowed_may_have_a_page_in_front_of_us() -> None:
    hosts = Hosts("127.0.0.1", ("models.example",))
    hosts.check_page({"host": b"localhost:8000", "origin": b"https://models.example"})


def test_what_is_not_http_is_counted(server: LocalServer) -> None:
    before = server.get("/metrics").text
    assert server.raw(b"\x16\x03\x01 hello\r\n\r\n") == (400, "bad_request")
    told = 'saccade_refusals_total{code="bad_request"}'
    counts = [text.partition(told)[2].split() for text in (before, server.get("/metrics").text)]
    old, new = (float(count[0]) if count else 0.0 for count in counts)
    assert new == old + 1
    assert 'route="other",status="400"' in server.get("/metrics").text


TOKEN_GIVEN = "a-token-of-the-test-1"


@pytest.fixture(scope="module")
def closed(runs: dict[str, Path]) -> Iterator[LocalServer]:
    with LocalServer([runs["writer"]], token=TOKEN_GIVEN) as running:
        yield running


def test_with_a_token_nothing_is_told_to_those_who_lack_it(closed: LocalServer) -> None:
    for path in ("/info", "/metrics", "/openapi.json", "/no/such"):
        for headers in ({}, {"Authorization": "Bearer x"}, {"Authorization": TOKEN_GIVEN},
                        {"Cookie": f"saccade-{closed.port}=x"}, {"Cookie": "==;\x01"}):  # fmt: skip
            answer = closed.get(path, headers=headers)
            assert (answer.status_code, answer.json()["error"]["code"]) == (401, "token")
            assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert closed.predict("We").status_code == 401
    assert closed.get("/?token=wrong").status_code == 401
    for path in ("/", "/health", "/ready"):
        assert closed.get(path).status_code == 200


def test_with_its_token_a_program_or_a_browser_is_let_in(closed: LocalServer) -> None:
    bearer = {"Authorization": f"Bearer {TOKEN_GIVEN}"}
    assert closed.post("/v1/predict", {"text": "We"}, headers=bearer).status_code == 200
    opened = closed.get(f"/?token={TOKEN_GIVEN}")
    assert (opened.status_code, opened.headers["location"]) == (303, "/")
    assert {"HttpOnly", "SameSite=Strict"} <= set(opened.headers["set-cookie"].split("; "))
    assert closed.get("/info").status_code == 200  # the client has kept the cookie
    assert TOKEN_GIVEN not in closed.get("/info").text + closed.get("/metrics").text
    closed.http.cookies.clear()


def test_where_others_reach_the_server_there_is_a_token() -> None:
    assert token_for("127.0.0.1", "") == token_for("::1", "") == ""
    for address in ("0.0.0.0", "::", "192.168.1.7"):
        made = [token_for(address, "") for _ in range(2)]
        assert all(TOKEN.fullmatch(one) for one in made)
        assert made[0] != made[1]
        assert token_for(address, TOKEN_GIVEN) == TOKEN_GIVEN
    with pytest.raises(ConfigError, match=r"a token of 5 characters .* leave it out"):
        Token("short")


def test_markup_comes_back_as_data(server: LocalServer) -> None:
    markup = "<script>alert(1)</script>"
    for path, body in (("/v1/predict", {"beam": 1}), ("/v1/look", {"run": "writer"})):
        answer = server.post(path, {"text": markup, **body})
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
    refused = server.get(f"/{markup}")
    assert refused.headers["content-type"] == "application/json"


def test_the_page_may_reach_nothing_but_its_server(server: LocalServer) -> None:
    page = server.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    assert page.headers["x-frame-options"] == "DENY"
    assert '<meta name="saccade-server" content="1">' in page.text
    assert "default-src 'none'" in page.text
    assert 'src="http' not in page.text


def test_an_answer_that_comes_through_two_guards_says_nothing_twice() -> None:
    """As one of a replica does, whose error names its own id."""
    sent = list[Message]()

    async def inner(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"x-a", b"1")]})
        await send({"type": "http.response.body", "body": b""})

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def keep(message: Message) -> None:
        sent.append(message)

    async def act() -> None:
        settings, metrics = ServeSettings(), Metrics()
        batcher = Batcher(settings, metrics)
        once = Guard(inner, settings, batcher, metrics, host="127.0.0.1")
        twice = Guard(once, settings, batcher, Metrics(), host="127.0.0.1")
        scope = {"type": "http", "method": "GET", "path": "/health", "client": ("127.0.0.1", 1)}
        await twice({**scope, "headers": [(b"host", b"localhost")]}, receive, keep)

    asyncio.run(act())
    names = [name for name, _ in sent[0]["headers"]]
    assert sorted(names) == sorted({*names, b"x-a", b"x-request-id", b"x-frame-options"})
