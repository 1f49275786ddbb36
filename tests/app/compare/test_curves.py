"""Learning curves: what the diaries say, seeds together, of runs that may still be running."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.app.cli.scores.curves import draw_learning
from saccade.app.compare.curves import RunCurve, SeedCurve, curves_of, read_curve
from saccade.app.look.draw.curves import MOST
from saccade.errors import SaccadeError
from saccade.tasks.classification.data import ClassificationSettings
from saccade.tasks.classification.task import PRECISION as CLASSES_PRECISION
from saccade.tasks.classification.task import TOP
from saccade.tasks.detection.data import DetectionSettings
from saccade.tasks.detection.task import AP
from saccade.tasks.figures import PER_TOKEN
from saccade.tasks.language.task import LanguageSettings
from saccade.tasks.masked.figures import PER_MASKED
from saccade.tasks.masked.task import MaskedSettings
from saccade.tasks.understanding.data import UnderstandingSettings
from saccade.tasks.understanding.figures import TITLES
from saccade.train.recipes import RECIPES
from saccade.train.storage.folder import RunFolder
from tests.app.test_cli import Capture, Patch, run

Made = Callable[..., Path]
RECIPE = RECIPES["detr"]
curves = st.dictionaries(st.integers(1, 9), st.floats(-1e9, 1e9), min_size=1)


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """A run that has just a recipe and a diary, of updates and of validations."""

    def make(name: str, values: list[float | None], *, data: str = "", **changed: Any) -> Path:
        run = RunFolder(tmp_path / name)
        run.path.mkdir()
        task = replace(RECIPE.task, data=data)
        run.save_recipe(replace(RECIPE, task=task, train=replace(RECIPE.train, **changed)))
        rows: list[dict[str, Any]] = []
        for number, value in enumerate(values, start=1):
            rows += [{"step": 10 * number - 5, "loss": 3.0}]
            rows += [{"step": 10 * number, "valid_AP": value, "valid_loss": number}]
        run.metrics.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return run.path

    return make


def seed_curve(*values: dict[int, float], higher: bool = True) -> SeedCurve:
    return SeedCurve(tuple(RunCurve(Path(), RECIPE, "AP", "AP", higher, one) for one in values))


@given(st.lists(curves, min_size=1, max_size=4), st.booleans())
def test_a_curve_is_the_mean_where_all_of_its_runs_are(
    values: list[dict[int, float]], higher: bool
) -> None:
    curve = seed_curve(*values, higher=higher)
    updates = [at for at in range(10) if all(at in one for one in values)]
    assert [point.update for point in curve.points] == updates
    for update, mean, smallest, largest in curve.points:
        there = [one[update] for one in values]
        assert (smallest, largest) == (min(there), max(there))
        assert mean == pytest.approx(sum(there) / len(there), abs=1e-3)
    if updates:
        assert curve.last.update == max(updates)
        sign = 1 if higher else -1
        assert all(sign * point.mean <= sign * curve.best.mean for point in curve.points)
        assert all(p.mean != curve.best.mean for p in curve.points if p.update < curve.best.update)


def test_a_run_says_by_its_checkpoint_which_figure_decides(classifier: Path, writer: Path) -> None:
    for path in (classifier, writer):
        found, state = read_curve(path, figure=""), RunFolder(path).newest_state()
        decides = state["deciding"]
        assert (found.figure, found.label, found.higher) == tuple(decides.values())
        assert found.values[state["best_step"]] == state["best"][found.figure]
    assert read_curve(classifier, figure="loss").label == "loss"


def test_a_recipe_and_a_diary_are_enough(made: Made) -> None:
    path = made("alone", [0.25, None, 0.5])  # the second was no number
    with (path / "metrics.jsonl").open("a") as diary:
        diary.write('{"step": 40, "valid_AP": 0.9')  # being written
    found = read_curve(path, figure="AP")
    assert found.values == {10: 0.25, 30: 0.5}
    assert (found.label, found.higher) == ("AP", True)
    assert not read_curve(path, figure="loss").higher


def test_kinds_of_work_agree_with_what_decides_on_what_is_better() -> None:
    told = {
        LanguageSettings: [PER_TOKEN],
        MaskedSettings: [PER_MASKED],
        DetectionSettings: [AP],
        ClassificationSettings: [TOP, CLASSES_PRECISION],
    }
    for settings, every in told.items():
        for one in every:
            assert one.higher == (one.figure not in settings.lower_is_better)
    lower = TITLES.keys() & UnderstandingSettings.lower_is_better
    assert lower == {"mean_squared_error"}
    assert "replaced" in MaskedSettings.lower_is_better  # ELECTRA's loss of its second part


def test_seeds_are_one_curve_and_any_other_setting_another(made: Made) -> None:
    paths = [
        made("detr-1", [0.2, 0.4, 0.9], seed=1),
        made("late", [0.1], learning_rate=0.5),
        made("cells", [0.5], data="/some/cells.zip"),
        made("detr-0", [0.4, 0.6], seed=0),  # not as far yet
    ]
    found = curves_of(read_curve(path, figure="AP") for path in paths)
    assert [curve.name for curve in found] == ["detr", "late", "cells"]
    assert [run.path.name for run in found[0].runs] == ["detr-0", "detr-1"]
    assert [tuple(point) for point in found[0].points] == [
        (10, pytest.approx(0.3), 0.2, 0.4),
        (20, 0.5, 0.4, 0.6),
    ]


def test_the_table_the_drawing_and_json_say_the_same(
    made: Made, monkeypatch: Patch, capsys: Capture, tmp_path: Path
) -> None:
    paths = [
        made("few-0", [0.2, 0.6, 0.4], data="/some/cells.zip", seed=0),
        made("few-1", [0.4, 0.8, 0.6], data="/some/cells.zip", seed=1),
        made("plain", [0.1, 0.05], data="/some/cells.zip", learning_rate=0.5),
        made("shapes", [0.7]),
    ]
    out = tmp_path / "curves.svg"
    given = ["compare", *map(str, paths), "--x", "updates", "--figure", "AP"]
    assert run([*given, "-o", str(out)], monkeypatch) == 0
    head, *lines = (line.split("  ") for line in capsys.readouterr().out.splitlines())
    cells = [[cell.strip() for cell in line if cell.strip()] for line in lines]
    assert [cell.strip() for cell in head if cell.strip()] == [
        "data",
        "run",
        "updates",
        "best AP, validation",
        "after",
        "last",
        "runs",
    ]
    assert cells == [
        ["cells.zip", "few", "30", "0.7000", "20", "0.5000", "2"],
        ["cells.zip", "plain", "20", "0.1000", "10", "0.0500", "1"],
        ["20,000 scenes of shapes", "shapes", "10", "0.7000", "10", "0.7000", "1"],
    ]
    drawn = out.read_text()
    for text in ("cells.zip", "few", "plain", "shapes", "updates", "20,000 scenes of shapes"):
        assert f">{text}</text>" in drawn
    assert run([*given, "--json"], monkeypatch) == 0
    few, plain, _ = json.loads(capsys.readouterr().out)
    assert few["best"] == {"update": 20, "mean": 0.7, "smallest": 0.6, "largest": 0.8}
    assert [point["update"] for point in few["points"]] == [10, 20, 30]
    assert few["runs"][1]["points"][0] == {"update": 10, "value": 0.4}
    assert (plain["updates"], plain["last"]["mean"]) == (20, 0.05)


def test_bands_are_of_seeds_alone() -> None:
    one, other = {10: 0.1, 20: 0.2}, {10: 0.3, 20: 0.3}
    for values, bands in (((one,), 0), ((one, other), 1)):
        canvas = draw_learning([seed_curve(*values)], "AP")
        areas = [stroke for stroke in canvas.strokes if stroke.fill and stroke.width == 0]
        assert len(areas) == bands
        assert all(len(area.points) == 4 for area in areas)
        assert canvas.png().startswith(b"\x89PNG")


def test_of_more_curves_than_names_fit_the_best_are_named() -> None:
    def curve(number: int) -> SeedCurve:
        return SeedCurve(
            (RunCurve(Path(f"run-{number}"), RECIPE, "AP", "AP", True, {1: float(number)}),)
        )

    canvas = draw_learning([curve(number) for number in range(MOST + 3)], "AP")
    named = {words.text for words in canvas.words if words.text.startswith("run-")}
    assert named == {f"run-{number}" for number in range(3, MOST + 3)}
    assert any(words.text.endswith("; 3 runs in grey") for words in canvas.words)


def test_a_long_run_is_a_line_without_markers() -> None:
    canvas = draw_learning([seed_curve({n: math.sin(n) for n in range(1, 200)})], "AP")
    assert not any(stroke.fill for stroke in canvas.strokes)


WRONG: dict[str, tuple[dict[str, Any], str, str]] = {
    "nothing says what decides": ({}, "", "decides; add --figure, with one of: AP, loss"),
    "without that figure": (
        {},
        "bleu",
        "metrics.jsonl; there are: AP, loss; name one",
    ),
    "not validated yet": ({"values": []}, "AP", "has no validation in its metrics.jsonl yet; wait"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_has_no_curve_is_refused_in_one_line(name: str, made: Made) -> None:
    changed, figure, says = WRONG[name]
    with pytest.raises(SaccadeError) as error:
        read_curve(made("run", **{"values": [0.5], **changed}), figure=figure)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_a_run_without_a_diary_and_seeds_that_never_meet_are_refused(made: Made) -> None:
    silent = made("silent", [])
    (silent / "metrics.jsonl").unlink()
    with pytest.raises(SaccadeError, match=r"has no metrics\.jsonl, which tells how it learnt"):
        read_curve(silent, figure="AP")
    apart = made("run-0", [0.5, None], seed=0), made("run-1", [None, 0.5], seed=1)
    with pytest.raises(SaccadeError, match="no validation after the same update; wait for one"):
        curves_of(read_curve(path, figure="AP") for path in apart)
