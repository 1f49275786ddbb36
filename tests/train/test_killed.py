"""Kill it at any instant, start it again: the same numbers as if nothing had happened."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.train.small import STEPS, hashes, losses, same_run, write_corpus

pytestmark = pytest.mark.slow

# place, step, detail: see victim.py. Saves happen at multiples of 3 and of 5, checks at those of 5,
# and an epoch ends with every 7th step. Files of a checkpoint: 0 model … 3 state, 4 manifest.
KILLS = [
    ("before-step", 2, 0),
    ("save", 3, 1),
    ("validate", 5, 0),
    ("log", 6, 0),
    ("save", 6, 2),
    ("epoch", 7, 0),
    ("after-step", 8, 0),
    ("rename", 9, 0),
    ("rename", 9, 1),
    ("weights", 10, 1),
    ("weights", 10, 2),
    ("weights", 10, 0),
    ("delete", 10, 0),
    ("before-step", 11, 0),
    ("save", 12, 3),
    ("epoch", 14, 0),
    ("validate", 15, 0),
    ("save", 15, 4),
    ("after-step", 17, 0),
    ("rename", 18, 0),
    ("log", 20, 0),
    ("validate", 20, 0),
    ("rename", 20, 1),
    ("epoch", 21, 0),
    ("save", 24, 0),
    ("delete", 24, 0),
    ("log", 25, 1),
    ("rename", 30, 0),
    ("epoch", 35, 0),
    ("save", 40, 2),
]
FORGOTTEN = ("optimizer", "average", "counters", "position", "schedule", "randomness")
INSIDE_SAVE = ("save", "rename", "delete")


class Life(NamedTuple):
    """What became of one process."""

    plan: dict[str, Any]
    ended: int
    left: list[str]
    resumed: int
    steps: list[int]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("killed")


@pytest.fixture(scope="module")
def lives(folder: Path) -> list[Life]:
    """One run left alone, one killed again and again, and one per thing that a restore forgets."""
    data, report = write_corpus(folder / "data"), folder / "report.jsonl"
    plan: list[dict[str, Any]] = [{"folder": str(folder / "alone")}]
    killed = str(folder / "killed")
    plan += [{"folder": killed, "kill": kill} for kill in KILLS] + [{"folder": killed}]
    for what in FORGOTTEN:
        careless = str(folder / what)
        plan += [{"folder": careless, "kill": ("after-step", 17, 0)}]
        plan += [{"folder": careless, "forget": what}]
    here = Path(__file__)
    command = [*map(str, (sys.executable, here.with_name("victim.py"), data, report))]
    environment = os.environ | {"PYTHONPATH": str(here.parents[2])}
    subprocess.run([*command, json.dumps(plan)], check=True, timeout=500, env=environment)
    return _parse(report)


def _parse(report: Path) -> list[Life]:
    found: list[Life] = []
    resumed, steps = 0, []
    for line in map(json.loads, report.read_text().splitlines()):
        if "step" in line:
            steps.append(line["step"])
        elif "resumed" in line:
            resumed = line["resumed"]
        else:
            found.append(Life(line["life"], line["ended"], line["left"], resumed, steps))
            resumed, steps = 0, []
    return found


def of(lives: list[Life], name: str) -> list[Life]:
    return [life for life in lives if Path(life.plan["folder"]).name == name]


def test_a_run_killed_again_and_again_is_the_run_left_alone(
    lives: list[Life], folder: Path
) -> None:
    assert same_run(folder / "killed", folder / "alone") == []
    assert {step for step, name in losses(folder / "alone") if name == "loss"} == set(
        range(1, STEPS + 1)
    )
    kinds = {key.split()[0] for key in hashes(folder / "alone")}
    assert {"model", "average", "optimizer", "kept"} < kinds


def test_the_kills_struck_where_they_were_meant_to(lives: list[Life]) -> None:
    killed = of(lives, "killed")
    assert [life.ended for life in killed] == [-9] * len(KILLS) + [0]
    inside = [kill for kill in KILLS if kill[0] in INSIDE_SAVE]
    assert len(KILLS) >= 20
    assert len(inside) >= len(KILLS) / 3
    for place in ("validate", "epoch", "after-step", "log"):
        assert sum(kill[0] == place for kill in KILLS) >= 2
    epochs = [(kill[1] - 1) // 7 for kill in KILLS]  # 7 updates use up two epochs
    assert any(epochs.count(epoch) >= 2 for epoch in epochs)


def test_the_kills_did_harm_that_resuming_had_to_undo(lives: list[Life]) -> None:
    killed = of(lives, "killed")
    resumed = [life.resumed for life in killed]
    assert resumed[:2] == [0, 0]
    assert all(step > 0 for step in resumed[3:])
    assert resumed == sorted(resumed)
    assert max(resumed) >= 35
    assert sum(len(life.steps) for life in killed) - STEPS >= 30, "hardly a step was done twice"
    assert sum(bool(life.left) for life in killed) >= 8, "hardly a checkpoint was left half written"


@pytest.mark.parametrize("what", FORGOTTEN)
def test_a_restore_that_forgets_anything_is_found_out(
    what: str, lives: list[Life], folder: Path
) -> None:
    first, second = of(lives, what)
    assert (first.ended, second.ended, second.resumed) == (-9, 0, 15)
    assert same_run(folder / what, folder / "alone") != []


def test_only_what_was_forgotten_differs(lives: list[Life], folder: Path) -> None:
    careless, alone = hashes(folder / "counters"), hashes(folder / "alone")
    differing = {name.split()[0] for name in alone if alone[name] != careless[name]}
    assert differing == {"best", "best_step", "stale", "kept"}
