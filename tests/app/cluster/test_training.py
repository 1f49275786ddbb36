"""Training by workers of Ray on this machine, for real: as torchrun's workers would do it."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

import saccade
from saccade.train.folder import RunFolder

pytest.importorskip("ray.train")

RECIPE = [
    *("train", "rnn-lm", "--sentences", "60", "--model.width", "16", "--model.dropout", "0"),
    *("--train.steps", "4", "--train.validate-every", "2", "--train.device", "cpu"),
    *("--train.precision", "float64", "--train.batch-tokens", "256"),
]


def trained(out: Path, *more: str) -> dict[str, torch.Tensor]:
    ended = subprocess.run(
        [sys.executable, "-m", "saccade", *RECIPE, "--out", str(out), *more],
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr
    return dict(saccade.load(out, device="cpu").network.state_dict())


@pytest.mark.slow
def test_two_workers_of_ray_learn_what_one_process_does(tmp_path: Path) -> None:
    one, two = trained(tmp_path / "one"), trained(tmp_path / "two", "--ray", "--ray-workers", "2")
    assert RunFolder(tmp_path / "two").newest_state()["step"] == 4
    for name, weight in one.items():
        torch.testing.assert_close(two[name].double(), weight.double(), rtol=1e-6, atol=1e-7)
