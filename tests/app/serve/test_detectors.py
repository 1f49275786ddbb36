"""Detectors over HTTP: an image goes in, objects and where they were looked for come out."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import saccade
from saccade.app.kinds.detection.model import DetectionModel
from saccade.app.look.document import read_json
from saccade.data import shapes
from saccade.tasks.detection.data import DetectionSettings
from saccade.tasks.detection.task import ASSET
from saccade.train.recipe import Recipe
from saccade.train.settings import TrainSettings
from saccade.train.storage.folder import RunFolder
from tests.app.look.detectors import CONFIGS, SIDE, detector
from tests.app.serve.captioners import as_json, images, make_captioners, upload
from tests.app.serve.serving import LocalServer
from tests.app.serve.test_classifiers import error

LOW = 0.001


def written(folder: Path, kind: str, *, seed: int) -> Path:
    (folder / kind).mkdir()
    task = DetectionSettings(image=SIDE)
    run = RunFolder(folder / kind)
    run.save_recipe(
        Recipe(
            about="", system="", lecture="", model=CONFIGS[kind], task=task, train=TrainSettings()
        )
    )
    run.save_assets({ASSET: json.dumps({"names": shapes.KINDS}).encode()})
    run.save_weights(detector(kind, seed=seed).tool.model)  # type: ignore[arg-type]
    return folder / kind


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    folder = tmp_path_factory.mktemp("detectors")
    runs = [written(folder, kind, seed=seed) for seed, kind in enumerate(("boxes", "plain"))]
    with LocalServer([*runs, make_captioners(folder)["teller"]]) as running:
        yield running


def test_objects_are_what_the_library_finds_whichever_way_the_image_comes(
    server: LocalServer,
) -> None:
    some = images(3)
    for name in ("boxes", "plain"):
        model = saccade.load(server.runs[name].path, device="cpu")
        assert isinstance(model, DetectionModel)
        for answer in (
            upload(server, *some, fields={"run": name, "threshold": str(LOW)}),
            as_json(server, *some, run=name, threshold=LOW),
        ):
            assert answer.status_code == 200, answer.text
            for raw, found in zip(some, answer.json()["predictions"], strict=True):
                expected = model.predict(raw, threshold=LOW)
                assert (found["height"], found["width"]) == expected.size
                assert found["text"] == expected.text
                for told, one in zip(found["objects"], expected.objects, strict=True):
                    assert told["label"] == one.label
                    assert told["score"] == pytest.approx(one.score, abs=1e-5)
                    assert told["box"] == pytest.approx(one.box, abs=0.02)


def test_a_threshold_is_half_unless_another_is_asked_for(server: LocalServer) -> None:
    (raw,) = images(1)
    usual, half, none = (
        as_json(server, raw, **asked).json()["predictions"][0]["objects"]
        for asked in ({}, {"threshold": 0.5}, {"threshold": 1.0})
    )
    assert usual == half
    assert none == []
    for wrong in (-0.1, 1.5, "low"):
        status, field, message = error(as_json(server, raw, threshold=wrong))
        assert (status, field) == (422, "threshold")
        assert message.endswith("must be a number from 0 to 1, or null (0.5)")


@pytest.mark.parametrize("field", ["beam", "count", "n_best", "sample", "most_tokens"])
def test_what_is_of_writing_is_refused(server: LocalServer, field: str) -> None:
    (raw,) = images(1)
    asked: dict[str, Any] = {field: field == "sample" or 2}
    status, told, message = error(as_json(server, raw, **asked))
    assert (status, told) == (422, field)
    assert message == f"boxes finds objects and writes nothing: leave {field} out"


def test_who_finds_no_objects_refuses_a_threshold(server: LocalServer) -> None:
    (raw,) = images(1)
    told = 422, "threshold", "teller captions images: leave threshold out"
    assert error(as_json(server, raw, run="teller", threshold=0.5)) == told


def test_a_look_of_one_run_or_of_two(server: LocalServer) -> None:
    (raw,) = images(1)
    runs = server.get("/info").json()["runs"]
    told = {run["name"]: run for run in runs}["boxes"]
    assert (told["kind"], told["takes"], told["looks"]) == ("detection", "image", True)
    assert (told["image"], told["objects"]) == (SIDE, list(shapes.KINDS))
    fields = {"run": "boxes", "compare": "plain", "threshold": "0.25"}
    document = read_json(upload(server, raw, path="/v1/look", fields=fields).text)
    assert document.kind == "detection"
    assert [look.run for look in document.looks] == ["boxes", "plain"]
    (said,) = as_json(server, raw, threshold=LOW).json()["predictions"]
    objects = document.looks[0].objects
    assert objects is not None
    assert (objects.threshold, objects.truth) == (0.25, None)
    assert [one.label for one in objects.found] == [
        one["label"] for one in said["objects"][: len(objects.found)]
    ]
    assert error(upload(server, raw, path="/v1/look", fields={"of": "ring"}))[1] == "of"
