"""Going on with a run: what may differ from when it was stopped, what that changes, what cannot."""

import hashlib
import platform
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from saccade.errors import RunError, WriteError
from saccade.printable import printable
from saccade.train.fit import Trainer
from saccade.train.recipe import Change, Recipe
from saccade.train.stopping import locked
from saccade.train.storage.checkpoint import Checkpoint, load_newest
from saccade.train.storage.folder import RunFolder, changes

ENVIRONMENT = {"torch", "python", "threads", "processes", "device", "shard"}
# Of how to train, what a run cannot go on without; all else may change under --change.
FIXED = {
    "train.seed": "every draw so far came from it",
    "train.optimizer": "the state of one is of no use to another",
    **dict.fromkeys(
        ("train.freeze", "train.lora", "train.lora_alpha"), "other weights would learn"
    ),
}
ANEW = "--start-over moves this run aside and trains anew, another --out trains beside it"


def has_begun(run: RunFolder) -> bool:
    """Whether anything was trained here."""
    return run.weights.exists() or run.has_checkpoints


def compare(run: RunFolder, recipe: Recipe, *, change: bool) -> tuple[Recipe, list[Change]]:
    """The recipe with the run's own past, and what differs now; refuses what may not.

    Where nothing was trained yet, everything may.
    """
    if not run.config.exists():
        _refuse_foreign_files(run)
        return recipe, []
    before = run.load_recipe()
    _refuse_lost_checkpoints(run)
    differing = [
        Change(step=0, name=n, old=old, new=new) for n, old, new in changes(before, recipe)
    ]
    for one in differing:
        if has_begun(run) and one.name != "train.steps":
            _check(run, one, change=change)
    return replace(recipe, changes=before.changes, lineage=before.lineage), differing


def _refuse_foreign_files(run: RunFolder) -> None:
    """A folder that is no run may hold what training would write over."""
    if run.has_checkpoints or run.manifest.path.exists():
        return
    for one in (run.card, run.weights, run.metrics, run.path / "tokenizer.json"):
        if one.exists():
            raise RunError(
                f"{printable(run.path)} is not a run and holds {one.name}, which training would "
                "write over; choose another folder with --out"
            )


def _refuse_lost_checkpoints(run: RunFolder) -> None:
    """Training from nothing would write over what was learnt. A card follows a checkpoint."""
    if run.card.exists() and run.weights.exists() and not run.has_checkpoints:
        path = printable(run.path)
        raise RunError(
            f"{path} was trained, but the checkpoints to go on from are gone; --init {path} with "
            f"another --out goes on from its weights, {ANEW}"
        )


def _check(run: RunFolder, one: Change, *, change: bool) -> None:
    training = one.name.startswith("train.") and one.name not in FIXED
    if training and change:
        return
    way = "--change goes on with the new one" if training else ""
    why = FIXED.get(one.name, "weights or data would be others")
    cannot = f" (--change cannot: {why})" if change else ""
    raise RunError(
        f"{run.path} was started with {one.name}={one.old!r}, now {one.new!r}; give the old value "
        f"to go on{cannot}, {f'{way}, ' if way else ''}{ANEW}"
    )


def tell(differing: list[Change], trainer: Trainer) -> list[str]:
    """What became of a run that goes on with other settings, in lines for the user."""
    lines = [str(one) for one in differing]
    names = {one.name for one in differing} - {"train.steps"}
    if not names:
        return lines
    kept = "weights and optimizer state are as they were"
    if trainer.settings.precision != "float64" and "train.precision" in names:
        kept += " (rounded, if they were float64)"
    if "train.ema" in names and trainer.average is not None:
        kept += "; the average goes on, or begins with these weights"
    place = "and so is the place in the data"
    if names & {"train.batch_tokens", "train.batches"}:
        done, total = trainer.position % (n := trainer.task.batches_per_epoch), n
        place = (
            f"batches are other ones: {done:,} of {total:,} of this epoch count as seen, and until "
            "it ends a row may come twice or not at all"
        )
    return [*lines, f"from step {trainer.step:,} on, with the new settings; {kept}; {place}"]


def restore(trainer: Trainer, run: RunFolder) -> tuple[bool, list[str]]:
    """Go on from the newest checkpoint, if there is one, and say so."""
    checkpoint, troubles = load_newest(run.checkpoints, trainer.templates)
    notes = [f"passed over: {trouble}" for trouble in troubles]
    if checkpoint is None:
        return False, notes
    notes += _refuse_foreign(checkpoint, fingerprint(trainer, run), run)
    trainer.restore(checkpoint)
    if trainer.best and not run.has_weights:
        notes.append(f"{run.weights} is missing or damaged: the next validation writes it anew")
        trainer.best, trainer.best_step, trainer.stale = {}, 0, 0
    how = "already trained to" if trainer.finished else "going on from"
    return True, [*notes, f"{how} step {checkpoint.step:,} of {trainer.settings.steps:,}"]


def fingerprint(trainer: Trainer, run: RunFolder) -> dict[str, Any]:
    """What must be the same, and what should be, for a resumed run to be the same run."""
    return {
        # First, for with another tokenizer the data are other numbers too.
        **{Path(name).stem: _digest(run.path / name) for name in trainer.task.assets()},
        "data": trainer.data,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "threads": torch.get_num_threads(),
        "processes": trainer.world.size,
        "device": trainer.world.device.type,
        **({"shard": trainer.layout.shard} if trainer.layout.splits else {}),
    }


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _refuse_foreign(checkpoint: Checkpoint, now: dict[str, Any], run: RunFolder) -> list[str]:
    notes: list[str] = []
    then = {"shard": 1, **checkpoint.state}
    for name, value in {"shard": 1, **now}.items():
        before = then.get(name)
        if before == value:
            continue
        if name not in ENVIRONMENT:
            raise RunError(
                f"the {name} of {run.path} changed since step {checkpoint.step:,}; bring the old "
                f"back to go on, {ANEW}"
            )
        notes.append(f"{name} was {before}, now {value}: the last digits may differ")
    return notes


def move_aside(folder: Path) -> Path | None:
    """Give a run that nobody is training another name, so that its own is free."""
    if not RunFolder(folder).config.exists():
        return None
    number = 1
    while (aside := folder.with_name(f"{folder.name}.{number}")).exists():
        number += 1
    with locked(folder):
        try:
            return folder.rename(aside)
        except OSError as error:
            raise WriteError(
                f"cannot move {folder} aside to {aside}: {error.strerror}; use another --out"
            ) from error
