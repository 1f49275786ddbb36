"""Trains small runs, each in a process of its own that kills itself at a chosen place.

Called with a corpus, a file for the report and a plan: a list of lives in JSON. A life has a
`folder`, and may have a `kill` (place, step, detail) and something to `forget` when it resumes.
The processes are forked from one that has imported torch but computed nothing, to be quick.
"""

import json
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch._dynamo  # what the first optimizer would import, once for all lives

from saccade.tasks.translation.task import Translation
from saccade.train import fit, run
from saccade.train.events import Note, Update
from saccade.train.fit import Trainer
from saccade.train.optimizers.average import Average
from saccade.train.storage import checkpoint, files
from saccade.train.storage.checkpoint import Checkpoint
from saccade.train.storage.log import Log
from tests.train.small import small_recipe

Patch = Callable[[int, int], None]


class Now:
    """How far the run has come, seen from outside."""

    step = 0  # updates begun
    resumed = 0


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def watch_steps() -> None:
    advance, restore = Trainer.advance, Trainer.restore

    def counted(trainer: Trainer) -> Any:
        Now.step = trainer.step + 1
        return advance(trainer)

    def noted(trainer: Trainer, found: Checkpoint) -> None:
        restore(trainer, found)
        Now.resumed = found.step

    Trainer.advance, Trainer.restore = counted, noted  # type: ignore[method-assign]


def before_step(step: int, _: int) -> None:
    """The gradient is there, the weights are still the old ones."""
    clip = torch.nn.utils.clip_grads_with_norm_
    torch.nn.utils.clip_grads_with_norm_ = lambda *a: die() if Now.step == step else clip(*a)


def after_step(step: int, _: int) -> None:
    """The weights are new, their average is still the old one."""
    follow = Average.follow
    Average.follow = lambda *a: die() if Now.step == step else follow(*a)  # type: ignore


def epoch(step: int, _: int) -> None:
    """All is done for `step`, and the next update would open an epoch."""
    advance = Trainer.advance

    def dying(trainer: Trainer) -> Any:
        if trainer.step == step:
            first = trainer.step * trainer.settings.accumulate
            assert first % trainer.task.batches_per_epoch == 0, "not the end of an epoch"
            die()
        return advance(trainer)

    Trainer.advance = dying  # type: ignore[method-assign]


def validate(step: int, _: int) -> None:
    real = Translation.validate

    def dying(*arguments: Any) -> Any:
        figures = real(*arguments)
        return die() if Now.step == step else figures

    Translation.validate = dying  # type: ignore[method-assign]


def log(step: int, detail: int) -> None:
    """Half a line: of the update, or (detail 1) of the validation."""
    write = Log.write

    def torn(self: Log, at: int, values: dict[str, Any]) -> None:
        if at == step and ("valid_loss" in values) == bool(detail):
            with self._path.open("ab") as file:
                file.write(json.dumps({"step": at, **values}).encode()[:-7])
            die()
        write(self, at, values)

    Log.write = torn  # type: ignore[method-assign]


def weights(step: int, detail: int) -> None:
    """The best weights are written, but not yet in place; or their list is (1 before, 2 after)."""
    write, left = files.write_synced, [max(detail, 1)]
    name = ".tmp-manifest.json" if detail else ".tmp-model.safetensors"

    def dying(path: Path, content: bytes) -> None:
        write(path, content)
        if Now.step == step and path.name == name:
            left[0] -= 1
            if not left[0]:
                die()

    files.write_synced = dying


def save_file(step: int, detail: int) -> None:
    """Half of a checkpoint's file number `detail` (the last is the manifest)."""
    write, written = checkpoint.write_synced, [0]

    def torn(path: Path, content: bytes) -> None:
        if Now.step == step:
            if written[0] == detail:
                write(path, content[: len(content) // 2])
                die()
            written[0] += 1
        write(path, content)

    checkpoint.write_synced = torn


def rename(step: int, detail: int) -> None:
    """Before the folder gets its name, or (detail 1) after that and before old ones go."""
    sync = checkpoint.sync_folder

    def dying(folder: Path) -> None:
        if Now.step == step and folder.name.startswith(".tmp-") != bool(detail):
            die()
        sync(folder)

    checkpoint.sync_folder = dying


def delete(step: int, _: int) -> None:
    """An old checkpoint is half gone."""
    remove = shutil.rmtree

    def dying(folder: Path, **options: Any) -> None:
        if Now.step == step and folder.name.startswith("step-"):
            (folder / "manifest.json").unlink()
            die()
        remove(folder, **options)

    shutil.rmtree = dying  # type: ignore[assignment]


PLACES: dict[str, Patch] = {
    "before-step": before_step,
    "after-step": after_step,
    "epoch": epoch,
    "validate": validate,
    "log": log,
    "weights": weights,
    "save": save_file,
    "rename": rename,
    "delete": delete,
}


def forget(what: str) -> None:
    """Resume without one part of the state, as a careless trainer would."""
    restore, rate, seed = Trainer.restore, fit.learning_rate, fit.seed_update

    def careless(trainer: Trainer, found: Checkpoint) -> None:
        start = {name: value.clone() for name, value in trainer.model.state_dict().items()}
        restore(trainer, found)
        if what == "optimizer":
            trainer.optimizer.state.clear()
        if what == "average" and trainer.average is not None:
            trainer.average.model.load_state_dict(start)
        if what == "counters":
            trainer.best, trainer.best_step, trainer.stale = {}, 0, 0
        if what == "position":
            trainer.position = 0

    Trainer.restore = careless  # type: ignore[method-assign]
    if what == "schedule":
        fit.learning_rate = lambda kind, top, step, **k: rate(kind, top, step - Now.resumed, **k)
    if what == "randomness":
        fit.seed_update = lambda number, step, rank: seed(number, step - Now.resumed, rank)


def live(data: str, life: dict[str, Any], report: Path) -> None:
    watch_steps()
    if life.get("forget"):
        forget(life["forget"])
    if life.get("kill"):
        place, step, detail = life["kill"]
        PLACES[place](step, detail)
    folder = Path(life["folder"])

    def tell(**values: Any) -> None:
        with report.open("a") as file:  # a line at once, so that no kill can take it back
            file.write(json.dumps({"folder": life["folder"], **values}) + "\n")

    def watch(event: object) -> None:
        if isinstance(event, Update):
            tell(step=event.step)
        elif isinstance(event, Note) and event.text.startswith("going on"):
            tell(resumed=Now.resumed)

    run.train(small_recipe(data), folder, watch)


def main() -> None:
    data, report, plan = sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])
    torch.set_num_threads(1)
    for life in plan:
        child = os.fork()
        if not child:
            try:
                live(data, life, report)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        folder = Path(life["folder"])
        left = [path.name for path in (folder / "checkpoints").glob(".tmp-*")]
        ended = os.waitstatus_to_exitcode(status)
        with report.open("a") as file:
            line = {"folder": life["folder"], "ended": ended, "left": left, "life": life}
            file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
