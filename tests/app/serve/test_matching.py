"""Images compared with texts over HTTP: one text, or several, one a line."""

import base64
import io
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from PIL import Image

import saccade
from saccade.app.look.document import read_json
from tests.app.matching_runs import matching_run
from tests.app.serve.serving import LocalServer
from tests.app.serve.test_classifiers import error

TEXTS = ["a red circle", "a blue star", "two crosses"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    folder = tmp_path_factory.mktemp("matching")
    runs = [matching_run(folder / "cnn"), matching_run(folder / "vit", "vit-nano")]
    with LocalServer(runs) as running:
        yield running


@pytest.fixture(scope="module")
def picture() -> bytes:
    buffer = io.BytesIO()
    Image.effect_noise((64, 48), 80).convert("RGB").save(buffer, "PNG")
    return buffer.getvalue()


def ask(server: LocalServer, raw: bytes, path: str = "/v1/predict", **asked: Any) -> httpx.Response:
    return server.post(path, {"image": base64.b64encode(raw).decode(), "run": "cnn", **asked})


def test_it_says_what_the_library_says(server: LocalServer, picture: bytes) -> None:
    model = saccade.load(server.runs["cnn"].path, device="cpu")
    (one,) = ask(server, picture, text=TEXTS[1]).json()["predictions"]
    assert one["text"] == TEXTS[1]
    assert one["similarity"] == pytest.approx(model.predict(picture, TEXTS[1]).score, abs=1e-4)
    (found,) = ask(server, picture, text="\n".join(TEXTS)).json()["predictions"]
    expected = model.predict(picture, TEXTS)
    assert found["text"] == expected.text
    assert [(g["label"], g["probability"]) for g in found["guesses"]] == [
        (label, pytest.approx(p, abs=1e-3)) for label, p in expected.guesses
    ]


def test_one_image_goes_with_many_requests(server: LocalServer, picture: bytes) -> None:
    many = ask(server, picture, text=TEXTS).json()["predictions"]
    for text, one in zip(TEXTS, many, strict=True):
        (alone,) = ask(server, picture, text=text).json()["predictions"]
        assert one["similarity"] == pytest.approx(alone["similarity"], abs=1e-4)


def test_the_texts_of_a_form_are_a_list_as_its_images_are(
    server: LocalServer, picture: bytes
) -> None:
    many = ask(server, picture, text=TEXTS).json()["predictions"]
    said = [("text", (None, text)) for text in TEXTS]
    form = [("image", picture), ("run", (None, "cnn")), *said]
    answer = server.http.post("/v1/predict", files=form).json()["predictions"]
    assert answer == [
        {
            **one,
            "similarity": pytest.approx(one["similarity"], abs=1e-4),
            "guesses": told["guesses"],
        }
        for one, told in zip(many, answer, strict=True)
    ]


def test_a_look_of_one_run_or_of_two_for_any_of_the_texts(
    server: LocalServer, picture: bytes
) -> None:
    told = {run["name"]: run for run in server.get("/info").json()["runs"]}
    assert (told["cnn"]["takes"], told["cnn"]["asks"]) == ("image", True)
    lines = "\n".join(TEXTS)
    asked = {"text": lines, "compare": "vit", "of": TEXTS[2]}
    document = read_json(ask(server, picture, path="/v1/look", **asked).text)
    assert (document.kind, [look.run for look in document.looks]) == (
        "classification",
        ["cnn", "vit"],
    )
    for look in document.looks:
        assert look.classes is not None
        assert look.classes.target == TEXTS[2]
    refused = error(ask(server, picture, path="/v1/look", text=lines, of="up"))
    assert refused[:2] == (422, "of")


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({}, "text", "text is missing"),
    ({"text": " "}, "text", "cnn: ' ' has no word that the model knows"),
    ({"text": f"{TEXTS[0]}\n{'ring ' * 40}"}, "text", "but the model reads 24; shorten it"),
    ({"text": TEXTS[0], "boxes": [[1, 2, 3, 4]]}, "boxes", "compared as a whole: leave boxes out"),
    ({"text": TEXTS[0], "beam": 2}, "beam", "cnn compares and writes nothing: leave beam out"),
]


@pytest.mark.parametrize(("asked", "field", "message"), WRONG)
def test_what_is_wrong_is_refused_by_name(
    server: LocalServer, picture: bytes, asked: dict[str, Any], field: str, message: str
) -> None:
    status, told, said = error(ask(server, picture, **asked))
    assert (status, told) == (422, field)
    assert message in said
