"""Served mode, against a small server that answers as the real one does."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from saccade.app.look.html import page_html
from tests.browser.documents import language, long_language, translation
from tests.browser.understood import pairs

pytestmark = pytest.mark.slow
RUNS = [
    {"name": "transformer-base", "kind": "translation", "description": "", "looks": True},
    {"name": "rnn-attention", "kind": "translation", "description": "", "looks": True},
    {"name": "gpt-nano", "kind": "language", "description": "", "looks": True},
    {"name": "pairs", "kind": "understanding", "description": "", "looks": True, "pairs": True},
    {"name": "vit", "kind": "language", "description": "", "looks": False},
]
LIMITS = {"text_characters": 4000, "beam": 16, "most_tokens": 512}


class Server(ThreadingHTTPServer):
    """Keeps what it was asked, and fails once when told to."""

    asked: list[tuple[str, dict[str, Any]]]
    failure: tuple[int, dict[str, Any], dict[str, str]] | None
    document: dict[str, Any]
    daemon_threads = True


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *parts: object) -> None:
        """Quietly."""

    def do_GET(self) -> None:
        if self.path == "/":
            self._send(200, "text/html; charset=utf-8", page_html(None, served=True))
        else:
            self._send(200, "application/json", json.dumps({"runs": RUNS, "limits": LIMITS}))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, body))
        if self.server.failure is not None:
            status, answer, headers = self.server.failure
            self.server.failure = None
            self._send(status, "application/json", json.dumps(answer), headers)
        elif self.path == "/v1/predict":
            events = ({"text": "When"}, {"text": "When Mary"}, {"done": True, "text": "When Mary"})
            lines = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
            self._send(200, "text/event-stream", lines)
        else:
            self._send(200, "application/json", json.dumps(self.server.document))

    def _send(
        self, status: int, kind: str, text: str, headers: dict[str, str] | None = None
    ) -> None:
        data = text.encode()
        self.send_response(status)
        more = {"Content-Type": kind, "Content-Length": str(len(data)), **(headers or {})}
        for name, value in more.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture
def server() -> Iterator[Server]:
    started = Server(("127.0.0.1", 0), Handler)
    started.asked, started.failure, started.document = [], None, translation(looks=2).document
    thread = threading.Thread(target=started.serve_forever)
    thread.start()
    yield started
    started.shutdown()
    thread.join()
    started.server_close()


@pytest.fixture
def page(browser: Any, server: Server) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.set_default_timeout(6000)
    opened = context.new_page()
    opened.goto(f"http://127.0.0.1:{server.server_port}/")
    opened.wait_for_selector(".ask option", state="attached")
    yield opened
    context.close()


def test_an_example_is_one_click_away(page: Any, server: Server) -> None:
    assert page.locator(".ask select").first.locator("option").all_inner_texts() == [
        run["name"] for run in RUNS if run["looks"]
    ]
    page.get_by_text("She does not eat the old apples.").click()
    page.wait_for_selector("#flow .ribbon")
    path, body = server.asked[0]
    assert path == "/v1/look"
    expected = {"run": "transformer-base", "text": "She does not eat the old apples.", "beam": 5}
    assert body == expected
    assert page.locator(".empty").count() == 0


def test_a_pair_goes_as_one_text_with_a_tab_and_survives_a_reload(
    page: Any, server: Server
) -> None:
    server.document = pairs().document
    second = page.get_by_label("Second text", exact=True)
    assert not second.is_visible()
    page.locator(".ask select").first.select_option("pairs")
    assert "what the model says of it" in page.locator(".empty p").inner_text()
    page.get_by_label("Text", exact=True).fill("A man plays.")
    page.get_by_label("Text", exact=True).press("Enter")
    assert server.asked == []  # there is nothing to go with it yet
    second.fill("Someone plays.")
    second.press("Enter")
    page.wait_for_selector("#flow .ribbon")
    assert server.asked[0][1] == {"run": "pairs", "text": "A man plays.\tSomeone plays."}
    page.get_by_role("button", name="neutral", exact=True).click()
    page.wait_for_timeout(200)
    assert server.asked[-1][1]["of"] == "neutral"
    page.reload()
    page.wait_for_selector("#flow .ribbon")
    assert second.input_value() == "Someone plays."
    assert server.asked[-1][1]["text"] == "A man plays.\tSomeone plays."


def test_enter_asks_and_shift_enter_begins_a_line(page: Any, server: Server) -> None:
    box = page.get_by_label("Text", exact=True)
    box.fill("She does not eat")
    box.press("Shift+Enter")
    box.type("apples.")
    assert server.asked == []
    box.press("Enter")
    page.wait_for_selector("#flow .ribbon")
    assert server.asked[0][1]["text"] == "She does not eat\napples."


def test_a_second_run_can_be_asked_for(page: Any, server: Server) -> None:
    page.locator(".ask summary").click()
    page.get_by_label("Beam", exact=True).fill("3")
    page.get_by_label("Compare with").select_option("rnn-attention")
    page.get_by_label("Text", exact=True).fill("A word.")
    page.get_by_role("button", name="Look", exact=True).click()
    page.wait_for_selector("#flow .ribbon")
    assert server.asked[0][1] == {
        **{"run": "transformer-base", "text": "A word."},
        **{"beam": 3, "compare": "rnn-attention"},
    }


def test_a_refusal_is_shown_and_what_was_typed_and_drawn_is_kept(page: Any, server: Server) -> None:
    page.get_by_text("She does not eat").click()
    page.wait_for_selector("#flow .ribbon")
    error = {
        "code": "too_long",
        "message": "text has 5000 characters; at most 4000",
        "field": "text",
    }
    server.failure = (422, {"error": error}, {})
    page.get_by_label("Text", exact=True).fill("Too much.")
    page.get_by_role("button", name="Look", exact=True).click()
    page.wait_for_selector(".error:not([hidden])")
    assert "at most 4000" in page.locator(".error").inner_text()
    assert page.get_by_label("Text", exact=True).input_value() == "Too much."
    assert page.locator("#flow .ribbon").count() > 0


def test_a_busy_server_is_asked_again_later(page: Any, server: Server) -> None:
    server.failure = (
        503,
        {"error": {"code": "busy", "message": "All models are busy."}},
        {"Retry-After": "7"},
    )
    page.get_by_text("She does not eat").click()
    page.wait_for_selector(".error:not([hidden])")
    assert page.locator(".error span").inner_text() == "All models are busy. Try again in 7 s."
    page.get_by_role("button", name="Try again").click()
    page.wait_for_selector("#flow .ribbon")
    assert len(server.asked) == 2
    assert server.asked[0] == server.asked[1]


def test_a_language_model_writes_first_and_is_looked_at_then(page: Any, server: Server) -> None:
    server.document = language().document
    page.locator(".ask select").first.select_option("gpt-nano")
    page.get_by_label("Text", exact=True).fill("When")
    page.get_by_role("button", name="Look", exact=True).click()
    page.wait_for_selector(".strip .token")
    (first, ask), (second, look) = server.asked
    assert (first, second) == ("/v1/predict", "/v1/look")
    assert ask == {"run": "gpt-nano", "text": "When", "most_tokens": 60, "stream": True}
    assert look == {"run": "gpt-nano", "text": "When", "most_tokens": 60}


def test_exact_weights_of_a_head_are_fetched_on_request(page: Any, server: Server) -> None:
    server.document = long_language(length=400, layers=2, heads=4).document
    page.locator(".ask select").first.select_option("gpt-nano")
    page.get_by_label("Text", exact=True).fill("Alice")
    page.get_by_role("button", name="Look", exact=True).click()
    page.wait_for_selector("canvas.long")
    page.locator('.tile[data-site="decoder.0.self"][data-head="3"]').click()
    page.get_by_text("Fetch exact weights").click()
    page.wait_for_timeout(300)
    assert server.asked[-1][1]["zoom"] == [{"site": "decoder.0.self", "head": 3}]
    assert "decoder.0.self · head 3" in page.locator("#map").inner_text()


def test_a_reload_brings_back_the_text_and_the_look(page: Any, server: Server) -> None:
    page.get_by_label("Run").select_option("rnn-attention")
    page.get_by_label("Text", exact=True).fill("Une pomme 🍎 <b>")
    page.locator(".ask summary").click()
    page.get_by_label("Beam", exact=True).fill("3")
    page.get_by_role("button", name="Look", exact=True).click()
    page.wait_for_selector("#flow .ribbon")
    page.get_by_label("Head", exact=True).select_option("1")
    page.get_by_label("Text", exact=True).fill("Something that was not asked yet")
    page.reload()
    page.wait_for_selector("#flow .ribbon")
    assert page.get_by_label("Text", exact=True).input_value() == "Something that was not asked yet"
    assert page.get_by_label("Run").input_value() == "rnn-attention"
    assert page.locator('input[aria-label="Beam"]').input_value() == "3"
    assert page.get_by_label("Head", exact=True).input_value() == "1"
    first, again = server.asked
    assert first == again


def test_a_text_that_was_only_written_outlives_a_reload(page: Any, server: Server) -> None:
    page.get_by_label("Text", exact=True).fill("Not asked")
    page.reload()
    page.wait_for_selector(".ask option", state="attached")
    assert page.get_by_label("Text", exact=True).input_value() == "Not asked"
    assert server.asked == []
    assert page.locator(".empty").count() == 1


def test_a_long_text_scrolls_in_its_box_and_leaves_room_for_the_rest(page: Any) -> None:
    page.set_viewport_size({"width": 360, "height": 640})
    page.get_by_label("Text", exact=True).fill("word " * 600)
    assert page.get_by_label("Text", exact=True).bounding_box()["height"] <= 0.4 * 640
    assert page.get_by_role("button", name="Look").bounding_box()["y"] < 640


def test_a_text_that_is_too_long_is_refused_at_once_and_kept_whole(
    page: Any, server: Server
) -> None:
    most = LIMITS["text_characters"]
    text, look = page.get_by_label("Text", exact=True), page.get_by_role("button", name="Look")
    text.fill("🍎" * most)  # as many characters, twice as many units of UTF-16
    assert look.is_enabled()
    assert page.locator(".ask [role=alert]:visible").count() == 0
    text.press("End")
    text.type("xyz")
    said = page.locator(".ask [role=alert]:visible").inner_text()
    assert f"{most + 3} characters" in said
    assert f"at most {most}" in said
    assert look.is_disabled()
    text.press("Enter")
    assert server.asked == []
    assert text.input_value() == "🍎" * most + "xyz"
    text.fill("Short.")
    assert page.locator(".ask [role=alert]:visible").count() == 0
    look.click()
    page.wait_for_selector("#flow .ribbon")
    assert server.asked[0][1]["text"] == "Short."
