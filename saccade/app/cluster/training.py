"""`saccade train … --ray`: the same training in processes that Ray Train starts, at any place.

Ray places and starts the processes, joins them, and starts them anew if one dies; what is trained,
saved and gone on with is as ever. All processes must see the same run folder and the same data.
"""

import os
import tempfile
from pathlib import Path
from typing import Any

from saccade.app.cluster.connect import RaySettings, connected, ray_module
from saccade.errors import TrainingError
from saccade.train.recipe import Recipe, from_table, to_table
from saccade.train.run import train
from saccade.train.storage.folder import RunFolder

RESTARTS = 3  # after a worker was lost, from the last checkpoint


def train_on_ray(recipe: Recipe, out: Path, how: RaySettings, *, change: bool = False) -> None:
    """Train to the end on so many workers."""
    with connected(how), tempfile.TemporaryDirectory(prefix="saccade-ray-") as scratch:
        table = to_table(recipe.located())
        given = {"recipe": table, "out": str(out.resolve()), "change": change}
        ray_train, torch_part = ray_module("ray.train"), ray_module("ray.train.torch")
        gpu = bool(ray_module().cluster_resources().get("GPU")) and recipe.train.device != "cpu"
        trainer = torch_part.TorchTrainer(
            work,
            train_loop_config=given,
            scaling_config=ray_train.ScalingConfig(num_workers=how.ray_workers, use_gpu=gpu),
            run_config=ray_train.RunConfig(
                name="saccade",
                storage_path=scratch,
                failure_config=ray_train.FailureConfig(max_failures=RESTARTS),
            ),
        )
        try:
            trainer.fit()
        except Exception as error:
            raise TrainingError(f"the workers have failed: {_reason(error)}") from error
    if not RunFolder(out).newest_state():
        raise TrainingError(f"{out} has no checkpoint: the workers do not write to this machine")


def work(given: dict[str, Any]) -> None:
    """What each worker does."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    recipe = from_table(given["recipe"], where="the recipe")
    train(recipe, Path(given["out"]), lambda event: None, change=given["change"])


def _reason(error: BaseException) -> str:
    """The last line of what Ray says went wrong in a worker."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines or [type(error).__name__])[-1][:300]
