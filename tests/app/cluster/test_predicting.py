"""Predicting with workers of Ray on this machine, for real: the same answers in the same order."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import saccade

pytest.importorskip("ray.data")


def predicted(*arguments: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-m", "saccade", "predict", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.slow
def test_lines_are_answered_as_without_ray_and_in_order(translator: Path, tmp_path: Path) -> None:
    file = tmp_path / "lines.txt"
    lines = [f"the dog {'eats ' * (number % 5)}{number} ." for number in range(600)]
    lines[7] = ""
    file.write_text("".join(f"{line}\n" for line in lines))
    model = saccade.load(translator, device="cpu")
    alone = [model.predict(line, beam=1).text if line else "" for line in lines[:40]]
    workers = "--ray", "--ray-workers", "2", "--beam", "1"
    found = predicted(str(translator), str(file), *workers, "--json").splitlines()
    rows = [json.loads(line) for line in found]
    assert [row["source"] for row in rows] == lines
    assert [row["text"] for row in rows[:40]] == alone
