"""A kind of work in one folder of its own: trained, scored, used, looked at and served."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from PIL import Image

import saccade
from saccade.app.cli import main
from saccade.app.kinds import HOMES
from saccade.models import FAMILIES
from saccade.tasks import KINDS
from saccade.tasks.base import Batch, Preparation, Task
from saccade.train.recipe import Recipe
from saccade.train.recipes import RECIPES
from saccade.train.run import TrainingOutcome, train
from saccade.train.settings import TrainSettings
from tests import toy_kind
from tests.app.serve.captioners import as_json, upload
from tests.app.serve.serving import LocalServer
from tests.toy_kind import CLASSES, StripesConfig, StripesModel, StripesSettings, StripesTask

QUICK = TrainSettings(
    steps=60, batch_tokens=16, learning_rate=1e-2, warmup=5, validate_every=20, device="cpu"
)
STRIPES = Recipe(
    about="Which way stripes run",
    system="S0",
    lecture="none",
    model=StripesConfig(),
    task=StripesSettings(),
    train=QUICK,
)


@pytest.fixture(scope="module", autouse=True)
def _plugged_in() -> Iterator[None]:
    """All that a new kind asks for: a line in each of four dicts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(KINDS, "stripes", StripesSettings)
        patch.setitem(FAMILIES, "stripes", StripesConfig)
        patch.setitem(HOMES, "stripes", "tests.toy_kind")
        patch.setitem(RECIPES, "stripes", STRIPES)
        yield


@pytest.fixture(scope="module")
def trained(_plugged_in: None, tmp_path_factory: pytest.TempPathFactory) -> TrainingOutcome:
    return train(STRIPES, tmp_path_factory.mktemp("runs") / "stripes", lambda event: None)


@pytest.fixture(scope="module")
def run(trained: TrainingOutcome) -> Path:
    return trained.folder


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """An image of each class, larger than what the model sees."""
    folder = tmp_path_factory.mktemp("images")
    lying = (torch.arange(16) % 2 * 255).byte()[:, None].expand(16, 20)
    pixels = {"upright": lying.T, "lying": lying}
    for name, grey in pixels.items():
        Image.fromarray(grey.contiguous().numpy()).save(folder / f"{name}.png")
    return {name: folder / f"{name}.png" for name in pixels}


def command(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["saccade", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


def test_its_task_and_batches_are_what_the_trainer_asks_for() -> None:
    task = StripesTask(Preparation(budget=8, seed=0))
    assert isinstance(task, Task)
    assert isinstance(task.batch(0), Batch)


def test_it_is_trained_and_kept_by_its_own_figure(trained: TrainingOutcome) -> None:
    assert trained.best == {"accuracy": 1.0}
    assert json.loads((trained.folder / "classes.json").read_bytes()) == CLASSES
    config = json.loads((trained.folder / "config.json").read_bytes())
    assert config["task"]["kind"] == config["model"]["family"] == "stripes"
    card = (trained.folder / "README.md").read_text()
    assert "Best validation accuracy 1.0000, at step" in card
    logged = [
        json.loads(line) for line in (trained.folder / "metrics.jsonl").read_text().splitlines()
    ]
    losses = [line for line in logged if "loss" in line]
    assert losses
    for line in losses:
        assert line["loss"] == pytest.approx(line["loss_class"] + line["loss_size"], rel=1e-5)


def test_the_command_line_trains_it_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for steps in ("4", "6"):
        arguments = ["train", "stripes", "--train.steps", steps, "--out", "mine"]
        assert command(arguments, monkeypatch) == 0
    told = capsys.readouterr().err
    assert "painting stripes" in told
    assert "going on from step 4 of 6" in told
    assert (tmp_path / "mine" / "model.safetensors").is_file()
    assert command(["describe", "stripes"], monkeypatch) == 0
    assert "Which way stripes run" in capsys.readouterr().out


def test_it_is_scored(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(["eval", str(run)], monkeypatch) == 0
    assert json.loads(capsys.readouterr().out) == {"accuracy": 1.0}


def test_it_predicts(
    run: Path,
    images: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    model = saccade.load(run, device="cpu")
    assert isinstance(model, StripesModel)
    assert command(["predict", str(run), *map(str, images.values())], monkeypatch) == 0
    expected = [f"{path}\t{name}" for name, path in images.items()]
    assert capsys.readouterr().out.splitlines() == expected


def test_it_is_looked_at(
    run: Path,
    images: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert command(["look", str(run), str(images["lying"])], monkeypatch) == 0
    rows = json.loads(capsys.readouterr().out)
    assert sum(map(sum, rows)) == pytest.approx(1.0, abs=1e-5)
    assert [len(row) for row in rows] == [4] * 4


def test_it_is_served(run: Path, images: dict[str, Path]) -> None:
    with LocalServer([run]) as server:
        (told,) = server.get("/info").json()["runs"]
        assert (told["kind"], told["takes"], told["looks"]) == ("stripes", "image", True)
        files = [path.read_bytes() for path in images.values()]
        for answer in (as_json(server, *files), upload(server, *files)):
            assert answer.status_code == 200, answer.text
            assert [one["text"] for one in answer.json()["predictions"]] == list(images)
        looked = as_json(server, files[0], path="/v1/look")
        assert looked.status_code == 200, looked.text
        weights = json.loads(looked.json()["blobs"][0])
        assert sum(map(sum, weights)) == pytest.approx(1.0, abs=1e-5)
        assert server.predict("a text").status_code == 422


def test_help_names_it_beside_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for verb in ("predict", "eval", "look"):
        assert command([verb, "--help"], monkeypatch) == 0
        assert "stripes:\n" in capsys.readouterr().out


def test_it_is_small() -> None:
    """So that plugging in stays cheap."""
    files = Path(toy_kind.__file__).parent.rglob("*.py")
    assert sum(len(file.read_text().splitlines()) for file in files) < 150
