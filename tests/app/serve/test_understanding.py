"""Texts that are understood over HTTP: alone, many at once, and in pairs."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import saccade
from saccade.app.kinds.understanding.model import UnderstandingModel
from saccade.app.look.document import read_json
from tests.app.serve.serving import LocalServer
from tests.app.understanders import trained_understander
from tests.tasks.understanding.texts import sentence

ASKED = "the old dog sleeps ."


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    folder = tmp_path_factory.mktemp("served")
    runs: list[Path] = [
        trained_understander(folder / kind, kind) for kind in ("classes", "number", "tags")
    ]
    pair = trained_understander(folder / "pairs", "labels", pairs=True)
    with LocalServer([*runs, pair]) as running:
        yield running


def loaded(server: LocalServer, name: str) -> UnderstandingModel:
    model = saccade.load(server.runs[name].path, device="cpu")
    assert isinstance(model, UnderstandingModel)
    return model


def test_what_is_said_is_what_the_library_says(server: LocalServer) -> None:
    texts = [sentence(n) for n in range(5)]
    for name in ("classes", "number", "tags"):
        answer = server.predict(texts, run=name)
        assert answer.status_code == 200, answer.text
        found = answer.json()["predictions"]
        assert [one["text"] for one in found] == [
            p.text for p in loaded(server, name).predict(texts)
        ]
    tagged = server.predict(ASKED, run="tags").json()["predictions"][0]
    assert tagged["words"] == ASKED.split()
    assert len(tagged["tags"]) == len(tagged["probability"]) == len(tagged["words"])
    classes = server.predict(ASKED, run="classes").json()["predictions"][0]
    assert classes["labels"] == [classes["guesses"][0]["label"]]


def test_pairs_have_a_tab_between_them(server: LocalServer) -> None:
    answer = server.predict(f"{ASKED}\ta cat", run="labels")
    assert answer.status_code == 200, answer.text
    expected = loaded(server, "labels").predict((ASKED, "a cat"))
    assert answer.json()["predictions"][0]["labels"] == expected.labels
    refused = server.predict(ASKED, run="labels")
    assert refused.status_code == 422
    told = refused.json()["error"]
    assert told["field"] == "text"
    assert "give two with a tab between them" in told["message"]
    about = {run["name"]: run for run in server.get("/info").json()["runs"]}
    assert [about[name]["pairs"] for name in ("classes", "labels")] == [False, True]


def test_requests_that_come_together_do_not_change_one_another(server: LocalServer) -> None:
    texts = [sentence(n) for n in range(12)]
    alone = [server.predict(text, run="classes").json()["predictions"] for text in texts]
    ask = partial(server.predict, run="classes")
    with ThreadPoolExecutor(12) as pool:
        together = list(pool.map(ask, texts))
    for one, other in zip(alone, together):
        found = other.json()["predictions"]
        assert found[0]["labels"] == one[0]["labels"]
        assert found[0]["guesses"][0]["probability"] == pytest.approx(
            one[0]["guesses"][0]["probability"], abs=1e-5
        )


def test_a_look_is_at_the_class_that_is_asked_for(server: LocalServer) -> None:
    model = loaded(server, "classes")
    for of in (None, *model.labels):
        more: dict[str, Any] = {} if of is None else {"of": of}
        answer = server.post("/v1/look", {"run": "classes", "text": ASKED, **more})
        assert answer.status_code == 200, answer.text
        (look,) = read_json(answer.text).looks
        assert look.classes is not None
        assert look.classes.target == (of or model.predict(ASKED).text)
    for wrong, field in (({"of": "poem"}, "of"), ({"text": ""}, "text")):
        body = {"run": "classes", "text": ASKED, "most_tokens": 0, **wrong}
        refused = server.post("/v1/look", body)
        assert (refused.status_code, refused.json()["error"]["field"]) == (422, field)


def test_nothing_is_written_so_nothing_of_that_is_taken(server: LocalServer) -> None:
    for field, value in (("beam", 3), ("count", 2), ("sample", True), ("most_tokens", 5)):
        refused = server.predict(ASKED, run="classes", **{field: value})
        assert (refused.status_code, refused.json()["error"]["field"]) == (422, field)
