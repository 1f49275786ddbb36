"""Served mode for images: one goes in by choosing, dropping or pasting it."""

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from PIL import Image

from saccade.app.look.html import page_html
from tests.browser.captioned import captions
from tests.browser.classified import classes
from tests.browser.documents import translation
from tests.browser.paired import paired

pytestmark = pytest.mark.slow
ADDRESS = "http://127.0.0.1:9/"  # nothing listens there: every request is answered here
RUNS = [
    {"name": "teller", "kind": "captioning", "takes": "image", "looks": True},
    {"name": "other", "kind": "captioning", "takes": "image", "looks": True},
    {"name": "translator", "kind": "translation", "takes": "text", "looks": True},
    {"name": "classifier", "kind": "classification", "takes": "image", "looks": True},
    {"name": "asker", "kind": "answering", "takes": "image", "asks": True, "looks": True},
    {
        "name": "boxer",
        "kind": "answering",
        "takes": "image",
        "asks": True,
        "boxes": True,
        "looks": True,
    },
]
FOUND = [[1, 2, 10, 12], [3, 3, 3, 9], [0.5, 4, 20, 18]]  # the second has no area
DROP = """(zone) => {
  const data = new DataTransfer();
  data.items.add(new File(["dropped"], "dropped.png", { type: "image/png" }));
  zone.dispatchEvent(new DragEvent("drop", { dataTransfer: data, cancelable: true }));
}"""


@dataclass
class Served:
    page: Any
    asked: list[tuple[str, bytes]] = field(default_factory=list[tuple[str, bytes]])
    complaints: list[str] = field(default_factory=list[str])
    failure: dict[str, Any] | None = None
    more: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def answer(self, route: Any) -> None:
        request, path = route.request, "/" + route.request.url.removeprefix(ADDRESS)
        if path == "/":
            route.fulfill(body=page_html(None, served=True), content_type="text/html")
        elif path == "/info":
            route.fulfill(json={"runs": [*RUNS, *self.more], "limits": {}})
        elif path == "/v1/predict":
            self.asked.append((request.headers["content-type"], request.post_data_buffer or b""))
            found = [{"label": "ring", "score": 0.9, "box": box} for box in FOUND]
            route.fulfill(json={"predictions": [{"objects": found}]})
        else:
            self.asked.append((request.headers["content-type"], request.post_data_buffer or b""))
            if self.failure is not None:
                route.fulfill(status=422, json=self.failure)
                self.failure = None
                return
            body = self.asked[-1][1]
            makers = {b"classifier": classes, b"translator": translation}
            if b"asker" in body or b"boxer" in body:
                route.fulfill(json=paired())
                return
            made = next((make() for run, make in makers.items() if run in body), captions())
            route.fulfill(json=made.document)


@pytest.fixture
def served(browser: Any) -> Iterator[Served]:
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    context.set_default_timeout(6000)
    one = Served(context.new_page())
    context.route("**/*", one.answer)
    one.page.on("console", lambda message: one.complaints.append(message.text))
    one.page.on("pageerror", lambda error: one.complaints.append(str(error)))
    one.page.goto(ADDRESS)
    one.page.wait_for_selector(".drop:not([hidden])")
    yield one
    context.close()
    assert [said for said in one.complaints if "422" not in said] == []


@pytest.fixture
def photo() -> dict[str, Any]:
    buffer = io.BytesIO()
    Image.fromarray(np.full((20, 30, 3), 90, dtype=np.uint8)).save(buffer, "PNG")
    return {"name": "photo.png", "mimeType": "image/png", "buffer": buffer.getvalue()}


def test_a_chosen_picture_is_sent_as_it_is_and_its_caption_shown(
    served: Served, photo: dict[str, Any]
) -> None:
    assert not served.page.get_by_label("Text", exact=True).is_visible()
    assert "Give it an image" in served.page.locator(".empty").inner_text()
    served.page.get_by_label("Image").set_input_files(photo)
    served.page.wait_for_selector(".told-word")
    kind, body = served.asked[0]
    assert kind.startswith("multipart/form-data")
    assert photo["buffer"] in body
    parts = {name: value for name, value in fields_of(body).items() if name != "image"}
    assert parts == {"run": "teller", "beam": "5"}
    assert "photo.png" in served.page.locator(".drop").inner_text()


def fields_of(body: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    mark = body.split(b"\r\n", 1)[0]
    for part in body.split(mark)[1:-1]:
        head, _, value = part.strip(b"\r\n").partition(b"\r\n\r\n")
        name = head.split(b'name="')[1].split(b'"')[0].decode()
        found[name] = value.decode(errors="replace")
    return found


def test_a_dropped_picture_is_looked_at_beside_another_run(served: Served) -> None:
    served.page.get_by_text("Options").click()
    served.page.get_by_label("Compare with").select_option("other")
    served.page.locator(".drop").evaluate(DROP)
    served.page.wait_for_selector(".told-word")
    sent = fields_of(served.asked[0][1])
    assert (sent["image"], sent["compare"]) == ("dropped", "other")


def test_a_picture_that_is_refused_may_be_followed_by_another(
    served: Served, photo: dict[str, Any]
) -> None:
    message = "no image: it does not begin like any of JPEG, PNG; convert it"
    served.failure = {"error": {"code": "invalid", "message": message, "field": "image"}}
    served.page.get_by_label("Image").set_input_files(photo)
    served.page.wait_for_selector(".error:not([hidden])")
    assert message in served.page.locator(".error").inner_text()
    served.page.get_by_text("Try again").click()
    served.page.wait_for_selector(".told-word")
    assert len(served.asked) == 2


def test_a_text_run_takes_text_again(served: Served) -> None:
    served.page.get_by_label("Run", exact=True).select_option("translator")
    assert not served.page.locator(".drop").is_visible()
    served.page.get_by_label("Text", exact=True).fill("a dog")
    served.page.get_by_role("button", name="Look").click()
    served.page.wait_for_selector(".view.translation")
    kind, body = served.asked[0]
    assert kind == "application/json"
    assert json.loads(body) == {"run": "translator", "text": "a dog", "beam": 5}


def test_a_classifier_is_asked_for_nothing_but_the_image(
    served: Served, photo: dict[str, Any]
) -> None:
    served.page.get_by_label("Run", exact=True).select_option("classifier")
    assert "what it is taken for" in served.page.locator(".empty").inner_text()
    assert not served.page.get_by_text("Options").is_visible()
    served.page.get_by_label("Image").set_input_files(photo)
    served.page.wait_for_selector(".guess")
    sent = fields_of(served.asked[0][1])
    assert {name: value for name, value in sent.items() if name != "image"} == {"run": "classifier"}


def test_a_guess_asks_what_in_the_same_image_speaks_for_it(
    served: Served, photo: dict[str, Any]
) -> None:
    served.page.get_by_label("Run", exact=True).select_option("classifier")
    served.page.get_by_label("Image").set_input_files(photo)
    guess = served.page.locator(".guess button").first
    label = guess.inner_text()
    guess.click()
    served.page.wait_for_selector(".busy", state="hidden")
    first, second = (fields_of(body) for _, body in served.asked)
    assert second == {**first, "of": label}
    said = served.page.locator(".guess .guess-name").first
    assert said.evaluate("node => node.tagName") == "SPAN"  # what is shown need not be asked for


def test_looking_without_a_picture_asks_for_one(served: Served) -> None:
    served.page.get_by_role("button", name="Look").click()
    assert served.asked == []
    assert served.page.evaluate("document.activeElement.getAttribute('aria-label')") == "Image"


def test_an_image_waits_for_its_text_and_both_are_sent(
    served: Served, photo: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("saccade.tasks.joint.data.HELD_BACK", 6)
    served.page.get_by_label("Run").select_option("asker")
    assert "ask a question" in served.page.locator(".empty").inner_text()
    served.page.get_by_label("Image").set_input_files(photo)
    served.page.wait_for_timeout(200)
    assert served.asked == []
    served.page.get_by_label("Text", exact=True).fill("what is it?")
    served.page.get_by_label("Text", exact=True).press("Enter")
    served.page.wait_for_selector(".region-item")
    (kind, body), *others = served.asked
    assert (others, kind.startswith("multipart/form-data")) == ([], True)
    parts = {name: value for name, value in fields_of(body).items() if name != "image"}
    assert parts == {"run": "asker", "text": "what is it?"}


def test_boxes_are_those_of_a_detector_that_is_served_beside_it(
    served: Served, photo: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("saccade.tasks.joint.data.HELD_BACK", 6)

    def ask() -> None:
        served.page.get_by_label("Run").select_option("boxer")
        served.page.get_by_label("Text", exact=True).fill("what is it?")
        served.page.get_by_label("Image").set_input_files(photo)

    ask()
    served.page.wait_for_selector(".error:not([hidden])")
    told = served.page.locator(".error").inner_text()
    assert "boxer looks at boxes, and no detector is served beside it" in told
    assert "saccade serve RUN DETECTOR" in told
    served.more = [{"name": "finder", "kind": "detection", "takes": "image", "looks": True}]
    served.page.reload()
    served.page.wait_for_selector(".drop:not([hidden])")
    ask()
    served.page.wait_for_selector(".region-item")
    first, second = (fields_of(body) for _, body in served.asked)
    assert (first["run"], first["threshold"]) == ("finder", "0.3")
    assert json.loads(second["boxes"]) == [FOUND[0], FOUND[2]]
