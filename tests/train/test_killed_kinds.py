"""Every kind of work, killed at any instant and started again, is the run left alone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from saccade.tasks import KINDS
from tests.train.every_kind import SMALL
from tests.train.small import same_run

LIVES = 4  # that end before their time
KILLED = -9


def test_every_kind_is_tried() -> None:
    assert set(SMALL) == set(KINDS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kinds")
    here = Path(__file__)
    command = [sys.executable, here.with_name("many_lives.py"), folder, LIVES, *SMALL]
    environment = os.environ | {"PYTHONPATH": str(here.parents[2])}
    subprocess.run([*map(str, command)], check=True, timeout=900, env=environment)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_killed_again_and_again_it_is_the_run_left_alone(name: str, folder: Path) -> None:
    home = folder / name
    *killed, last = json.loads((home / "ended.json").read_text())
    assert killed.count(KILLED) >= 2
    assert set(killed) <= {KILLED, 0}  # it may have come to its end before
    assert last == 0
    assert same_run(home / "killed", home / "alone") == []
    for first in home.glob("alone-*"):  # of a recipe in stages
        assert same_run(home / first.name.replace("alone", "killed"), first) == []
    assert not list(home.rglob(".tmp-*"))
    assert not list(home.rglob("*.tmp"))
