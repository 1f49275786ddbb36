"""Training a recipe in a folder: start, or go on exactly where it was killed."""

import shutil
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from saccade.config import WordModelConfig
from saccade.errors import ConfigError, RunError, TrainingError
from saccade.models.outline import outline
from saccade.models.protocol import Packable
from saccade.tasks.base import OtherRun, Preparation, Task
from saccade.train.clock import Clock
from saccade.train.devices.deterministic import deterministic
from saccade.train.devices.distributed import World, choose_device, join_world, processes_started
from saccade.train.devices.memory import check_memory
from saccade.train.devices.sharding import check_layout, shard_size
from saccade.train.devices.threads import cpu_use, restored_threads, settle_threads
from saccade.train.events import (
    DataProgress,
    Event,
    Note,
    Skipped,
    Update,
    ValidationProgress,
)
from saccade.train.fit import Trainer
from saccade.train.optimizers.optimizer import rate_scales
from saccade.train.recipe import Recipe
from saccade.train.resume import compare, fingerprint, has_begun, move_aside, restore, tell
from saccade.train.settings import TrainSettings
from saccade.train.starting.adapter import adapter_files
from saccade.train.starting.fine_tuning import check_fine_tuning
from saccade.train.starting.start import check_start, lineage, start
from saccade.train.stopping import LOCK, StopRequest, locked, stop_on_signals
from saccade.train.storage.card import write_card
from saccade.train.storage.checkpoint import Checkpoint
from saccade.train.storage.folder import RunFolder
from saccade.train.storage.log import HELD_OUT, Log

Watch = Callable[[Event | Note | DataProgress | ValidationProgress], None]


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
    first: bool = True  # of many processes, whether this one speaks

    def __fspath__(self) -> str:
        """So that `saccade.load` takes it."""
        return str(self.folder)

    def __repr__(self) -> str:
        best = ", ".join(f"{name} {value:.4g}" for name, value in self.best.items())
        return f"<run {self.folder} at step {self.step:,}: {best or 'not validated yet'}>"


def train(
    recipe: Recipe, folder: Path, watch: Watch, *, change: bool = False, start_over: bool = False
) -> TrainingOutcome:
    """Train to the end, from wherever an earlier start of the same command came to.

    `change` lets a run go on with other settings of how to train; `start_over` moves it aside.
    """
    shard_size(recipe.train, processes_started())  # refuses what these processes cannot split
    recipe, stopped = _after_stages(recipe.located(), folder, watch, start_over=start_over)
    if stopped is not None:
        return stopped
    with join_world(recipe.train.device) as world, stop_on_signals() as stop:
        run, same = RunFolder(folder), recipe.train.deterministic
        speak: Watch = watch if world.first else lambda event: None
        anew = world.first and start_over and not world.restarted(str(folder))
        aside = move_aside(folder) if anew else None
        if aside is not None:
            speak(Note(f"what was in {folder} is now in {aside}"))
        alone = locked(folder) if world.first else nullcontext(False)
        with alone as made, deterministic(world.device, wanted=same), restored_threads():
            begun = time.perf_counter()
            with _gone_unless_begun(run) if made else nullcontext():
                trainer, recipe = _prepare(recipe, run, world, speak, change=change)
            preparing = time.perf_counter() - begun
            stop.saving = True
            _go_on(trainer, recipe, run, stop, speak)
            if not stop.signal and not trainer.best:
                raise TrainingError(
                    f"no validation of {folder} gave a finite {trainer.task.deciding.label}, so it "
                    "has no weights to use; train anew with a lower --train.learning-rate: add "
                    "--start-over, or another --out"
                )
            training = time.perf_counter() - begun - preparing
            return TrainingOutcome(
                folder, trainer.step, trainer.best, stop.signal, preparing, training, world.first
            )


@contextmanager
def _gone_unless_begun(run: RunFolder) -> Generator[None, None, None]:
    """Take the folder that was made for a run away again if the run cannot begin.

    Not if anything is in it that is not the run's, such as a cache that was asked for there.
    """
    try:
        yield
    except Exception:
        own = {LOCK, *run.manifest.names}
        if not has_begun(run) and own.issuperset(one.name for one in run.path.glob("*")):
            shutil.rmtree(run.path, ignore_errors=True)
        raise


def _after_stages(
    recipe: Recipe, folder: Path, watch: Watch, *, start_over: bool
) -> tuple[Recipe, TrainingOutcome | None]:
    """The recipe with the runs that come before it, trained beside it; or how one was stopped."""
    begun = has_begun(RunFolder(folder)) and not start_over  # it keeps what it needs of them
    for stage in () if begun else recipe.stages:
        if vars(recipe.task)[stage.option]:
            continue
        beside = folder.with_name(f"{folder.name}-{stage.option}")
        first = stage.before(recipe)
        state = RunFolder(beside).newest_state()
        if start_over or state.get("step", 0) < first.train.steps or state.get("owed"):
            watch(Note(f"first {beside}: {first.about}"))
            outcome = train(first, beside, watch, start_over=start_over)
            if outcome.signal:
                return recipe, outcome
            watch(Note(f"then {folder}: {recipe.about}"))
        recipe = replace(recipe, task=stage.named(recipe.task, beside))
    return recipe, None


def make_task(
    recipe: Recipe,
    folder: Path | None = None,
    watch: Watch = lambda event: None,
    *,
    begin: Path | None = None,
) -> Task[Any]:
    """The recipe's data, ready to be learnt from; assets that `folder` holds are used again.

    A new run begins with what `begin` holds.
    """
    device = choose_device(recipe.train.device)
    how = Preparation(
        budget=recipe.train.batch_tokens,
        seed=recipe.train.seed,
        batching=recipe.train.batches,
        most_words=recipe.model.most_words if isinstance(recipe.model, WordModelConfig) else None,
        folder=folder,
        start=begin,
        device=device,
        open_run=partial(open_run, device),
        progress=lambda done, total: watch(DataProgress(done, total)),
    )
    return recipe.task.prepare(how)


def open_run(device: torch.device, folder: str, option: str) -> OtherRun:
    """A run with its best weights, on a device; `option` names it in messages."""
    run = RunFolder(Path(folder))
    try:
        network = run.load_model(device)
        return OtherRun(run.path, run.load_recipe().task, network)
    except RunError as error:
        raise ConfigError(f"{option}: {error}") from error


def _prepare(
    recipe: Recipe, run: RunFolder, world: World, watch: Watch, *, change: bool
) -> tuple[Trainer, Recipe]:
    alone_on_cpu = world.size == 1 and world.device.type == "cpu"
    use = cpu_use() if alone_on_cpu else None
    if not world.first:
        world.wait()  # the first process makes the assets
    recipe, differing = compare(run, recipe, change=change) if world.first else (recipe, [])
    fresh = world.first and not has_begun(run)
    if fresh and differing:
        watch(Note("nothing was trained here yet, so training starts with the new settings"))
    begin = None
    if fresh and recipe.init:
        begin = check_start(recipe)
        recipe = replace(recipe, lineage=lineage(recipe.init))
    task, recipe = _make_ready(recipe, None if fresh else run.path, world, watch, begin)
    if world.first:
        run.save_assets(task.assets(), anew=fresh)
        world.wait()
    told = settle_threads(run.newest_state().get("threads"), use) if alone_on_cpu else []
    torch.manual_seed(recipe.train.seed)
    model = recipe.model.build()
    started = [] if run.has_checkpoints else start(model, recipe, task)
    world.wait()  # for those who have read the data after the first
    trainer = Trainer(model, task, recipe.train.definite(task.batches_per_epoch), world)
    _tell_sizes(trainer, watch)
    _, notes = restore(trainer, run)
    notes += trainer.see_once(lambda done, total: watch(DataProgress(done, total)))
    if not fresh:
        differing = [replace(one, step=trainer.step) for one in differing]
        recipe = replace(recipe, changes=(*recipe.changes, *differing))
        notes += tell(differing, trainer)
    for line in [*notes, *started, *told]:
        watch(Note(line))
    if world.first:
        run.save_recipe(recipe)
    return trainer, recipe


def _make_ready(
    recipe: Recipe, folder: Path | None, world: World, watch: Watch, begin: Path | None
) -> tuple[Task[Any], Recipe]:
    """The data, and the recipe with the sizes that they decide."""
    recipe.task.check(recipe.model)
    smallest = recipe.task.smallest(recipe.model)
    model = outline(smallest)
    check_fine_tuning(model, recipe)
    check_memory(smallest, recipe.train, world.device, world.size)
    rate_scales(model, recipe.train)  # refuses a model without layers in order
    check_layout(model, recipe.train, world.size)
    watch(Note(recipe.task.announcement))
    task = make_task(recipe, folder, watch, begin=begin)
    recipe = replace(recipe, model=task.fit(recipe.model))
    check_memory(recipe.model, recipe.train, world.device, world.size)
    return task, recipe


def _tell_sizes(trainer: Trainer, watch: Watch) -> None:
    task = trainer.task
    for line in task.report:
        watch(Note(line))
    size = sum(p.numel() for p in trainer.model.parameters())
    learning = sum(p.numel() for p in trainer.model.parameters() if p.requires_grad)
    part = f" ({learning:,} of them learn)" if learning < size else ""
    watch(Note(f"{size:,} parameters{part}, {task.sizes}"))
    watch(
        Note(
            f"{task.batches_per_epoch:,} batches to an epoch, padding {_padding(trainer):.1%}, "
            f"device {trainer.world.device}"
        )
    )


def _padding(trainer: Trainer) -> float:
    """The share of padding among the positions computed: none where sentences lie end to end."""
    model = trainer.model
    packed = isinstance(model, Packable) and model.packs and trainer.settings.batches == "similar"
    return 0.0 if packed else trainer.task.padding


def _go_on(
    trainer: Trainer, recipe: Recipe, run: RunFolder, stop: StopRequest, watch: Watch
) -> None:
    settings, first = trainer.settings, trainer.world.first
    log = _log_of(trainer, run) if first else None
    saver = trainer.layout.saver(run.checkpoints, keep=settings.keep)
    clock = Clock()
    check = partial(_validate, trainer, recipe, run, stop, log, watch)
    if trainer.owed or (trainer.finished and not trainer.best):
        check()
        saver.save(partial(_checkpoint, trainer, run))
    while not (trainer.finished or trainer.owed):
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
            check()
        if saves or trainer.owed:
            saver.save(partial(_checkpoint, trainer, run))
        if asked:
            break
    saver.finish()
    if log is not None:
        log.close()
        write_card(run, recipe, trainer.task.deciding, trainer.best, trainer.best_step)
    if trainer.captured is not None and trainer.captured.seconds:
        watch(Note(f"capturing the step for the GPU took {trainer.captured.seconds:.1f} s"))


def _log_of(trainer: Trainer, run: RunFolder) -> Log:
    board = trainer.settings.tensorboard
    return Log(run.metrics, after=trainer.step, tensorboard=board, owed=trainer.owed)


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


def _validate(
    trainer: Trainer,
    recipe: Recipe,
    run: RunFolder,
    stop: StopRequest,
    log: Log | None,
    watch: Watch,
) -> None:
    """One that a signal ends is owed, and the next start makes it; many processes wait for it."""
    with trainer.whole() as kept:
        figures = stop.unless_asked(
            lambda: trainer.held_out(
                kept, lambda done, total: watch(ValidationProgress(done, total))
            ),
            wanted=trainer.world.size == 1,
        )
        if figures is None:
            trainer.owed = True
            return
        validated = trainer.judge(figures)
        if log is not None:
            log.write(validated.step, {HELD_OUT + k: v for k, v in validated.figures.items()})
            if validated.best:
                learnt = [name for name, p in trainer.model.named_parameters() if p.requires_grad]
                adapter = adapter_files(kept, learnt=learnt, base=recipe.init)
                run.save_weights(kept, beside=adapter)
    watch(validated)


def _timed(event: Update, clock: Clock, steps: int) -> Update:
    left = clock.seconds_per_step * (steps - event.step)
    return replace(event, steps=steps, tokens_per_second=clock.tokens_per_second, seconds_left=left)


def _logged(event: Update) -> dict[str, Any]:
    return {
        "loss": event.loss,
        **{f"loss_{name}": part for name, part in event.losses.items()},
        "learning_rate": event.learning_rate,
        "tokens_per_second": round(event.tokens_per_second, 1),
    }


def _checkpoint(trainer: Trainer, run: RunFolder) -> Checkpoint:
    checkpoint = trainer.checkpoint()
    state = {**checkpoint.state, **fingerprint(trainer, run)}
    return Checkpoint(checkpoint.step, checkpoint.tensors, state)
