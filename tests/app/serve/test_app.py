"""The routes, as a client meets them."""

import json

import httpx
import pytest

import saccade
from saccade.app.kinds.translation.kind import TranslationModel
from tests.app.serve.serving import LocalServer

SENTENCE = "The old dog eats an apple."


def events(server: LocalServer, **body: object) -> list[dict[str, object]]:
    with httpx.stream("POST", f"{server.url}/v1/predict", json={**body, "stream": True}) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = [line for line in answer.iter_lines() if line]
    assert all(line.startswith("data: ") for line in lines)
    return [json.loads(line.removeprefix("data: ")) for line in lines]


@pytest.mark.slow
def test_a_prediction_is_what_the_library_predicts(server: LocalServer) -> None:
    model = saccade.load(server.runs["translator"].path, device="cpu")
    assert isinstance(model, TranslationModel)
    expected = model.predict(SENTENCE, beam=4, n_best=3)
    answer = server.predict(SENTENCE, beam=4, n_best=3).json()
    assert answer["run"] == "translator"
    (prediction,) = answer["predictions"]
    assert prediction["source"] == SENTENCE
    assert prediction["text"] == expected.text
    assert prediction["score"] == pytest.approx(expected.score, abs=1e-4)
    assert [one["text"] for one in prediction["others"]] == [one.text for one in expected.others]


@pytest.mark.slow
def test_a_list_of_texts_is_answered_in_its_order(server: LocalServer) -> None:
    texts = [SENTENCE, "She sleeps.", "We do not eat the very old apples today."]
    answers = server.predict(texts).json()["predictions"]
    assert [one["source"] for one in answers] == texts
    assert [one["text"] for one in answers] == [
        server.predict(text).json()["predictions"][0]["text"] for text in texts
    ]


def test_a_language_run_writes_count_texts_and_the_same_for_the_same_seed(
    server: LocalServer,
) -> None:
    fields = {"run": "writer", "count": 3, "most_tokens": 6}
    one, again, other = (
        server.predict("We", **fields, seed=seed).json()["predictions"] for seed in (1, 1, 2)
    )
    assert len(one) == 3
    assert all(text["prompt"] == "We" for text in one)
    assert one == again
    assert one != other


@pytest.mark.parametrize("fields", [{}, {"sample": False}, {"beam": 3}], ids=str)
def test_a_stream_ends_with_what_a_plain_request_gets(
    server: LocalServer, fields: dict[str, object]
) -> None:
    body = {"run": "writer", "text": "We", "most_tokens": 12, **fields}
    *drafts, last = events(server, **body)
    (whole,) = server.post("/v1/predict", body).json()["predictions"]
    assert drafts
    assert last == {"done": True, **whole}
    if "beam" not in fields:
        assert all(whole["text"].startswith(str(draft["text"])) for draft in drafts)
    assert all(("draft" in draft) == ("beam" in fields) for draft in drafts)


def test_a_translation_is_streamed_as_well(server: LocalServer) -> None:
    *drafts, last = events(server, text=SENTENCE, beam=1)
    assert str(last["text"]).startswith(str(drafts[-1]["text"]))
    assert "draft" not in drafts[0]
    assert events(server, text=SENTENCE, beam=3)[0]["draft"] is True


def test_info_tells_runs_and_limits(server: LocalServer) -> None:
    info = server.get("/info").json()
    assert [(run["name"], run["kind"], run["looks"]) for run in info["runs"]] == [
        ("translator", "translation", True),
        ("other", "translation", True),
        ("writer", "language", True),
        ("rnn", "language", False),
    ]
    assert info["limits"]["text_characters"] == 2000
    assert info["version"] == saccade.__version__
    assert all(run["parameters"] > 0 and run["device"] == "cpu" for run in info["runs"])


def test_the_schema_is_served_but_no_page_that_fetches_from_elsewhere(server: LocalServer) -> None:
    schema = server.get("/openapi.json").json()
    body = schema["paths"]["/v1/predict"]["post"]["requestBody"]["content"]["application/json"]
    assert body["schema"]["additionalProperties"] is False
    assert "from 1 to 16" in json.dumps(body["schema"]["properties"]["beam"])
    assert server.get("/docs").status_code == server.get("/redoc").status_code == 404


def test_metrics_count_requests_tokens_and_batches(server: LocalServer) -> None:
    before = {name: server.metric(name) for name in ("tokens_total", "batch_size_count")}
    server.predict(SENTENCE)
    assert server.metric("tokens_total") > before["tokens_total"]
    assert server.metric("batch_size_count") == before["batch_size_count"] + 1
    assert server.metric("in_flight") == server.metric("queue_depth") == 0
    assert 'saccade_requests_total{route="/v1/predict",status="200"}' in server.get("/metrics").text
