"""Two processes on two GPUs compute what one does: NCCL, whole weights and split ones."""

from pathlib import Path
from typing import Any

import pytest
import torch

from saccade.train.run import train
from tests.train.many import distance, launch
from tests.train.member import recipe_of
from tests.train.small import ignore, losses, same_run, write_corpus

HERE = torch.cuda.device_count()
pytestmark = [
    pytest.mark.skipif(HERE < 2, reason=f"NCCL between GPUs needs two, and there are {HERE}"),
    pytest.mark.xdist_group("many-gpus"),
]
LAYOUTS: dict[str, dict[str, Any]] = {"DDP": {"shard": 1}, "FSDP2": {"shard": 2}}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", ["translation", "language"])
def test_two_gpus_train_as_one(kind: str, layout: str, tmp_path: Path) -> None:
    data, change = write_corpus(tmp_path / "data"), {"accumulate": 2, "device": "cuda"}
    train(recipe_of(data, kind, change), tmp_path / "one", ignore)
    life = {"kind": kind, "change": {**change, **LAYOUTS[layout]}, "folder": str(tmp_path / "two")}
    assert launch(data, [life]) == 0
    apart = distance(tmp_path / "two", tmp_path / "one")
    assert apart.weights < 1e-10
    assert apart.key_biases < 1e-8
    ours, theirs = losses(tmp_path / "two"), losses(tmp_path / "one")
    assert ours == pytest.approx(theirs, rel=1e-10)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_torchrun_brings_a_run_back_whose_worker_was_killed(layout: str, tmp_path: Path) -> None:
    data, change = write_corpus(tmp_path / "data"), {"device": "cuda", **LAYOUTS[layout]}
    whole, killed = (
        {"kind": "translation", "change": change, "folder": str(tmp_path / name), "kills": kills}
        for name, kills in (("whole", []), ("killed", [7]))
    )
    assert launch(data, [whole]) == 0
    assert launch(data, [killed], restarts=1) == 0
    assert "going on from step 4 of 20" in (tmp_path / "killed.notes").read_text()
    assert same_run(tmp_path / "killed", tmp_path / "whole") == []
