"""Runs against how many labels they had: a line for each start, seeds together, one panel."""

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from saccade.app.cli.compare import compare_command
from saccade.app.compare.runs import points_of, read_finished
from saccade.errors import SaccadeError
from saccade.tasks.understanding.data import UnderstandingSettings
from saccade.train.recipe import to_table
from saccade.train.recipes import RECIPES
from tests.app.test_cli import Capture, Patch, run
from tests.train.small import rewrite

VALUES = {  # of each start and number of labels, seed after seed
    ("", 30): (0.5, 0.6),
    ("", 1000): (0.7, 0.9),
    ("/some/bert", 30): (0.8, 0.8),
    ("/some/bert", 1000): (0.95, 0.97),
}


def finished(like: Path, path: Path, value: float, *, init: str, labels: int, seed: int) -> Path:
    """A run that has ended: the files of another, with the settings and the figure of this."""
    shutil.copytree(like, path)
    recipe = RECIPES["bert-classify"]
    task = replace(recipe.task, labelled=labels)
    how = replace(recipe.train, steps=2, seed=seed)
    table = to_table(replace(recipe, task=task, train=how, init=init))
    rewrite(path / "config.json", json.dumps(table))
    (newest,) = path.glob("checkpoints/step-00000002/state.json")
    newest.write_text(
        json.dumps(json.loads(newest.read_text()) | {"best": {"top1": value, "loss": 1.0}})
    )
    return path


@pytest.fixture
def runs(classifier: Path, tmp_path: Path) -> list[Path]:
    return [
        finished(
            classifier,
            tmp_path / f"{Path(init).name or 'nothing'}-{labels}-{seed}",
            value,
            init=init,
            labels=labels,
            seed=seed,
        )
        for (init, labels), values in VALUES.items()
        for seed, value in enumerate(values)
    ]


def test_a_run_from_nothing_and_one_from_another_are_different_points(runs: list[Path]) -> None:
    points = points_of(read_finished(run, figure="", split="") for run in runs)
    assert len(points) == len(VALUES)
    assert sorted(tuple(point.values) for point in points) == sorted(VALUES.values())


def test_labels_are_an_axis_starts_are_lines_and_all_shares_one_panel(
    runs: list[Path], monkeypatch: Patch, capsys: Capture, tmp_path: Path
) -> None:
    out = tmp_path / "labels.svg"
    given = ["compare", *map(str, runs), "--x", "labels"]
    assert run([*given, "-o", str(out)], monkeypatch) == 0
    title, head, *lines = capsys.readouterr().out.splitlines()
    assert title == "lingua (acceptable):"
    assert head.split()[:4] == ["start", "run", "labelled", "items"]
    cells = [line.split() for line in lines[:4]]
    shown = [(row[1], row[3], row[-4], row[-2], row[-1]) for row in cells]
    assert shown == [
        (
            Path(init).name or "nothing",
            f"{labels:,}",
            f"{math.fsum(v) / 2:.4f}",
            f"{v[0]:.4f}",
            f"{v[1]:.4f}",
        )
        for (init, labels), v in sorted(
            VALUES.items(), key=lambda one: (-len(one[0][0]), one[0][1])
        )
    ]
    drawn = out.read_text()
    assert all(f">{text}</text>" in drawn for text in ("from nothing", "from bert", title[:-1]))
    assert "bert-30" not in drawn  # where it stands says so


def test_programs_are_told_the_same(runs: list[Path], monkeypatch: Patch, capsys: Capture) -> None:
    assert run(["compare", *map(str, runs), "--x", "labels", "--json"], monkeypatch) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(one["start"], one["labels"], one["data"]) for one in found] == [
        ("from bert", 30, "lingua (acceptable)"),
        ("from bert", 1000, "lingua (acceptable)"),
        ("from nothing", 30, "lingua (acceptable)"),
        ("from nothing", 1000, "lingua (acceptable)"),
    ]
    assert all(one["family"] == "bert" for one in found)


def test_lines_may_be_families_there_too(
    runs: list[Path], monkeypatch: Patch, tmp_path: Path
) -> None:
    out = tmp_path / "labels.svg"
    asked = ["--x", "labels", "--by", "family", "-o", str(out)]
    assert run(["compare", *map(str, runs[:4]), *asked], monkeypatch) == 0
    assert ">bert</text>" in out.read_text()


def test_how_many_labels_there_were_is_what_the_settings_say() -> None:
    lingua = UnderstandingSettings(count=500)
    assert lingua.labelled_items == 500
    assert replace(lingua, labelled=30).labelled_items == 30
    assert replace(lingua, labelled=9000).labelled_items == 500
    own = UnderstandingSettings(data="my.tsv")
    assert own.labelled_items is None  # nobody has counted yet
    assert replace(own, labelled=30).labelled_items == 30
    assert replace(own, labelled=30).with_every_label() == own


def test_runs_without_labels_have_no_place_there(writer: Path, runs: list[Path]) -> None:
    with pytest.raises(SaccadeError, match=r"--x labels: nobody has counted it of .*writer"):
        compare_command((str(runs[0]), str(writer)), x="labels", figure="loss")
