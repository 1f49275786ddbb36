"""S8: what a request is answered does not depend on who else asks."""

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from saccade.data import lingua
from saccade.data.lingua import LinguaSettings
from tests.app.serve.serving import ServerProcess

pytestmark = pytest.mark.slow
MANY = 64


@pytest.fixture(scope="module")
def server(runs: dict[str, Path]) -> Iterator[ServerProcess]:
    both = str(runs["translator"]), str(runs["writer"])
    with ServerProcess(
        *both, "--deadline-s", "120"
    ) as running:  # none is refused on a busy machine
        yield running


def sentences() -> list[str]:
    """Distinct, and of very different lengths."""
    pairs = lingua.pairs("test", 300, LinguaSettings(shortest=3, longest=7))
    sources = list(dict.fromkeys(pair.source for pair in pairs))
    joined = [" ".join(sources[i : i + 1 + i % 2]) for i in range(MANY)]
    assert len(set(joined)) == MANY
    return joined


WAYS: dict[str, list[dict[str, Any]]] = {
    "beam": [{"text": text, "beam": 5, "n_best": 2} for text in sentences()],
    "greedy": [{"text": text, "beam": 1} for text in sentences()],
    "drawn": [
        {"text": text, "sample": True, "seed": i % 2} for i, text in enumerate(sentences()[:24])
    ],
    "language": [
        {"run": "writer", "text": text[: i % 40], "seed": i, "most_tokens": 5 + i % 20}
        for i, text in enumerate(sentences())
    ],
    "mixed": [{"text": text, "beam": 1 + i % 3} for i, text in enumerate(sentences()[:24])],
}


@pytest.mark.parametrize("way", WAYS)
def test_at_once_is_what_it_is_one_by_one(server: ServerProcess, way: str) -> None:
    bodies, many = WAYS[way], len(WAYS[way])
    batches = server.metric("batch_size_count")
    alone = [server.post("/v1/predict", body).json()["predictions"] for body in bodies]
    assert server.metric("batch_size_count") == batches + many
    order = list(range(many))
    random.Random(7).shuffle(order)
    with ThreadPoolExecutor(many) as pool:
        asked = {i: pool.submit(server.post, "/v1/predict", bodies[i]) for i in order}
    if way in ("beam", "greedy"):  # they were really decoded together
        assert server.metric("batch_size_count") < batches + many + many / 2
    for i, (body, (one,)) in enumerate(zip(bodies, alone)):
        (other,) = asked[i].result().json()["predictions"]
        assert other.get("source", other.get("prompt")) == body["text"]
        texts, scores = zip(*((x["text"], x["score"]) for x in (one, *one["others"])))
        again = zip(*((x["text"], x["score"]) for x in (other, *other["others"])))
        assert next(again) == texts
        assert next(again) == pytest.approx(scores, abs=1e-4)
