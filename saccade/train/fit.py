"""The training loop: one loop for every model and task, one process or many.

Everything random is a function of (seed, update): data order, dropout, fresh weights. So a run
that was killed and started again computes the same numbers as one that was not.
"""

import math
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from saccade.errors import CheckpointError, RunError, out_of_memory
from saccade.models.protocol import Capturable
from saccade.printable import printable
from saccade.tasks.base import (
    Batch,
    CountsItems,
    Fillable,
    PartlyCompiled,
    Progress,
    SeesOnce,
    Task,
    silent,
)
from saccade.train.devices.captured import CapturedUpdate
from saccade.train.devices.distributed import World
from saccade.train.devices.sharding import WeightLayout, make_layout, recompute_blocks
from saccade.train.events import Skipped, Update, Validated
from saccade.train.optimizers.average import Average
from saccade.train.optimizers.optimizer import (
    make_optimizer,
    numbered_names,
    optimizer_tensors,
    renumbered,
    restore_optimizer,
    set_rate,
    step_unless,
)
from saccade.train.optimizers.schedule import learning_rate
from saccade.train.prefetch import Prefetch
from saccade.train.settings import TrainSettings
from saccade.train.starting.fine_tuning import fine_tune
from saccade.train.statistics import Statistics
from saccade.train.storage.checkpoint import Checkpoint, Template
from saccade.train.storage.files import finite

MOST_SKIPPED = 50


@dataclass(frozen=True)
class _Pending:
    """An update whose figures are still on the device."""

    step: int
    positions: list[int]
    losses: Float[Tensor, " parts"]  # the whole loss first
    norm: Float[Tensor, ""]
    rate: float


class Objective(nn.Module):
    """Model and losses in one forward pass, which is what DDP and torch.compile wrap."""

    def __init__(self, model: nn.Module, task: Task[Any]) -> None:
        super().__init__()
        self.model, self.task = model, task

    def forward(self, batch: Batch) -> dict[str, Float[Tensor, ""]]:
        return self.task.losses(self.model, batch)


class Trainer:
    """Weights, their average, the optimizer, and how far training has come."""

    owed = False  # a validation after this step, which was broken off

    def __init__(
        self,
        model: nn.Module,
        task: Task[Any],
        settings: TrainSettings,
        world: World,
        layout: WeightLayout | None = None,
    ) -> None:
        self.settings, self.task, self.world = settings, task, world
        self._still = fine_tune(model, settings)
        dtype = torch.float64 if settings.precision == "float64" else torch.float32
        self.layout = layout or make_layout(settings, world)
        self.model = self.layout.place(model.to(dtype))
        if settings.checkpoint_activations:
            recompute_blocks(self.model, settings.checkpoint_activations)
        self.average = Average(self.model, settings.ema) if settings.ema else None
        average = None if self.average is None else self.average.model
        self.objective = self.layout.wrap(Objective(self.model, task), average)
        self.optimizer = make_optimizer(self.model, settings, world.device)
        if settings.compile:
            if isinstance(task, PartlyCompiled):
                task.hide_from_compiler()
            self.layout.compile(self.objective, fixed_shapes=settings.batches == "mixed")
        on_gpu = world.device.type == "cuda"
        self._batch = Prefetch(self._make_batch) if on_gpu else self._make_batch
        self._work = self._compute
        self.captured: CapturedUpdate | None = None
        capturable = isinstance(model, Capturable) and model.capturable and world.size == 1
        # What recomputes sets random states back, and split weights come and go: neither replays.
        capturable &= not (settings.checkpoint_activations > 0 or self.layout.splits)
        if on_gpu and settings.capture and capturable:
            self.captured = self._work = CapturedUpdate(self._compute)
        self._non_finite = torch.zeros((), dtype=torch.bool, device=world.device)
        self._statistics = Statistics(self.model)
        self._pending: list[_Pending] = []
        self._parts: list[str] = []  # names of the losses
        self.step = self.skipped = self.tokens_of_last = self.best_step = self.stale = 0
        self.position = 0  # of the next micro-batch
        self.seen: int | None = 0  # tokens in all; None: a run of an earlier version did not count
        self.best: dict[str, float] = {}  # the figures of the best weights

    @cached_property
    def data(self) -> str:
        """The fingerprint of what is learnt from: no data change while they are in memory."""
        return self.task.fingerprint()

    @property
    def kept(self) -> nn.Module:
        """The weights to validate and to keep: the average where there is one."""
        return self.model if self.average is None else self.average.model

    def whole(self) -> AbstractContextManager[nn.Module]:
        """Those, all here; every process must ask for them, for each may hold only a part."""
        return self.layout.whole(self.kept)

    @property
    def finished(self) -> bool:
        patience = self.settings.patience
        return self.step >= self.settings.steps or bool(patience and self.stale >= patience)

    def checkpoint(self) -> Checkpoint:
        """All that changes while training."""
        tensors = {
            "model": dict(self.model.state_dict()),
            "optimizer": optimizer_tensors(self.optimizer),
        }
        if self.average is not None:
            tensors["average"] = dict(self.average.model.state_dict())
        state: dict[str, Any] = {
            "best": finite(self.best),
            "best_step": self.best_step,
            "stale": self.stale,
            "owed": self.owed,
            "skipped": self.skipped,
            "seen": self.seen,
            "deciding": self.task.deciding._asdict(),
            "position": self.position,
            "batches_per_epoch": self.task.batches_per_epoch,
            "parameters": numbered_names(self.model, self.optimizer),
        }
        return Checkpoint(self.step, tensors, state)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on as if never stopped."""
        try:
            self._restore(checkpoint)
        except (LookupError, ValueError, RuntimeError, TypeError) as error:
            if out_of_memory(error):
                raise
            reason = printable((str(error).splitlines() or [type(error).__name__])[-1].strip())
            raise CheckpointError(
                f"the checkpoint of step {checkpoint.step:,} is of another model: {reason}"
            ) from error

    def templates(self, state: dict[str, Any]) -> Template:
        """Room for each tensor of a checkpoint with this state, as this process holds it."""
        whole, names = self.model.state_dict(), self._names(state)

        def template(part: str, name: str, size: torch.Size, dtype: torch.dtype) -> Tensor:
            called = names[int(name.partition(".")[0])] if part == "optimizer" else name
            return self.layout.empty(whole.get(called), size, dtype)

        return template

    def _restore(self, checkpoint: Checkpoint) -> None:
        self._load(self.model, checkpoint.tensors["model"])
        if self.average is not None:  # one that is new begins with the weights
            average = checkpoint.tensors.get("average", checkpoint.tensors["model"])
            self._load(self.average.model, average)
        state, self.step = checkpoint.state, checkpoint.step
        tensors = renumbered(checkpoint.tensors["optimizer"], self._names(state), self._names({}))
        restore_optimizer(self.optimizer, tensors, self.layout.like)
        self.position = self._same_place(state)
        before = {"loss": state["best_loss"]} if "best_loss" in state else state["best"]
        self.best = {name: value for name, value in finite(before).items() if value is not None}
        self.best_step, self.stale = state["best_step"], state["stale"]
        self.skipped, self.seen = state["skipped"], state.get("seen")
        self.owed = state.get("owed", False)

    def _load(self, model: nn.Module, tensors: dict[str, Tensor]) -> None:
        now = model.state_dict()
        here = {name: self.layout.like(x, now.get(name, x)) for name, x in tensors.items()}
        model.load_state_dict(here)

    def _names(self, state: dict[str, Any]) -> list[str]:
        """Of parameters, as the optimizer numbered them then."""
        return state.get("parameters", numbered_names(self.model, self.optimizer))

    def _same_place(self, state: dict[str, Any]) -> int:
        """The next micro-batch; where epochs now have other lengths, as far into this one."""
        position = state.get("position", self.step * self.settings.accumulate)
        now = self.task.batches_per_epoch
        before = state.get("batches_per_epoch", now)
        if not (type(position) is type(before) is int and position >= 0 and before > 0):
            raise ValueError(f"position={position!r} of {before!r} in an epoch cannot be")
        if before == now:
            return position
        epoch, done = divmod(position, before)
        return epoch * now + done * now // before

    def see_once(self, progress: Progress) -> list[str]:
        """Compute what stays the same in all updates, as an update would; lines for the user."""
        if not isinstance(self.task, SeesOnce):
            return []
        self._set_training()
        with self.layout.whole(self.model) as model, self._autocast():
            return self.task.see_once(model, self.world.device, progress)

    def update(self) -> Update | Skipped:
        """One update of the weights, or none if the loss or the gradient is not finite."""
        self.advance()
        return self.settle()[-1]

    def advance(self) -> None:
        """One update, handed to the device; `settle` says how it went."""
        settings, world = self.settings, self.world
        seed_update(settings.seed, self.step, world.rank)
        positions = self._positions()
        self.position = positions[-1] + 1
        batches = [self._batch(position) for position in positions]
        tokens = world.sum(float(sum(batch.tokens for batch in batches)))
        others = [batch.items for batch in batches if isinstance(batch, CountsItems)]
        self.tokens_of_last = int(world.sum(float(sum(others))) if others else tokens)
        self.seen = None if self.seen is None else self.seen + self.tokens_of_last
        self.step += 1
        rate = learning_rate(
            settings.schedule,
            settings.learning_rate,
            self.step,
            warmup=settings.warmup,
            steps=settings.steps,
        )
        set_rate(self.optimizer, rate)
        pace = 0.0 if self.average is None else self.average.pace(self.step)
        share = world.size / tokens  # DDP averages over the processes, so each multiplies by all
        on_device = [batch.to(world.device) for batch in batches]
        losses, norm = self._work(on_device, self._scalar(share), self._scalar(pace))
        self._pending.append(_Pending(self.step, positions, losses, norm, rate))

    def settle(self) -> list[Update | Skipped]:
        """How the updates since the last call went. Waits for the device."""
        pending, self._pending = self._pending, []
        if not pending:
            return []
        rows = [torch.cat([p.norm.to(p.losses)[None], p.losses]) for p in pending]
        events: list[Update | Skipped] = []
        for one, (norm, loss, *parts) in zip(pending, torch.stack(rows).tolist()):
            if math.isfinite(loss) and math.isfinite(norm):
                named = dict(zip(self._parts, parts)) if len(parts) > 1 else {}
                events.append(Update(one.step, loss, one.rate, named))
                continue
            self._non_finite.fill_(False)
            self._skip(one, loss, norm)
            events.append(Skipped(one.step, one.positions))
        return events

    def validate(self, whole: nn.Module | None = None) -> Validated:
        """Held-out figures of the kept weights; remembers whether they are the best."""
        return self.judge(self.held_out(whole))

    def held_out(
        self, whole: nn.Module | None = None, progress: Progress = silent
    ) -> dict[str, float]:
        """Figures of the kept weights, which may be broken off: nothing is changed."""
        kept = self.kept if whole is None else whole
        with self._autocast():
            return self.task.validate(kept.eval(), self.world.device, progress)

    def judge(self, figures: dict[str, float]) -> Validated:
        """Remember whether these are the best."""
        self._set_training()
        self.owed, deciding = False, self.task.deciding
        best = deciding.better(figures[deciding.figure], self.best.get(deciding.figure))
        if best:
            self.best, self.best_step, self.stale = figures, self.step, 0
        else:
            self.stale += 1
        return Validated(self.step, figures, best)

    def _positions(self) -> list[int]:
        return list(range(self.position, self.position + self.settings.accumulate))

    def _make_batch(self, position: int) -> Any:
        batch = self.task.batch(position, shard=self.world.rank, shards=self.world.size)
        if self.world.device.type != "cuda":
            return batch
        return (batch.filled() if isinstance(batch, Fillable) else batch).pinned()

    def _scalar(self, value: float) -> Float[Tensor, ""]:
        dtype = next(self.model.parameters()).dtype
        return torch.tensor(value, dtype=dtype).to(self.world.device, non_blocking=True)

    def _compute(
        self, batches: list[Any], share: Float[Tensor, ""], pace: Float[Tensor, ""]
    ) -> tuple[Float[Tensor, " parts"], Float[Tensor, ""]]:
        """Gradients of the mean loss over all tokens of all micro-batches, and the update.

            loss = Σ sums / tokens

        All on the device: nothing here waits for a number. What is non-finite changes nothing.
        """
        before = self._statistics.copied()
        losses = self._backward(batches, share)
        moving = [p for p in self.model.parameters() if p.grad is not None]
        norm = self.layout.all_of(
            nn.utils.get_total_norm([g for p in moving if (g := p.grad) is not None])
        )
        if self.settings.clip:
            nn.utils.clip_grads_with_norm_(moving, self.settings.clip, norm)
        skip = ~(losses[0].isfinite() & norm.isfinite())
        if self.settings.bad_loss == "stop":  # nor does what follows, until someone has noticed
            skip = self._non_finite.logical_or_(skip)
        self._statistics.take_back(before, skip)
        step_unless(self.optimizer, skip)
        self.optimizer.zero_grad()
        if self.average is not None:
            self.average.follow(self.model, pace * ~skip)
        return losses, norm

    def _backward(self, batches: list[Any], share: Float[Tensor, ""]) -> Float[Tensor, " parts"]:
        """The whole loss and its parts, summed over the micro-batches."""
        self._set_training()
        sums: Tensor | None = None
        for i, batch in enumerate(batches):
            last = i == len(batches) - 1
            with self.layout.hold_back(self.objective, last=last), self._autocast():
                losses: dict[str, Tensor] = self.objective(batch)
                loss = reduce(torch.add, losses.values()) * share
            with self.layout.hold_back(self.objective, last=last):
                loss.backward()
            self._parts = list(losses)
            parts = [part.detach() * share for part in losses.values()] if len(losses) > 1 else []
            found = torch.stack([loss.detach(), *parts])
            sums = found if sums is None else sums + found
        assert sums is not None
        return self.world.add(sums) / self.world.size

    def _set_training(self) -> None:
        self.model.train()
        for part in self._still:
            part.eval()

    def _autocast(self) -> AbstractContextManager[Any]:
        enabled = self.settings.precision == "bfloat16"
        return torch.autocast(self.world.device.type, torch.bfloat16, enabled=enabled)

    def _skip(self, one: _Pending, loss: float, norm: float) -> None:
        self.skipped += 1
        what = f"update {one.step}: loss {loss}, gradient {norm}, micro-batches {one.positions}"
        if self.settings.bad_loss == "stop":
            raise RunError(
                f"{what}: not finite, so the weights were left as they are. Lower "
                "--train.learning-rate, or pass --train.bad-loss skip to skip such updates"
            )
        if self.skipped > MOST_SKIPPED:
            raise RunError(f"{what}: not finite, like {self.skipped - 1} before; giving up")


def seed_update(seed: int, step: int, rank: int) -> None:
    """Make all that is random in an update a function of the seed and the update's number."""
    torch.manual_seed((seed * 1_000_003 + step) * 4096 + rank)
