"""Training by workers of Ray on this machine, for real: as torchrun's workers would do it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import saccade
from saccade.train.storage.folder import RunFolder
from tests.train.small import losses, same_run

pytest.importorskip("ray.train")

RECIPE = [
    *("train", "rnn-lm", "--sentences", "60", "--model.width", "16", "--model.dropout", "0"),
    *("--train.steps", "4", "--train.validate-every", "2", "--train.device", "cpu"),
    *("--train.precision", "float64", "--train.batch-tokens", "256"),
]


KILLED = [
    *("train", "rnn-lm", "--sentences", "60", "--model.width", "16", "--train.device", "cpu"),
    *("--train.steps", "24", "--train.validate-every", "8", "--train.save-every", "5"),
    *("--train.log-every", "1", "--train.batch-tokens", "256"),
]
# The second worker, between two checkpoints, while the first owns the folder.
PLAN = [(7, 1)]


def ends_well(*command: str) -> None:
    ended = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, check=False, timeout=400
    )
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr


def trained(out: Path, *more: str) -> dict[str, torch.Tensor]:
    ends_well("-m", "saccade", *RECIPE, "--out", str(out), *more)
    return dict(saccade.load(out, device="cpu").network.state_dict())


@pytest.mark.slow
def test_two_workers_of_ray_learn_what_one_process_does(tmp_path: Path) -> None:
    one, two = trained(tmp_path / "one"), trained(tmp_path / "two", "--ray", "--ray-workers", "2")
    assert RunFolder(tmp_path / "two").newest_state()["step"] == 4
    for name, weight in one.items():
        torch.testing.assert_close(two[name].double(), weight.double(), rtol=1e-6, atol=1e-7)


@pytest.mark.slow
def test_workers_that_are_killed_come_back_and_learn_the_same_bits(tmp_path: Path) -> None:
    """As two processes that nobody has killed, and which torchrun started, for that is quicker."""
    alone, killed = tmp_path / "alone", tmp_path / "killed"
    torchrun = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    ends_well(*torchrun, "-m", "saccade", *KILLED, "--out", str(alone))
    driver = str(Path(__file__).with_name("killed_workers.py"))
    workers = ("--ray", "--ray-workers", "2")
    ends_well(driver, str(tmp_path), json.dumps(PLAN), *KILLED, "--out", str(killed), *workers)
    assert (tmp_path / "killed-7-1").exists()
    begun = (tmp_path / "begun").read_text().split()
    assert (begun.count("5"), begun.count("6")) == (1, 2), "from the checkpoint, not from nothing"
    assert {step for step, name in losses(alone) if name == "loss"} == set(range(1, 25))
    assert same_run(killed, alone) == []
