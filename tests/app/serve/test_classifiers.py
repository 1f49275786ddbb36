"""Classifiers over HTTP: an image goes in, classes and what they came from come out."""

import base64
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

import saccade
from saccade.app.kinds.classification.kind import ClassificationModel
from saccade.app.look.document import read_json
from saccade.tasks.classification.data import ClassificationSettings
from saccade.tasks.classification.task import ASSET
from saccade.train.recipe import Recipe
from saccade.train.settings import TrainSettings
from saccade.train.storage.folder import RunFolder
from tests.app.look.classifiers import CONFIGS, NAMES, SIDE, classifier
from tests.app.serve.captioners import as_json, images, upload
from tests.app.serve.serving import LocalServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    folder = tmp_path_factory.mktemp("classifiers")
    for seed, kind in enumerate(("vit", "resnet")):
        (folder / kind).mkdir()
        model = replace(CONFIGS[kind], classes=len(NAMES))
        task, train = ClassificationSettings(image=SIDE), TrainSettings()
        recipe = Recipe(about="", system="", lecture="", model=model, task=task, train=train)
        run = RunFolder(folder / kind)
        run.save_recipe(recipe)
        run.save_assets({ASSET: json.dumps({"names": NAMES, "several": False}).encode()})
        run.save_weights(classifier(kind, seed=seed).tool.model)
    with LocalServer([folder / "vit", folder / "resnet"]) as running:
        yield running


def error(answer: httpx.Response) -> tuple[int, str | None, str]:
    told = answer.json()["error"]
    return answer.status_code, told["field"], told["message"]


def test_classes_are_what_the_library_says_whichever_way_the_image_comes(
    server: LocalServer,
) -> None:
    some = images(3)
    for name in ("vit", "resnet"):
        model = saccade.load(server.runs[name].path, device="cpu")
        assert isinstance(model, ClassificationModel)
        for answer in (
            upload(server, *some, fields={"run": name}),
            as_json(server, *some, run=name),
        ):
            assert answer.status_code == 200, answer.text
            assert answer.json()["run"] == name
            for raw, found in zip(some, answer.json()["predictions"], strict=True):
                expected = model.predict(raw)
                assert found["labels"] == expected.labels == [found["text"]]
                for told, guess in zip(found["guesses"], expected.guesses, strict=True):
                    assert told["label"] == guess.label
                    assert told["probability"] == pytest.approx(guess.probability, abs=1e-5)


def test_as_many_guesses_as_are_asked_for(server: LocalServer) -> None:
    (raw,) = images(1)
    (found,) = as_json(server, raw, n_best=6).json()["predictions"]
    assert len(found["guesses"]) == 6
    assert sum(one["probability"] for one in found["guesses"]) <= 1


@pytest.mark.parametrize("field", ["beam", "count", "sample", "most_tokens"])
def test_what_is_of_writing_is_refused_and_without_it_goes_well(
    server: LocalServer, field: str
) -> None:
    (raw,) = images(1)
    asked: dict[str, Any] = {field: field == "sample" or 2}
    status, told, message = error(as_json(server, raw, **asked))
    assert (status, told) == (422, field)
    assert message == f"vit classifies images and writes nothing: leave {field} out"
    assert as_json(server, raw).status_code == 200


def test_a_stream_ends_with_the_classes(server: LocalServer) -> None:
    (raw,) = images(1)
    body = {"image": base64.b64encode(raw).decode(), "stream": True}
    answer = server.post("/v1/predict", body)
    last = [line for line in answer.text.splitlines() if line][-1]
    (whole,) = as_json(server, raw).json()["predictions"]
    assert json.loads(last.removeprefix("data: ")) == {"done": True, **whole}


def test_a_model_without_attention_can_be_looked_at(server: LocalServer) -> None:
    (raw,) = images(1)
    runs = server.get("/info").json()["runs"]
    assert [(run["kind"], run["takes"], run["looks"], run["image"]) for run in runs] == [
        ("classification", "image", True, SIDE)
    ] * 2
    both = upload(server, raw, path="/v1/look", fields={"run": "vit", "compare": "resnet"})
    document = read_json(both.text)
    said = [as_json(server, raw, run=name).json()["predictions"][0] for name in ("vit", "resnet")]
    for look, told in zip(document.looks, said, strict=True):
        assert look.classes is not None
        assert look.classes.said == told["labels"]
        assert look.classes.truth == []
    assert [site.name for site in document.looks[1].sites] == ["Grad-CAM"]
    assert document.kind == "classification"


def test_what_another_class_came_from_can_be_asked_for(server: LocalServer) -> None:
    (raw,) = images(1)
    (said,) = as_json(server, raw).json()["predictions"]
    other = said["guesses"][1]["label"]
    document = read_json(upload(server, raw, path="/v1/look", fields={"of": other}).text)
    (look,) = document.looks
    assert look.classes is not None
    assert (look.classes.said, look.classes.target) == (said["labels"], other)
    refused = upload(server, raw, path="/v1/look", fields={"of": "unicorn"})
    assert error(refused) == (
        422,
        "of",
        "of='unicorn' is no class of vit; `predict` names those it knows",
    )


def test_a_text_is_refused(server: LocalServer) -> None:
    assert error(server.predict("a cat")) == (422, "text", "vit takes an image, and no text")
