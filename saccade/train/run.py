"""Training a recipe in a folder: start, or go on exactly where it was killed."""

import hashlib
import platform
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from saccade.errors import RunError, TrainingError
from saccade.models.protocol import Packable, StartsFromPublished
from saccade.tasks.base import Preparation, Task
from saccade.train.card import write_card
from saccade.train.checkpoint import Checkpoint, load_newest, save_checkpoint
from saccade.train.deterministic import deterministic
from saccade.train.distributed import World, join_world
from saccade.train.fit import Clock, Event, Skipped, Trainer, Update
from saccade.train.folder import RunFolder, changes
from saccade.train.log import Log
from saccade.train.recipe import Recipe
from saccade.train.settings import TrainSettings
from saccade.train.stopping import StopRequest, locked, stop_on_signals


@dataclass(frozen=True)
class Note:
    """A line for the user."""

    text: str


@dataclass(frozen=True)
class DataProgress:
    """So many of the data are ready, of how many."""

    done: int
    total: int


Watch = Callable[[Event | Note | DataProgress], None]


@dataclass(frozen=True)
class TrainingOutcome:
    """How training ended: `signal` is the one that stopped it, 0 if it came to its end.

    `preparing` are the seconds before the first update (reading, tokenizing, building), `training`
    those after: updates, what is compiled or recorded for them, validations, checkpoints.
    """

    folder: Path
    step: int
    best: dict[str, float]
    signal: int
    preparing: float = field(compare=False)
    training: float = field(compare=False)


def train(recipe: Recipe, folder: Path, watch: Watch) -> TrainingOutcome:
    """Train to the end, from wherever an earlier start of the same command came to."""
    with join_world(recipe.train.device) as world, stop_on_signals() as stop:
        run, same = RunFolder(folder), recipe.train.deterministic
        speak: Watch = watch if world.first else lambda event: None
        alone = locked(folder) if world.first else nullcontext()
        with alone, deterministic(world.device, wanted=same):
            begun = time.perf_counter()
            trainer, recipe = _prepare(recipe, run, world, speak)
            preparing = time.perf_counter() - begun
            _go_on(trainer, recipe, run, stop, speak)
            if not stop.signal and not trainer.best:
                raise TrainingError(
                    f"no validation of {folder} gave a finite {trainer.task.deciding.label}, so it "
                    "has no weights to use; train anew with a lower --train.learning-rate and "
                    "another --out"
                )
            training = time.perf_counter() - begun - preparing
            return TrainingOutcome(
                folder, trainer.step, trainer.best, stop.signal, preparing, training
            )


def make_task(
    recipe: Recipe, folder: Path | None = None, watch: Watch = lambda event: None
) -> Task[Any]:
    """The recipe's data, ready to be learnt from; assets that `folder` holds are used again."""
    how = Preparation(
        budget=recipe.train.batch_tokens,
        seed=recipe.train.seed,
        batching=recipe.train.batches,
        folder=folder,
        progress=lambda done, total: watch(DataProgress(done, total)),
    )
    return recipe.task.prepare(how)


def _prepare(recipe: Recipe, run: RunFolder, world: World, watch: Watch) -> tuple[Trainer, Recipe]:
    if run.config.exists():
        _refuse_changes(run, recipe, watch)
    if not world.first:
        world.wait()  # the first process makes the assets
    recipe.task.check(recipe.model)
    watch(Note(recipe.task.announcement))
    task = make_task(recipe, run.path, watch)
    recipe = replace(recipe, model=task.fit(recipe.model))
    if world.first:
        run.save_assets(task.assets())
        run.save_recipe(recipe)
        world.wait()
    torch.manual_seed(recipe.train.seed)
    trainer = Trainer(recipe.model.build(), task, recipe.train, world)
    for line in task.report:
        watch(Note(line))
    size = sum(p.numel() for p in trainer.model.parameters())
    watch(Note(f"{size:,} parameters, {task.sizes}"))
    watch(
        Note(
            f"{task.batches_per_epoch:,} batches to an epoch, padding {_padding(trainer):.1%}, "
            f"device {world.device}"
        )
    )
    if not _resume(trainer, run, watch):
        _start_from_published(trainer, watch)
    return trainer, recipe


def _start_from_published(trainer: Trainer, watch: Watch) -> None:
    """Give a model the published weights that its config names, if it names any."""
    model = trainer.model
    report = model.load_published() if isinstance(model, StartsFromPublished) else None
    if report is None:
        return
    if trainer.average is not None:  # it began with the fresh ones
        trainer.average.model.load_state_dict(trainer.model.state_dict())
    watch(Note(str(report)))


def _padding(trainer: Trainer) -> float:
    """The share of padding among the positions computed: none where sentences lie end to end."""
    model = trainer.model
    packed = isinstance(model, Packable) and model.packs and trainer.settings.batches == "similar"
    return 0.0 if packed else trainer.task.padding


def _resume(trainer: Trainer, run: RunFolder, watch: Watch) -> bool:
    """Go on from the newest checkpoint, if there is one."""
    checkpoint, troubles = load_newest(run.checkpoints)
    for trouble in troubles:
        watch(Note(f"passed over: {trouble}"))
    if checkpoint is None:
        return False
    _refuse_foreign(checkpoint, _fingerprint(trainer, run), run, watch)
    trainer.restore(checkpoint)
    if trainer.best and not run.has_weights:
        watch(Note(f"{run.weights} is missing or damaged: the next validation writes it anew"))
        trainer.best, trainer.best_step, trainer.stale = {}, 0, 0
    how = "already trained to" if trainer.finished else "going on from"
    watch(Note(f"{how} step {checkpoint.step:,} of {trainer.settings.steps:,}"))
    return True


def _go_on(
    trainer: Trainer, recipe: Recipe, run: RunFolder, stop: StopRequest, watch: Watch
) -> None:
    settings, first = trainer.settings, trainer.world.first
    log = Log(run.metrics, after=trainer.step, tensorboard=settings.tensorboard) if first else None
    clock = Clock()
    if trainer.finished and not trainer.best:
        _validate(trainer, run, log, watch)
    while not trainer.finished:
        trainer.advance()
        step = trainer.step
        due = step % settings.validate_every == 0 or step == settings.steps
        asked = trainer.world.sum(float(stop.signal)) > 0
        saves = due or asked or bool(settings.save_every and step % settings.save_every == 0)
        # A GPU is asked how it went only now and then, for it would have to stop to answer.
        if saves or step % settings.log_every == 0 or trainer.world.device.type != "cuda":
            _tell(trainer.settle(), clock, settings, log, watch)
        clock.tick(trainer.tokens_of_last)
        if due:
            _validate(trainer, run, log, watch)
        if first and saves:
            _save(trainer, run)
        if asked:
            break
    if log is not None:
        log.close()
        write_card(run, recipe, trainer.task.deciding, trainer.best, trainer.best_step)
    if trainer.captured is not None and trainer.captured.seconds:
        watch(Note(f"capturing the step for the GPU took {trainer.captured.seconds:.1f} s"))


def _tell(
    events: list[Update | Skipped],
    clock: Clock,
    settings: TrainSettings,
    log: Log | None,
    watch: Watch,
) -> None:
    for event in events:
        if isinstance(event, Update):
            event = _timed(event, clock, settings.steps)
            if log is not None and event.step % settings.log_every == 0:
                log.write(event.step, _logged(event))
        watch(event)


def _validate(trainer: Trainer, run: RunFolder, log: Log | None, watch: Watch) -> None:
    validated = trainer.validate()
    if log is not None:
        log.write(validated.step, {f"valid_{k}": v for k, v in validated.figures.items()})
        if validated.best:
            run.save_weights(trainer.kept)
    watch(validated)


def _timed(event: Update, clock: Clock, steps: int) -> Update:
    left = clock.seconds_per_step * (steps - event.step)
    return replace(event, tokens_per_second=clock.tokens_per_second, seconds_left=left)


def _logged(event: Update) -> dict[str, Any]:
    return {
        "loss": event.loss,
        **{f"loss_{name}": part for name, part in event.losses.items()},
        "learning_rate": event.learning_rate,
        "tokens_per_second": round(event.tokens_per_second, 1),
    }


def _save(trainer: Trainer, run: RunFolder) -> None:
    checkpoint = trainer.checkpoint()
    state = {**checkpoint.state, **_fingerprint(trainer, run)}
    whole = Checkpoint(checkpoint.step, checkpoint.tensors, state)
    save_checkpoint(run.checkpoints, whole, keep=trainer.settings.keep)


ENVIRONMENT = {"torch", "python", "threads", "processes", "device"}


def _fingerprint(trainer: Trainer, run: RunFolder) -> dict[str, Any]:
    """What must be the same, and what should be, for a resumed run to be the same run."""
    return {
        # First, for with another tokenizer the data are other numbers too.
        **{Path(name).stem: _digest(run.path / name) for name in trainer.task.assets()},
        "data": trainer.task.fingerprint(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "threads": torch.get_num_threads(),
        "processes": trainer.world.size,
        "device": trainer.world.device.type,
    }


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _refuse_foreign(
    checkpoint: Checkpoint, now: dict[str, Any], run: RunFolder, watch: Watch
) -> None:
    for name, value in now.items():
        before = checkpoint.state.get(name)
        if before == value:
            continue
        if name not in ENVIRONMENT:
            raise RunError(
                f"the {name} of {run.path} changed since step {checkpoint.step:,}; bring the old "
                "back to go on, or train anew with another --out"
            )
        watch(Note(f"{name} was {before}, now {value}: the last digits may differ"))


def _refuse_changes(run: RunFolder, recipe: Recipe, watch: Watch) -> None:
    before = run.load_recipe()
    for name, old, new in changes(before, recipe):
        if name == "train.steps":
            watch(Note(f"train.steps was {old:,}, now {new:,}"))
            continue
        raise RunError(
            f"{run.path} was started with {name}={old!r}, now {new!r}; give the old value to go "
            "on, or another --out to train anew"
        )
