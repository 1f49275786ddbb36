"""Runs of many processes: started as torchrun starts them, and compared."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import torch

from saccade.train.storage.checkpoint import load_checkpoint

LAST = "checkpoints/step-00000020"


def launch(
    data: Path,
    plan: list[dict[str, Any]],
    *,
    processes: int = 2,
    restarts: int = 0,
    timeout: float = 120,
) -> int:
    """So many processes that live through a plan (see member.py)."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    how = ["--nproc-per-node", str(processes), "--max-restarts", str(restarts)]
    member = [str(Path(__file__).with_name("member.py")), str(data), json.dumps(plan)]
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": root}
    command = [*torchrun, *how, *member]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    try:
        return process.wait(timeout)
    finally:
        process.terminate()  # it takes its workers along, which a kill would not
        process.wait()


class Distance(NamedTuple):
    """The largest difference between the last weights (and averages) of two runs.

    The biases of keys stand apart. Softmax ignores what they add, so their gradient is zero but for
    rounding, and Adam divides that noise by its ε = 1e-8: they drift by about 1e-11, and nothing
    depends on it.
    """

    weights: float
    key_biases: float


def distance(first: Path, second: Path) -> Distance:
    found: dict[bool, list[float]] = {False: [], True: []}
    one, other = (load_checkpoint(run / LAST).tensors for run in (first, second))
    assert one.keys() == other.keys()
    for part in one.keys() - {"optimizer"}:
        ours, theirs = one[part], other[part]
        assert ours.keys() == theirs.keys()
        assert {tensor.dtype for tensor in ours.values()} == {torch.float64}
        for key in ours:
            gap = (ours[key] - theirs[key]).abs().max().item()
            found[key.endswith("to_k.bias")].append(gap)
    assert len(found[False]) > 10
    return Distance(max(found[False]), max(found[True]))
