"""Models of images and texts over HTTP: both go in, what is said of them comes out."""

import base64
import io
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from PIL import Image

import saccade
from saccade.app.kinds.joint.model import JointModel
from saccade.app.look.document import read_json
from tests.app.joint_runs import BOXES, joint_run, joint_runs
from tests.app.serve.captioners import make_captioners, upload
from tests.app.serve.serving import LocalServer
from tests.app.serve.test_classifiers import error
from tests.tasks.joint.pair_tools import ANSWERS, SIDE

ASKED = "is the ring red?"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    folder = tmp_path_factory.mktemp("joint")
    runs = [*joint_runs(folder).values(), joint_run(folder / "other", "answering", "cells", seed=3)]
    with LocalServer([*runs, make_captioners(folder)["teller"]], text_characters=60) as running:
        yield running


@pytest.fixture(scope="module")
def picture() -> bytes:
    buffer = io.BytesIO()
    Image.effect_noise((64, 48), 80).convert("RGB").save(buffer, "PNG")
    return buffer.getvalue()


def ask(
    server: LocalServer, *images: bytes, path: str = "/v1/predict", **asked: Any
) -> httpx.Response:
    coded = [base64.b64encode(raw).decode() for raw in images]
    given = {} if not coded else {"image": coded[0] if len(coded) == 1 else coded}
    return server.post(path, {**given, **asked})


@pytest.mark.slow
@pytest.mark.parametrize("name", ["answering", "referring", "fitting", "joint", "cells"])
def test_it_says_what_the_library_says_whichever_way_the_image_comes(
    server: LocalServer, picture: bytes, name: str
) -> None:
    model = saccade.load(server.runs[name].path, device="cpu")
    assert isinstance(model, JointModel)
    boxes = None if name == "cells" else BOXES
    expected = model.predict(picture, ASKED, boxes)
    sent = {} if boxes is None else {"boxes": boxes}
    form = {"run": name, "text": ASKED} | ({} if boxes is None else {"boxes": str(boxes)})
    for answer in (
        ask(server, picture, run=name, text=ASKED, **sent),
        upload(server, picture, fields=form),
    ):
        assert answer.status_code == 200, answer.text
        (found,) = answer.json()["predictions"]
        assert found["text"] == expected.text
        if expected.box is not None:
            assert found["box"] == pytest.approx(expected.box, abs=0.01)
        if expected.fits is not None:
            assert found["fits"] == pytest.approx(expected.fits, abs=1e-4)
        assert [one["label"] for one in found.get("answers", [])] == [
            one.label for one in expected.answers
        ]


def test_one_image_goes_with_many_texts_and_the_other_way(
    server: LocalServer, picture: bytes
) -> None:
    texts = ["is it red?", "how many rings?", ASKED]
    many = ask(server, picture, run="cells", text=texts).json()["predictions"]
    for text, one in zip(texts, many, strict=True):
        (alone,) = ask(server, picture, run="cells", text=text).json()["predictions"]
        assert one["answers"][0]["probability"] == pytest.approx(
            alone["answers"][0]["probability"], abs=1e-4
        )
    assert len({one["answers"][0]["probability"] for one in many}) == 3
    both = ask(server, picture, picture, run="cells", text=texts[1]).json()["predictions"]
    assert [one["text"] for one in both] == [many[1]["text"]] * 2
    told = error(ask(server, picture, picture, run="cells", text=texts))
    assert told[:2] == (422, "text")
    assert told[2] == "2 images and 3 texts: send as many of both, or one of either"


@pytest.mark.slow
def test_sentences_to_choose_from_are_one_text_with_tabs_between(
    server: LocalServer, picture: bytes
) -> None:
    sentences = ["a red ring", "the star", "two moons"]
    model = saccade.load(server.runs["choosing"].path, device="cpu")
    assert isinstance(model, JointModel)
    expected = model.predict(picture, sentences, BOXES)
    rows = ["\t".join(sentences), "a ring\ta star"]
    sent = {"run": "choosing", "boxes": BOXES}
    many = ask(server, picture, text=rows, **sent).json()["predictions"]
    assert [one["label"] for one in many[0]["answers"]] == [one.label for one in expected.answers]
    assert sum(one["probability"] for one in many[1]["answers"]) == pytest.approx(1, abs=1e-5)
    (alone,) = ask(server, picture, text=rows[0], **sent).json()["predictions"]
    assert alone["text"] == expected.text
    assert [one["probability"] for one in alone["answers"]] == pytest.approx(
        [one["probability"] for one in many[0]["answers"]], abs=1e-4
    )
    document = read_json(ask(server, picture, path="/v1/look", text=rows[0], **sent).text)
    assert [look.regions and look.regions.asked for look in document.looks] == [
        one.label for one in expected.answers
    ]
    told = {run["name"]: run for run in server.get("/info").json()["runs"]}
    assert (told["choosing"]["chooses"], told["answering"]["chooses"]) == (True, False)


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"run": "cells"}, "text", "text is missing; it must be a text of at most 60 characters"),
    ({"run": "cells", "text": "x" * 61}, "text", "the text has 61 characters; there may be 60"),
    ({"run": "cells", "text": " "}, "text", "cells: ' ' has no word that the model knows"),
    (
        {"run": "choosing", "text": ASKED, "boxes": BOXES},
        "text",
        "choosing: 'is the ring red?' is one sentence, and there is nothing to choose from",
    ),
    ({"run": "cells", "text": ASKED, "boxes": BOXES}, "boxes", "leave boxes out"),
    ({"run": "answering", "text": ASKED}, "boxes", "answering looks at boxes: send them as boxes"),
    ({"run": "answering", "text": ASKED, "boxes": [[1, 2]]}, "boxes", "boxes[0]: a box is [left"),
    ({"run": "answering", "text": ASKED, "boxes": 3}, "boxes", "boxes=3 must be a list of at most"),
    ({"run": "answering", "text": ASKED, "boxes": BOXES * 40}, "boxes", "of at most 100 like"),
    ({"run": "teller", "boxes": BOXES}, "boxes", "teller takes no boxes: leave them out"),
    ({"run": "teller", "text": ASKED}, "text", "teller takes an image, and no text"),
    ({"run": "cells", "text": ASKED, "beam": 2}, "beam", "answers questions and writes nothing"),
]


@pytest.mark.parametrize(("asked", "field", "message"), WRONG)
def test_what_is_wrong_is_refused_by_name(
    server: LocalServer, picture: bytes, asked: dict[str, Any], field: str, message: str
) -> None:
    status, told, said = error(ask(server, picture, **asked))
    assert (status, told) == (422, field)
    assert message in said


def test_without_an_image_it_is_refused(server: LocalServer, picture: bytes) -> None:
    status, field, said = error(ask(server, run="cells", text=ASKED))
    assert (status, field) == (422, "image")
    assert said.startswith("image is missing; it must be an image file in base64")
    several = error(ask(server, picture, picture, run="answering", text=ASKED, boxes=BOXES))
    assert several[1:] == ("boxes", "boxes are of one image: send one at a time")


def test_a_look_of_one_run_or_of_two(server: LocalServer, picture: bytes) -> None:
    told = {run["name"]: run for run in server.get("/info").json()["runs"]}
    assert (told["cells"]["takes"], told["cells"]["asks"], told["cells"]["boxes"]) == (
        "image",
        True,
        False,
    )
    assert (told["answering"]["boxes"], told["answering"]["image"]) == (True, SIDE)
    asked = {"run": "cells", "compare": "other", "text": ASKED}
    document = read_json(ask(server, picture, path="/v1/look", **asked).text)
    assert (document.kind, [look.run for look in document.looks]) == ("joint", ["cells", "other"])
    (said,) = ask(server, picture, run="cells", text=ASKED).json()["predictions"]
    assert document.looks[0].text == said["text"]
    boxed = {"run": "answering", "text": ASKED, "boxes": BOXES, "of": ANSWERS.names[3]}
    document = read_json(ask(server, picture, path="/v1/look", **boxed).text)
    regions, classes = document.looks[0].regions, document.looks[0].classes
    assert regions is not None
    assert classes is not None
    assert (len(regions.boxes), len(regions.without), regions.named) == (4, 4, True)
    assert classes.target == ANSWERS.names[3]
    refused = error(ask(server, picture, path="/v1/look", **{**boxed, "of": "up"}))
    assert refused[1] == "of"
