"""S6 and S7: odd texts are read as texts, and odd numbers are refused with the cap."""

from typing import Any

import pytest

from saccade.data.tokens.vocabulary import CONTROL, Vocabulary
from tests.app.serve.serving import LocalServer

TEXTS = {
    "NUL": "a\x00b",
    "right to left": "שלום \u202eworld\u202c مرحبا",
    "joined emoji": "👩\u200d👩\u200d👧\u200d👦",
    "combining": "e" + "\u0301" * 30,
    "unseen language": "日本語のテキストです。",
    "line breaks": "one\r\ntwo\u2028three\x85four",
    "one word": "a" * 60,
    "markup": "<script>alert(1)</script>",
    "byte order mark": "\ufeffWe eat.",
    "not a character": "\uffff\ufdd0",
    **{name: f"We eat {name} bread." for name in ("<eos>", "</s>", "<s>", "<pad>", *CONTROL)},
}


@pytest.mark.slow
@pytest.mark.parametrize("run", ["translator", "writer", "rnn"])
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_any_text_is_read(server: LocalServer, run: str, text: str) -> None:
    fields = {"beam": 1} if run == "translator" else {"most_tokens": 2}
    answer = server.predict(text, run=run, **fields)
    assert answer.status_code == 200
    prediction = answer.json()["predictions"][0]
    assert prediction["source" if run == "translator" else "prompt"] == text


@pytest.mark.parametrize("name", ["<eos>", "</s>", "<s>", *CONTROL])
def test_what_looks_like_a_control_token_is_text(server: LocalServer, name: str) -> None:
    for run in server.runs.values():
        tokens = run.tool.vocabulary.encode(f"We eat {name} bread.")
        assert min(tokens) >= len(CONTROL)


@pytest.mark.parametrize("level", ["bpe", "words", "characters"])
def test_no_kind_of_vocabulary_turns_text_into_control_tokens(level: Any) -> None:
    texts = ["We eat bread.", *CONTROL, "</s> <eos>"]
    vocabulary = Vocabulary.train(texts, level=level, size=400)
    for text in texts:
        assert not {0, 1, 2} & set(vocabulary.encode(text))


@pytest.mark.parametrize(
    ("run", "text", "said"),
    [
        ("translator", "", "nothing to translate"),
        ("translator", " \n\t\u00a0 ", "nothing to translate"),
        ("translator", "\ud800", "half of a surrogate pair"),
        ("writer", "ok \udfff", "half of a surrogate pair"),
        ("translator", "x" * 2001, "has 2001 characters; there may be 2000"),
        ("translator", "日" * 200, "has 602 tokens; translator sees 300"),
        ("writer", "日" * 200, "has 602 tokens; writer sees 256"),
    ],
    ids=lambda value: ascii(value)[:30],
)
def test_what_cannot_be_read_is_refused_with_the_numbers(
    server: LocalServer, run: str, text: str, said: str
) -> None:
    body = f'{{"run": "{run}", "text": {ascii_json(text)}}}'.encode()
    headers = {"Content-Type": "application/json"}
    answer = server.post("/v1/predict", content=body, headers=headers)
    assert answer.status_code == 422
    assert answer.json()["error"]["field"] == "text"
    assert said in answer.json()["error"]["message"]


def ascii_json(text: str) -> str:
    """JSON with escapes only, so that half a character can be written."""
    return '"' + "".join(f"\\u{ord(c):04x}" for c in text) + '"'


def test_a_megabyte_of_one_word_is_refused_before_it_is_read(server: LocalServer) -> None:
    assert server.predict("a" * 1_000_000).status_code == 413


def test_an_empty_prompt_begins_a_text(server: LocalServer) -> None:
    assert server.predict("", run="writer", most_tokens=2).status_code == 200


NULLABLE = {"beam", "most_tokens"}  # null asks for what is usual
CAPS = {"beam": 16, "n_best": 16, "count": 8, "most_tokens": 512}


@pytest.mark.parametrize("value", [-1, 0, 10**9, 1e9, "5", None, [], {}, False, 1.5], ids=str)
@pytest.mark.parametrize("field", CAPS)
def test_numbers_beyond_their_caps_are_refused_with_the_cap(
    server: LocalServer, field: str, value: Any
) -> None:
    if value is None and field in NULLABLE:
        return
    answer = server.predict("We", run="writer", **{field: value})
    assert answer.status_code == 422
    assert answer.json()["error"]["field"] == field
    assert f"must be a whole number from 1 to {CAPS[field]}" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"temperature": 0}, "temperature"),
        ({"temperature": 1000}, "temperature"),
        ({"top_p": 0}, "top_p"),
        ({"top_p": 1.1}, "top_p"),
        ({"top_k": -1}, "top_k"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**63}, "seed"),
        ({"length_penalty": 11}, "length_penalty"),
        ({"length_penalty": -1}, "length_penalty"),
        ({"beam": 2, "n_best": 3}, "n_best"),
        ({"sample": True, "n_best": 2}, "n_best"),
        ({"count": 2}, "count"),
        ({"most_tokens": 5}, "most_tokens"),
        ({"run": "writer", "n_best": 2}, "n_best"),
        ({"text": ["We"], "stream": True}, "stream"),
        ({"run": "writer", "count": 2, "stream": True}, "stream"),
    ],
    ids=str,
)
def test_settings_that_cannot_be_are_refused_by_name(
    server: LocalServer, fields: dict[str, Any], field: str
) -> None:
    answer = server.post("/v1/predict", {"text": "We", **fields})
    assert (answer.status_code, answer.json()["error"]["field"]) == (422, field)


@pytest.mark.parametrize(
    "fields",
    [
        {"temperature": 5e-324, "sample": True},
        {"temperature": 100, "sample": True, "top_k": 1_000_000, "top_p": 1},
        {"seed": 2**63 - 1, "sample": True},
        {"length_penalty": 10, "beam": 16, "n_best": 16},
        {"beam": None, "sample": None},
    ],
    ids=str,
)
def test_settings_at_their_caps_work(server: LocalServer, fields: dict[str, Any]) -> None:
    assert server.predict("We eat.", **fields).status_code == 200


def test_an_unknown_run_is_named_with_those_that_there_are(server: LocalServer) -> None:
    answer = server.predict("We", run="../../etc/passwd")
    assert answer.status_code == 404
    error = answer.json()["error"]
    assert error["field"] == "run"
    assert "there are: translator, other, writer, rnn" in error["message"]
