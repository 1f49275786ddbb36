"""Finished runs as points: what they cost by the formula, seeds together, data apart."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from saccade.app.compare.runs import SeedGroup, points_of, read_finished
from saccade.errors import SaccadeError
from saccade.models import PRESETS, series
from saccade.models.cost import multiply_adds
from saccade.train.devices.memory import count_parameters
from saccade.train.storage.folder import RunFolder
from saccade.train.storage.scores import keep_scores, kept_scores
from tests.app.test_cli import Capture, Patch
from tests.app.test_cli import run as run_command
from tests.train.small import rewrite

Made = Callable[..., Path]


@pytest.fixture
def made(classifier: Path, tmp_path: Path) -> Made:
    """Copies of a run, with other settings and other figures."""

    def make(name: str, *, top1: float = 0.5, state: Any = None, **changed: Any) -> Path:
        path = tmp_path / name
        shutil.copytree(classifier, path)
        table = json.loads((path / "config.json").read_text())
        for key, value in changed.items():
            group, _, field = key.partition("_")
            assert field in table[group]
            table[group][field] = value
        rewrite(path / "config.json", json.dumps(table))
        (newest,) = path.glob("checkpoints/step-00000002/state.json")
        there = json.loads(newest.read_text())
        there["best"]["top1"] = top1
        there.update(state or {})
        newest.write_text(json.dumps({k: v for k, v in there.items() if v != "gone"}))
        return path

    return make


def points(*paths: Path, figure: str = "", split: str = "") -> list[SeedGroup]:
    return points_of(read_finished(path, figure=figure, split=split) for path in paths)


def test_a_point_has_the_costs_of_its_formula(classifier: Path) -> None:
    (point,) = points(classifier)
    (run,), config = point.runs, RunFolder(classifier).load_recipe().model
    assert run.parameters == count_parameters(config)
    assert run.multiply_adds == multiply_adds(config, 32, 32)  # type: ignore[arg-type]
    assert run.seen == 16  # two updates of eight images
    assert run.compute == 3 * 2 * (run.multiply_adds or 0) * 16
    assert (run.figure, run.label) == ("top1", "top-1 accuracy")
    assert run.value == RunFolder(classifier).newest_state()["best"]["top1"]
    assert (point.series, point.name, point.mean) == ("vit", "classifier", run.value)


def test_seeds_are_one_point_and_any_other_setting_another(made: Made) -> None:
    seeds = [
        made(f"vit-16-seed{n}", top1=value, train_seed=n)
        for n, value in ((10, 0.1), (11, 0.4), (12, 0.1))
    ]
    other = made("wide", model_width=32)
    late = made("late", train_learning_rate=0.5)
    logged = made("vit-16-seed13", top1=0.6, train_seed=13, train_log_every=7)  # changes nothing
    found = points(other, *seeds, late, logged)
    assert [point.name for point in found] == ["late", "vit-16", "wide"]
    assert found[1].values == [0.1, 0.4, 0.1, 0.6]
    assert found[1].mean == pytest.approx(0.3)
    assert [run.recipe.train.seed for run in found[1].runs] == [10, 11, 12, 13]


NAMES = [
    (["a"], "a"),
    (["vit-96-seed0", "vit-96-seed1"], "vit-96"),
    (["vit-s10", "vit-s11"], "vit"),
    (["vit_0", "vit_1"], "vit"),
    (["resnets-0", "resnets-1"], "resnets"),
    (["one", "two"], "one"),
]


@pytest.mark.parametrize(("names", "shared"), NAMES)
def test_seeds_go_by_what_their_names_share(names: list[str], shared: str, made: Made) -> None:
    (point,) = points(*(made(name, train_seed=n) for n, name in enumerate(names)))
    assert point.name == shared


def test_data_are_told_apart_by_name_share_and_place(
    made: Made, monkeypatch: Patch, capsys: Capture, tmp_path: Path
) -> None:
    runs = [
        made("whole", task_data="/some/birds.zip"),
        made("tenth", task_data="/some/birds.zip", task_share=0.1),
        made("third", task_data="/other/birds.zip"),
        made("shapes"),
    ]
    out = tmp_path / "figure.svg"
    arguments = ["compare", *map(str, runs), "-o", str(out)]
    assert run_command(arguments, monkeypatch) == 0
    said = capsys.readouterr().out
    titles = [
        "birds.zip: /some/birds.zip",
        "10% of birds.zip",
        "birds.zip: /other/birds.zip",
        "24 scenes of shapes",
    ]
    assert [line for line in said.splitlines() if line.endswith(":")] == [f"{t}:" for t in titles]
    drawn = out.read_text()
    assert all(f">{title}</text>" in drawn for title in titles)


def test_every_series_has_its_name() -> None:
    names = {"vit-b-16": "vit", "resnet-18": "resnet", "hybrid-b-16": "hybrid", "sl-vit": "sl-vit"}
    names |= {"hybrid-small-data": "hybrid", "swin-t": "swin", "sl-swin-32": "sl-swin"}
    names |= {"gpt2": "gpt", "vit-small-data": "vit", "deit3-b-16": "vit"}
    assert {name: series(PRESETS[name]) for name in names} == names


WRONG: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "not at its end": ({"train_steps": 9}, {}, "is at step 2 of 9: only finished runs compare"),
    "not validated at its end": ({"state": {"owed": True}}, {}, "still owes its last validation"),
    "never validated": ({"state": {"best": {}}}, {}, "has no checkpoint with a validation"),
    "of an earlier version": (
        {"state": {"deciding": "gone"}},
        {},
        "add --figure, with one of: top1, top5, loss",
    ),
    "without that figure": ({}, {"figure": "bleu"}, "there are: top1, top5, loss; name one"),
    "a figure that is no number": ({"state": {"best": {"top1": None}}}, {}, "no figure 'top1'"),
    "never scored": ({}, {"split": "test"}, "--split test --keep` keeps them"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_compared_is_refused_in_one_line(name: str, made: Made) -> None:
    changed, asked, says = WRONG[name]
    with pytest.raises(SaccadeError) as error:
        points(made("run", **changed), **asked)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_a_run_that_lost_patience_is_finished_and_one_of_old_has_other_figures(made: Made) -> None:
    assert points(made("stopped", train_steps=9, train_patience=1, state={"stale": 1}))
    old = made("old", state={"deciding": "gone", "seen": "gone"})
    (point,) = points(old, figure="loss")
    assert (point.runs[0].label, point.size("seen"), point.size("compute")) == ("loss", None, None)


def test_one_run_twice_and_different_figures_are_refused(made: Made, writer: Path) -> None:
    one, twin = made("one"), made("twin")
    with pytest.raises(SaccadeError, match="are one run twice"):
        points(one, twin)
    with pytest.raises(SaccadeError, match=r"different figures: top1 \(.*\), loss \(.*writer\)"):
        points(one, writer)
    assert len(points(one, writer, figure="loss")) == 2


def test_kept_scores_are_those_of_these_weights(
    made: Made, monkeypatch: Patch, capsys: Capture
) -> None:
    monkeypatch.setattr("saccade.tasks.classification.data.HELD_BACK", 12)
    path = made("run")
    assert run_command(["eval", str(path), "--keep", "--device", "cpu", "--json"], monkeypatch) == 0
    scored = json.loads(capsys.readouterr().out)
    (point,) = points(path, split="test")
    assert point.mean == scored["top1"]
    assert kept_scores(RunFolder(path), "test").keys() >= {"top1", "top5", "loss", "images"}
    keep_scores(RunFolder(path), "test", {"top1": 0.25, "loss": float("nan"), "by_class": {}})
    assert kept_scores(RunFolder(path), "test") == {"top1": 0.25, "loss": None}
    with (path / "model.safetensors").open("ab") as file:
        file.write(b" ")
    with pytest.raises(SaccadeError, match="is of other weights than the run has now"):
        points(path, split="test")
    (path / "scores-test.json").write_text("[]")
    with pytest.raises(SaccadeError, match="holds no scores"):
        points(path, split="test")


def test_other_kinds_compare_too(
    writer: Path, translator: Path, captioner: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    runs = [str(writer), str(translator), str(captioner)]
    assert run_command(["compare", *runs, "--json", "--figure", "loss"], monkeypatch) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["family"] for row in rows} == {"rnn-language", "rnn-attention", "show-attend-tell"}
    assert all(row["compute"] is None and row["seen"] > 0 < row["parameters"] for row in rows)
    assert run_command(["compare", *runs], monkeypatch) == 0
    assert "–" in capsys.readouterr().out


def test_the_table_has_a_row_for_each_point(
    made: Made, monkeypatch: Patch, capsys: Capture, tmp_path: Path
) -> None:
    runs = [made(f"vit-{n}", top1=n / 10, train_seed=n) for n in (1, 2)]
    runs.append(made("wide", model_width=32, top1=0.7))
    given = ["compare", *map(str, runs), "-o", str(tmp_path / "x.png"), "--x", "parameters"]
    assert run_command(given, monkeypatch) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[2][:2] + lines[2][-4:] == ["vit", "vit", "0.1500", "2", "0.1000", "0.2000"]
    assert lines[3][:2] + lines[3][-4:] == ["vit", "wide", "0.7000", "1", "0.7000", "0.7000"]
    assert (tmp_path / "x.png").read_bytes()[:4] == b"\x89PNG"
