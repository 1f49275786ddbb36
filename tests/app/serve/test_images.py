"""Captioners over HTTP: how images come in, and what comes out."""

import base64
import io
import json
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image

import saccade
from saccade.app.kinds.captioning.kind import CaptioningModel
from tests.app.serve.captioners import as_json, images, make_captioners, texts, upload
from tests.app.serve.serving import LocalServer
from tests.data.images_odd import black_png, broken, many_scans, odd, stored

LIMIT = 300_000


@pytest.fixture(scope="module")
def server(
    runs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalServer]:
    made = make_captioners(tmp_path_factory.mktemp("captioners"))
    paths = [*made.values(), runs["translator"]]
    with LocalServer(paths, image_bytes=LIMIT, image_pixels=25_000_000) as running:
        yield running


def error(answer: httpx.Response) -> tuple[int, str, str | None, str]:
    told = answer.json()["error"]
    return answer.status_code, told["code"], told["field"], told["message"]


@pytest.mark.slow
def test_a_caption_is_what_the_library_says_whichever_way_the_image_comes(
    server: LocalServer,
) -> None:
    model = saccade.load(server.runs["captioner"].path, device="cpu")
    assert isinstance(model, CaptioningModel)
    for raw in images(2):
        expected = model.predict(raw, beam=3, n_best=2)
        fields = {"beam": "3", "n_best": "2"}
        url = "data:image/png;base64," + base64.b64encode(raw).decode()
        for answer in (
            upload(server, raw, fields=fields),
            as_json(server, raw, beam=3, n_best=2),
            server.post("/v1/predict", {"image": url, "beam": 3, "n_best": 2}),
        ):
            (found,) = answer.json()["predictions"]
            assert answer.json()["run"] == "captioner"
            assert found["text"] == expected.text
            assert found["score"] == pytest.approx(expected.score, abs=1e-4)
            assert [one["text"] for one in found["others"]] == [one.text for one in expected.others]


def test_several_images_are_answered_in_their_order(server: LocalServer) -> None:
    some = images(5)
    run = {"run": "larger"}
    alone = [upload(server, raw, fields=run).json()["predictions"][0] for raw in some]
    scores = [one["score"] for one in alone]
    assert min(abs(a - b) for a, b in combinations(scores, 2)) > 2e-4  # no two say the same
    for answer in (upload(server, *some, fields=run), as_json(server, *some, **run)):
        assert texts(answer) == [one["text"] for one in alone]
        found = [one["score"] for one in answer.json()["predictions"]]
        assert found == pytest.approx(scores, abs=1e-4)


def test_a_caption_is_streamed(server: LocalServer) -> None:
    (raw,) = images(1)
    body = {"image": base64.b64encode(raw).decode(), "beam": 1, "stream": True}
    with httpx.stream("POST", f"{server.url}/v1/predict", json=body) as answer:
        *drafts, last = (
            json.loads(line.removeprefix("data: ")) for line in answer.iter_lines() if line
        )
    (whole,) = as_json(server, raw, beam=1).json()["predictions"]
    assert last == {"done": True, **whole}
    assert drafts
    assert all(whole["text"].startswith(draft["text"]) for draft in drafts)


def test_what_is_drawn_depends_on_its_seed_alone(server: LocalServer) -> None:
    some = images(3)
    fields = {"run": "larger", "sample": True}
    drawn = [texts(as_json(server, raw, seed=5, **fields))[0] for raw in some]
    assert texts(as_json(server, *some, seed=5, **fields)) == drawn
    assert texts(as_json(server, *some, seed=6, **fields)) != drawn


def test_info_tells_what_each_run_takes(server: LocalServer) -> None:
    info = server.get("/info").json()
    assert [(run["kind"], run["takes"], run.get("image")) for run in info["runs"]] == [
        ("captioning", "image", 32),
        ("captioning", "image", 48),
        ("captioning", "image", 32),
        ("translation", "text", None),
    ]
    assert [run["looks"] for run in info["runs"]] == [True, True, False, True]
    assert info["limits"]["image_bytes"] == LIMIT
    schema = server.get("/openapi.json").json()["paths"]["/v1/look"]["post"]["requestBody"]
    assert set(schema["content"]) == {"application/json", "multipart/form-data"}


def test_texts_are_translated_beside_captioners(server: LocalServer) -> None:
    asked = {"run": "translator", "beam": 2}
    plain = texts(server.predict("We eat.", **asked))
    form = {"text": (None, "We eat."), "run": (None, "translator"), "beam": (None, "2")}
    assert texts(server.http.post("/v1/predict", files=form)) == plain


@pytest.mark.slow
@pytest.mark.parametrize("name", odd())
def test_odd_images_are_described(server: LocalServer, name: str) -> None:
    """S13, D2."""
    assert texts(upload(server, odd()[name]))
    assert texts(as_json(server, odd()[name], run="larger", beam=1))


@pytest.mark.parametrize("name", broken())
def test_broken_images_are_refused_with_the_reason(server: LocalServer, name: str) -> None:
    """S13, D2."""
    raw, begins = broken()[name]
    for path in ("/v1/predict", "/v1/look"):
        for answer in (upload(server, raw, path=path), as_json(server, raw, path=path)):
            status, code, field, message = error(answer)
            assert (status, code, field) == (422, "invalid", "image")
            assert message.startswith(begins)
    assert server.get("/health").status_code == 200


def test_the_server_allows_fewer_pixels_than_the_library(server: LocalServer) -> None:
    status, _, field, message = error(upload(server, black_png(6000, 6000)))
    assert (status, field) == (422, "image")
    assert message == "too large: 6000×6000 is over 25,000,000 pixels; make it smaller"


GOOD = base64.b64encode(images(1)[0]).decode()
REFUSED: dict[str, tuple[dict[str, Any], int, str, str]] = {
    "nothing": ({}, 422, "image", "image is missing; it must be an image file in base64"),
    "a text": ({"text": "a"}, 422, "text", "captioner takes an image, and no text"),
    "both": ({"text": "a", "image": GOOD}, 422, "text", "takes an image, and no text"),
    "a number": ({"image": 3}, 422, "image", "image=3 must be an image file in base64"),
    "no image": ({"image": []}, 422, "image", "holds 0 images; there may be 1 to 32"),
    "many": ({"image": [GOOD] * 33}, 422, "image", "holds 33 images; there may be 1 to 32"),
    "one is bad": ({"image": [GOOD, ""]}, 422, "image", "empty image"),
    "no base64": ({"image": "§§"}, 422, "image", "not base64"),
    "litter": ({"image": f"!!!!{GOOD}"}, 422, "image", "not base64"),
    "half of it": ({"image": GOOD[:-3]}, 422, "image", "not base64"),
    "a path": ({"image": "/etc/passwd"}, 422, "image", "not base64"),
    "an address": ({"image": "data:text/plain,hello"}, 422, "image", "not base64"),
    "count": ({"image": GOOD, "count": 2}, 422, "count", "ask for n_best instead of count"),
    "length": ({"image": GOOD, "most_tokens": 9}, 422, "most_tokens", "ends by itself"),
    "beam": ({"image": GOOD, "beam": 17}, 422, "beam", "from 1 to 16"),
    "stream": ({"image": [GOOD], "stream": True}, 422, "stream", "a stream is of one image"),
    "run": ({"image": GOOD, "run": "none"}, 404, "run", "there is no run 'none'"),
    "translator": ({"image": GOOD, "run": "translator"}, 422, "image", "takes a text, and no"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_request_for_a_caption_is_told_why(server: LocalServer, name: str) -> None:
    body, status, field, said = REFUSED[name]
    told = error(server.post("/v1/predict", body))
    assert (told[0], told[2]) == (status, field)
    assert said in told[3]


LOOKS: dict[str, tuple[dict[str, Any], str, str]] = {
    "two": ({"image": [GOOD, GOOD]}, "image", "must be one image file"),
    "nothing": ({}, "image", "image is missing"),
    "no attention": ({"image": GOOD, "run": "teller"}, "run", "no attention to look at"),
    "itself": ({"image": GOOD, "compare": "captioner"}, "compare", "another run"),
    "a translator": ({"image": GOOD, "compare": "translator"}, "compare", "different work"),
    "no site": ({"image": GOOD, "zoom": [{"site": "x", "head": 0}]}, "zoom", "no site 'x'"),
}


@pytest.mark.parametrize("name", LOOKS)
def test_what_is_no_request_for_a_look_is_told_why(server: LocalServer, name: str) -> None:
    body, field, said = LOOKS[name]
    status, _, found, message = error(server.post("/v1/look", body))
    assert (status, found) == (422, field)
    assert said in message


def form(*parts: tuple[str, bytes], end: bytes = b"--x--\r\n") -> bytes:
    heads = (
        f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'.encode() + content
        for name, content in parts
    )
    return b"".join(head + b"\r\n" for head in heads) + end


IMAGE = ("image", images(1)[0])
FORMS: dict[str, tuple[bytes, str, int, str | None, str]] = {
    "no boundary": (form(IMAGE), "", 400, None, "names no boundary"),
    "endless boundary": (form(IMAGE), "; boundary=" + "y" * 71, 400, None, "of 1 to 70"),
    "other boundary": (form(IMAGE), "; boundary=y", 400, None, "the form"),
    "no form": (b"hello", "; boundary=x", 400, None, "cannot be read"),
    "nothing": (b"", "; boundary=x", 400, None, "cut short"),
    "cut short": (form(IMAGE, end=b""), "; boundary=x", 400, None, "cut short"),
    "no name": (
        b"--x\r\nContent-Type: a/b\r\n\r\n1\r\n--x--\r\n",
        "; boundary=x",
        400,
        None,
        "no name",
    ),
    "many parts": (form(*[("a", b"")] * 3000), "; boundary=x", 400, None, "more than"),
    "twice": (form(IMAGE, ("beam", b"1"), ("beam", b"2")), "; boundary=x", 400, "beam", "twice"),
    "no UTF-8": (form(IMAGE, ("run", b"\xff")), "; boundary=x", 400, "run", "not UTF-8"),
    "beam": (form(IMAGE, ("beam", b"many")), "; boundary=x", 422, "beam", "from 1 to 16"),
    "stream": (form(IMAGE, ("stream", b"yes")), "; boundary=x", 422, "stream", "true or false"),
    "unknown": (form(IMAGE, ("beams", b"1")), "; boundary=x", 422, "beams", "is not a field"),
    "a file's name": (form(("file", IMAGE[1])), "; boundary=x", 422, "file", "there are: run"),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_form_that_is_none_is_told_why(server: LocalServer, name: str) -> None:
    body, options, status, field, said = FORMS[name]
    headers = {"Content-Type": f"multipart/form-data{options}"}
    told = error(server.post("/v1/predict", content=body, headers=headers))
    assert (told[0], told[2]) == (status, field)
    assert said in told[3]


def test_a_look_at_two_files_is_refused_without_their_bytes(server: LocalServer) -> None:
    body, headers = form(IMAGE, IMAGE), {"Content-Type": "multipart/form-data; boundary=x"}
    status, _, field, message = error(server.post("/v1/look", content=body, headers=headers))
    assert (status, field) == (422, "image")
    assert message == "image=(2 files) must be one image file, in JSON as base64"


def test_the_largest_body_with_an_image_is_read(server: LocalServer) -> None:
    body = json.dumps({"image": GOOD, "beam": 1}).encode()
    headers = {"Content-Type": "application/json"}
    fits = server.post("/v1/predict", content=body.ljust(LIMIT), headers=headers)
    assert fits.status_code == 200
    more = server.post("/v1/predict", content=body.ljust(LIMIT + 1), headers=headers)
    assert error(more)[:2] == (413, "too_large")
    assert error(upload(server, bytes(LIMIT)))[:2] == (413, "too_large")


def test_a_body_may_be_long_for_its_image_only(server: LocalServer) -> None:
    litter = b'{"image": [' + b"[]," * 60_000 + b"[]]}"
    headers = {"Content-Type": "application/json"}
    told = error(server.post("/v1/predict", content=litter, headers=headers))
    assert told[:2] == (413, "too_large")
    assert "must be mostly image" in told[3]


@pytest.mark.slow
def test_a_look_is_at_the_caption_that_is_predicted(server: LocalServer) -> None:
    """Whatever the two runs that are compared see of a large picture."""
    (raw,) = (stored(Image.open(io.BytesIO(one)).resize((900, 700)), "JPEG") for one in images(1))
    document = upload(server, raw, path="/v1/look", fields={"beam": "3"}).json()
    assert (document["version"], document["kind"]) == (2, "caption")
    expected = as_json(server, raw, beam=3, n_best=3).json()["predictions"][0]
    assert [one["text"] for one in document["looks"]] == [
        expected["text"],
        *(one["text"] for one in expected["others"]),
    ]
    (image,) = document["images"]
    assert (image["side"], image["seen"]) == (384, 32)  # people see more than the model
    both = as_json(server, raw, path="/v1/look", compare="larger", beam=2).json()
    assert [(one["run"], one["text"]) for one in both["looks"]] == [
        (run, texts(as_json(server, raw, run=run, beam=2))[0]) for run in ("captioner", "larger")
    ]


def test_an_image_that_takes_too_long_is_named_with_the_limit(tmp_path: Path) -> None:
    paths = [make_captioners(tmp_path)["captioner"]]
    with LocalServer(paths, image_s=0.05) as server:
        slow = upload(server, many_scans(5000, scans=44))
    assert error(slow) == (
        *(422, "invalid", "image"),
        "too slow: the images took over 0.05 s (image_s) to decode; make them smaller",
    )
