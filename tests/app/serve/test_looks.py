"""S15: looks over HTTP, and how large they may become."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from saccade.app.look.document import LookDocument
from tests.app.serve.serving import LocalServer

SENTENCE = "The old dog eats an apple."


def look(server: LocalServer, text: str, **fields: Any) -> dict[str, Any]:
    answer = server.post("/v1/look", {"text": text, **fields})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_look_at_a_translation_is_an_n_best_list(server: LocalServer) -> None:
    document = look(server, SENTENCE, beam=3)
    assert (document["format"], document["version"]) == ("saccade-look", 2)
    assert document["kind"] == "translation"
    assert [one["label"] for one in document["looks"]] == ["best", "2nd", "3rd"]
    assert (
        document["looks"][0]["text"]
        == (server.predict(SENTENCE, beam=3).json()["predictions"][0]["text"])
    )


def test_a_look_shows_the_text_that_a_stream_has_written(server: LocalServer) -> None:
    fields = {"run": "writer", "most_tokens": 8, "temperature": 0.7, "seed": 3}
    written = server.predict("We eat", **fields).json()["predictions"][0]
    (seen,) = look(server, "We eat", **fields)["looks"]
    assert seen["text"].strip() == written["text"].strip()


def test_two_runs_are_compared(server: LocalServer) -> None:
    document = look(server, SENTENCE, compare="other", beam=2)
    assert [one["run"] for one in document["looks"]] == ["translator", "other"]


@pytest.mark.parametrize(
    ("fields", "status", "field", "said"),
    [
        ({"compare": "translator"}, 422, "compare", "another run"),
        ({"compare": "writer"}, 422, "compare", "do different work"),
        ({"compare": "none"}, 404, "compare", "there is no run 'none'"),
        ({"run": "rnn"}, 422, "run", "rnn has no attention to look at"),
        ({"run": "writer", "zoom": [{"site": "no", "head": 0}]}, 422, "zoom", "no site 'no'"),
        ({"zoom": [{"site": "decoder.0.self", "head": 9}]}, 422, "zoom", "has no head 9; it has"),
        ({"zoom": [{"site": "x", "head": -1}]}, 422, "zoom", "a list of at most 16"),
        ({"zoom": [{"site": "x", "head": 0}] * 17}, 422, "zoom", "a list of at most 16"),
        ({"beam": 17}, 422, "beam", "from 1 to 16"),
        ({"most_tokens": 513}, 422, "most_tokens", "from 0 to 512"),
        ({"text": ["a"]}, 422, "text", "a text of at most"),
        ({"text": ""}, 422, "text", "nothing to translate"),
        ({"run": "writer", "text": "日" * 200}, 422, "text", "has 602 tokens; writer sees 256"),
        ({"run": "writer", "text": "", "most_tokens": 0}, 422, "text", "nothing to look at"),
        ({"path": "/etc/passwd"}, 422, "path", "is not a field"),
    ],
    ids=str,
)
def test_what_cannot_be_looked_at_is_told_why(
    server: LocalServer, fields: dict[str, Any], status: int, field: str, said: str
) -> None:
    answer = server.post("/v1/look", {"text": SENTENCE, **fields})
    assert (answer.status_code, answer.json()["error"]["field"]) == (status, field)
    assert said in answer.json()["error"]["message"]


@pytest.fixture(scope="module")
def long(runs: dict[str, Path]) -> Iterator[LocalServer]:
    with LocalServer(
        [runs["long"]], look_bytes=1_000_000, text_characters=8000, text_tokens=3000
    ) as running:
        yield running


@pytest.mark.slow
def test_a_long_look_keeps_to_its_budget(long: LocalServer) -> None:
    """Every weight would take 4 layers · 8 heads · 1500² · 2 bytes = 144 MB."""
    answer = long.post("/v1/look", {"text": "We eat the bread. " * 160, "most_tokens": 2})
    assert answer.status_code == 200, answer.text
    document = answer.json()
    assert len(document["looks"][0]["axes"]["text"]["tokens"]) > 1500
    assert len(answer.content) < 2_000_000
    assert document["notes"]


def test_a_look_that_is_too_large_all_the_same_is_refused(
    long: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = long.service.batcher._lines["long"]
    large = LookDocument(kind="language", title="", notes=[], looks=[], blobs=["x" * 2_000_001])
    monkeypatch.setattr(line.decode._run.serving, "look", lambda *_: large)
    answer = long.post("/v1/look", {"text": "We"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "too_large")
