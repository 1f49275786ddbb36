"""S4 and S5: bodies that are too large, of the wrong kind, or not quite JSON."""

import gzip
import json
import time

import psutil
import pytest

from tests.app.serve.serving import LocalServer, refusal

LIMIT = 65_536
JSON = {"Content-Type": "application/json"}


def head(*lines: str) -> bytes:
    fixed = ("POST /v1/predict HTTP/1.1", "Host: localhost", "Content-Type: application/json")
    return "\r\n".join((*fixed, *lines, "", "")).encode()


def test_a_body_that_says_it_is_too_large_is_refused_before_it_is_sent(server: LocalServer) -> None:
    begun = time.monotonic()
    with server.connect() as wire:
        wire.sendall(head("Content-Length: 1000000000"))
        assert refusal(wire) == (413, "too_large")
    assert time.monotonic() - begun < 1


def test_a_body_without_a_length_is_refused_as_soon_as_it_is_too_large(server: LocalServer) -> None:
    before = psutil.Process().memory_info().rss
    with server.connect() as wire:
        wire.sendall(head("Transfer-Encoding: chunked"))
        chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
        for _ in range(800):  # 50 MB
            wire.sendall(chunk)
        assert refusal(wire) == (413, "too_large")
    assert psutil.Process().memory_info().rss - before < 30_000_000


def test_the_largest_body_that_is_allowed_is_read(server: LocalServer) -> None:
    body = json.dumps({"text": "We eat.", "beam": 1}).encode()
    post = {"content": body.ljust(LIMIT), "headers": JSON}
    assert server.post("/v1/predict", **post).status_code == 200
    post["content"] = body.ljust(LIMIT + 1)
    answer = server.post("/v1/predict", **post)
    assert answer.status_code == 413
    assert "65536 bytes" in answer.json()["error"]["message"]


def test_a_body_needs_a_length_or_chunks(server: LocalServer) -> None:
    assert server.raw(head()) == (411, "length_required")


def test_packed_bodies_are_not_unpacked(server: LocalServer) -> None:
    bomb = gzip.compress(b" " * 50_000_000)
    headers = {**JSON, "Content-Encoding": "gzip"}
    answer = server.post("/v1/predict", content=bomb[:60_000], headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (415, "content_encoding")


@pytest.mark.parametrize(
    "kind",
    ["", "text/plain", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded"],
)
def test_only_json_is_taken(server: LocalServer, kind: str) -> None:
    part = b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n'
    body = part * 1000 if kind.startswith("multipart") else b'{"text": "We eat."}'
    answer = server.post("/v1/predict", content=body[:LIMIT], headers={"Content-Type": kind})
    assert (answer.status_code, answer.json()["error"]["code"]) == (415, "content_type")


def test_json_may_name_its_character_set(server: LocalServer) -> None:
    headers = {"Content-Type": "Application/JSON; charset=utf-8"}
    body = '{"text": "Où est le café ?", "beam": 1}'.encode()
    assert server.post("/v1/predict", content=body, headers=headers).status_code == 200


@pytest.mark.parametrize(
    ("body", "status", "field", "said"),
    [
        (b"", 400, None, "not JSON"),
        (b"{", 400, None, "not JSON"),
        (b'{"text": "a"} x', 400, None, "not JSON"),
        (b"\xff\xfe", 400, None, "not UTF-8"),
        (b'{"text": "\xc3"}', 400, None, "not UTF-8"),
        (b'\xef\xbb\xbf{"text": "a"}', 400, None, "not JSON"),
        (b'{"text": "a", "temperature": NaN}', 400, None, "NaN is not a JSON number"),
        (b'{"text": "a", "temperature": -Infinity}', 400, None, "-Infinity is not"),
        (b'{"text": "a", "temperature": 1e400}', 400, None, "1e400 is too large"),
        (b'{"text": "a", "beam": 1, "beam": 2}', 400, "beam", "given twice"),
        (b'{"text": "a", "zoom": [{"a": 1, "a": 1}]}', 400, "a", "given twice"),
        (b'{"\\ud800": 1}', 400, None, "not Unicode"),
        (b"[" * 30_000, 400, None, "nested too deeply"),
        (b'{"a":' * 10_000, 400, None, "nested too deeply"),
        (b'{"text": "a", "beam": ' + b"9" * 5000 + b"}", 400, None, "too many digits"),
        (b'{"text": "a", "beam": ' + b"9" * 4000 + b"}", 422, "beam", "from 1 to 16"),
        (b'{"text": "a", "beam": true}', 422, "beam", "beam=True must be a whole number"),
        (b'{"text": "a", "beam": 2.0}', 422, "beam", "whole number"),
        (b'{"text": "a", "sample": 1}', 422, "sample", "true, false or null"),
        (b'{"text": "a", "stream": "yes"}', 422, "stream", "true or false"),
        (b'{"text": "a", "beams": 2}', 422, "beams", "'beams' is not a field; there are: run"),
        (b'{"text": 3}', 422, "text", "a text of at most 2000 characters"),
        (b'{"text": ["a", 3]}', 422, "text", "a text of at most 2000 characters"),
        (b'{"text": []}', 422, "text", "holds 0 texts; there may be 1 to 32"),
        (b'{"text": null}', 422, "text", "must be a text"),
        (b'{"run": 3, "text": "a"}', 422, "run", "the name of a run"),
        (b'{"run": "\\udc00", "text": "a"}', 422, "run", "the name of a run"),
        (b"{}", 422, "text", "text is missing"),
        (b"[]", 422, None, "must be a JSON object"),
        (b"null", 422, None, "must be a JSON object"),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_what_is_not_a_request_is_told_why(
    server: LocalServer, body: bytes, status: int, field: str | None, said: str
) -> None:
    answer = server.post("/v1/predict", content=body, headers=JSON)
    error = answer.json()["error"]
    assert (answer.status_code, error["field"]) == (status, field), error
    assert said in error["message"]
    assert "Traceback" not in answer.text


def test_what_is_not_http_is_refused_in_the_same_shape(server: LocalServer) -> None:
    assert server.raw(b"nonsense\r\n\r\n") == (400, "bad_request")
    assert server.raw(b"GET / HTTP/1.1\r\n\r\n") == (400, "bad_request")  # no host
    twice = head("Content-Length: 3", "Content-Length: 4")
    assert server.raw(twice) == (400, "bad_request")
    many = b"".join(b"X-%d: y\r\n" % i for i in range(20_000))
    assert server.raw(head()[:-2] + many) == (400, "bad_request")
