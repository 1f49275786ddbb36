"""S12: foreign names, foreign paths, foreign origins; markup stays data."""

import pytest

from saccade.app.serve.http.access import Hosts
from saccade.app.serve.http.errors import RequestError
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


def test_no_other_origin_may_read_or_ask(server: LocalServer) -> None:
    origin = {"Origin": "http://evil.com", "Access-Control-Request-Method": "POST"}
    for answer in (
        server.get("/info", headers=origin),
        server.post("/v1/predict", {"text": "We eat.", "beam": 1}, headers=origin),
    ):
        assert not [name for name in answer.headers if name.startswith("access-control")]
    assert server.raw(b"OPTIONS /v1/predict HTTP/1.1\r\nHost: localhost\r\n\r\n")[0] == 405


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
