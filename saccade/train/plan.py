"""What training would cost, told before it starts: memory, updates, tokens, hours, disk.

What can be counted is counted: weights, gradients, the optimizer, checkpoints, updates.
Activations are what one real micro-batch keeps for the way back. Hours are those of a few real
updates on this device, of a rate that is given, or for another GPU an estimate from the products
that an update needs.
"""

import itertools
import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.flop_counter import FlopCounterMode

from saccade.config import ModelConfig
from saccade.models.outline import outline
from saccade.tasks.base import CountsItems, Task
from saccade.tasks.images import cache_folder
from saccade.train.devices.distributed import World, choose_device
from saccade.train.devices.hardware import GPUS, Hardware
from saccade.train.devices.memory import device_memory
from saccade.train.devices.sharding import (
    check_layout,
    recompute_blocks,
    separate_parts,
    shard_size,
)
from saccade.train.devices.threads import CpuUse, cpu_use, restored_threads, settle_threads
from saccade.train.fit import Objective, Trainer, seed_update
from saccade.train.optimizers.optimizer import make_optimizer
from saccade.train.recipe import Recipe
from saccade.train.run import Watch, make_task
from saccade.train.settings import TrainSettings
from saccade.train.starting.fine_tuning import check_fine_tuning, fine_tune
from saccade.train.starting.start import check_start

SHARE_OF_PEAK = 0.35  # of its peak that a GPU is taken to reach in training
SAMPLED = 64  # micro-batches whose tokens are counted
WARM_UP = 2  # updates before the clock starts
TIMED = 5  # at least
SHORTEST, LONGEST = 1.0, 30.0  # seconds for these
STEP = 4  # bytes of the number of the update that AdamW keeps for each tensor
MAPPED = Path("/proc/self/maps")
EXTRAPOLATED = (
    "the model is too large for this machine: activations and operations follow from those of the "
    "same model with one block and with two"
)
TOO_LARGE = (
    "that is more memory than there is: lower --train.batch-tokens and raise --train.accumulate, "
    "take more GPUs, or a smaller model"
)


@dataclass(frozen=True)
class Plan:
    """What a run would cost. Bytes are those of one GPU, but of disk those of the run."""

    parameters: int
    weights: int
    average: int
    gradients: int
    exchange: int  # what DDP sends gradients from; of split weights the whole ones, to validate
    optimizer: int
    activations: int
    memory: int  # all of these
    memory_there: int
    epochs: float
    updates: int
    tokens: int
    operations: int  # of one update, on one GPU
    tokens_per_second: float | None
    hours: float | None
    hours_from: str
    checkpoint: int
    checkpoints: int  # at most, while one is being written
    cache: int | None
    notes: list[str]


class MicroBatchCost(NamedTuple):
    """A micro-batch forwards and backwards: bytes that it keeps for the way back, operations."""

    activations: float
    operations: float


def make_plan(recipe: Recipe, hardware: Hardware, watch: Watch = lambda event: None) -> Plan:
    """Read the data, count, and measure."""
    recipe, use = recipe.located(), cpu_use()
    task = make_task(recipe, watch=watch, begin=_checked_start(recipe))
    recipe = replace(recipe, model=task.fit(recipe.model))
    settings = recipe.train.definite(task.batches_per_epoch)
    device = choose_device(settings.device)
    check_layout(outline(recipe.model), settings, hardware.gpus)
    state = state_bytes(recipe.model, settings, gpus=hardware.gpus)
    held = held_bytes(state, shard_size(settings, hardware.gpus))
    fits = 1.5 * sum(state.values()) < device_memory(device)
    one = measured_pass(recipe, task, device, shards=hardware.gpus, whole=fits)
    micro_batches = settings.steps * settings.accumulate
    cost = Cost(
        updates=settings.steps,
        tokens=round(mean_tokens(task) * micro_batches),
        operations=round(one.operations * settings.accumulate),
    )
    rate, told = hardware.rate or None, list[str]()
    if rate is None and not hardware.gpu and fits:
        rate, told = _rate_here(recipe, task, device, use, hardware.gpus)
    hours, hours_from = _hours(hardware, recipe, cost, rate, device)
    memory, there = sum(held.values()) + round(one.activations), hardware.memory(device)
    saved = state["weights"] + state["average"] + state["optimizer"]
    return Plan(
        parameters=sum(p.numel() for p in outline(recipe.model).parameters()),
        **held,
        activations=round(one.activations),
        memory=memory,
        memory_there=round(there),
        epochs=micro_batches / task.batches_per_epoch,
        **vars(cost),
        tokens_per_second=rate,
        hours=hours,
        hours_from=hours_from,
        checkpoint=saved,
        checkpoints=saved * (settings.keep + 1) + state["weights"],
        cache=cached_bytes(),
        notes=[*told, *[EXTRAPOLATED] * (not fits), *[TOO_LARGE] * (memory > there)],
    )


def _checked_start(recipe: Recipe) -> Path | None:
    """Where it would start from, once nothing is found that training refuses."""
    recipe.task.check(recipe.model)
    check_fine_tuning(outline(recipe.model), recipe)
    return check_start(recipe) if recipe.init else None


@dataclass(frozen=True)
class Cost:
    """What there is to do; operations are those of one update on one GPU."""

    updates: int
    tokens: int
    operations: int


def state_bytes(config: ModelConfig, settings: TrainSettings, *, gpus: int) -> dict[str, int]:
    """What each GPU holds of whole weights, whatever the batch; counted without making it."""
    model = outline(config)
    fine_tune(model, settings)
    size = 8 if settings.precision == "float64" else 4
    weights = size * sum(p.numel() for p in model.parameters())
    weights += sum(buffer.nbytes for buffer in model.buffers())
    learns = [p for p in model.parameters() if p.requires_grad]
    gradients = size * sum(p.numel() for p in learns)
    optimizer = 0
    for group in make_optimizer(model, settings, torch.device("meta")).param_groups:
        count = sum(p.numel() for p in group["params"] if p.requires_grad)
        tensors = sum(p.requires_grad for p in group["params"])
        # Muon keeps one tensor for each matrix; the others two, and the number of the update.
        optimizer += size * count if group["matrices"] else 2 * size * count + STEP * tensors
    return {
        "weights": weights,
        "average": weights if settings.ema else 0,
        "gradients": gradients,
        "exchange": gradients if gpus > 1 else 0,
        "optimizer": optimizer,
    }


def held_bytes(whole: dict[str, int], shard: int) -> dict[str, int]:
    """What a GPU holds where weights are split over so many: its part, and to validate the whole
    weights once.
    """
    if shard == 1:
        return whole
    parts = {name: -(-size // shard) for name, size in whole.items()}
    return {**parts, "exchange": whole["weights"]}


def measured_pass(
    recipe: Recipe, task: Task[Any], device: torch.device, *, shards: int, whole: bool
) -> MicroBatchCost:
    """What one GPU's share of the first micro-batch needs.

    Where some blocks are computed again, it is a mixture of all blocks and none of them, and beside
    that one block at a time is there in full.
    """
    kept = _scaled(recipe, task, device, shards, whole=whole, recompute=False)
    blocks = len(separate_parts(outline(recipe.model)))
    again = math.ceil(recipe.train.checkpoint_activations * blocks)
    if not again:
        return kept
    bare = _scaled(recipe, task, device, shards, whole=whole, recompute=True)
    share, one_block = again / blocks, (kept.activations - bare.activations) / blocks
    return MicroBatchCost(
        share * bare.activations + (1 - share) * kept.activations + one_block,
        share * bare.operations + (1 - share) * kept.operations,
    )


def _scaled(
    recipe: Recipe,
    task: Task[Any],
    device: torch.device,
    shards: int,
    *,
    whole: bool,
    recompute: bool,
) -> MicroBatchCost:
    """A model that is too large is not made as a `whole`: its blocks are alike, so that one with a
    single block and one with two tell of as many as there are.
    """
    depth = vars(recipe.model).get("depth")
    if whole or type(depth) is not int:
        return _pass(recipe, recipe.model, task, device, shards, recompute=recompute)
    some: list[Any] = [replace(recipe.model, **{"depth": blocks}) for blocks in (1, 2)]
    one, two = (_pass(recipe, x, task, device, shards, recompute=recompute) for x in some)
    return MicroBatchCost(*(a + (depth - 1) * (b - a) for a, b in zip(one, two)))


def _pass(
    recipe: Recipe,
    config: ModelConfig,
    task: Task[Any],
    device: torch.device,
    shards: int,
    *,
    recompute: bool,
) -> MicroBatchCost:
    model = _model_to_train(recipe.train, config, device)
    if recompute:
        recompute_blocks(model, 1.0)
    own = {_storage(tensor) for tensor in (*model.parameters(), *model.buffers())}
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        kept[_storage(tensor)] = tensor.untyped_storage().nbytes()
        return tensor

    batch = task.batch(0, shard=0, shards=shards).to(device)
    lower = recipe.train.precision == "bfloat16"
    with FlopCounterMode(display=False) as counter:
        with (
            saved_tensors_hooks(keep, lambda tensor: tensor),
            torch.autocast(device.type, torch.bfloat16, enabled=lower),
        ):
            loss = reduce(torch.add, Objective(model, task)(batch).values())
        activations = sum(size for where, size in kept.items() if where not in own)
        loss.backward()
    return MicroBatchCost(activations, counter.get_total_flops())


def _model_to_train(
    settings: TrainSettings, config: ModelConfig, device: torch.device
) -> nn.Module:
    seed_update(settings.seed, 0, 0)
    model = config.build()
    still = fine_tune(model, settings)
    model.to(device, torch.float64 if settings.precision == "float64" else torch.float32).train()
    for part in still:
        part.eval()
    return model


def _storage(tensor: Tensor) -> int:
    """Which memory a tensor is a view of."""
    return tensor.untyped_storage().data_ptr()


def mean_tokens(task: Task[Any]) -> float:
    """Tokens of a micro-batch on average, over some of the first epoch."""
    count = min(SAMPLED, task.batches_per_epoch)
    batches = [task.batch(i * task.batches_per_epoch // count) for i in range(count)]
    sizes = [one.items if isinstance(one, CountsItems) else one.tokens for one in batches]
    return sum(sizes) / count


def _rate_here(
    recipe: Recipe, task: Task[Any], device: torch.device, use: CpuUse | None, gpus: int
) -> tuple[float, list[str]]:
    """Of so many, measured on one, with as many threads as training would take now; and what to
    say of these.
    """
    with restored_threads():
        told = settle_threads(None, use if device.type == "cpu" and gpus == 1 else None)
        return measured_rate(recipe, task, device) * gpus, told


def measured_rate(recipe: Recipe, task: Task[Any], device: torch.device) -> float:
    """Tokens a second of a few real updates on this device, alone."""
    torch.manual_seed(recipe.train.seed)
    settings = replace(recipe.train.definite(task.batches_per_epoch), shard=1)
    trainer = Trainer(recipe.model.build(), task, settings, World(0, 1, device))
    begun = time.perf_counter()
    for _ in range(WARM_UP):
        trainer.update()
        if time.perf_counter() - begun > LONGEST / 2:
            break
    tokens, spent, begun = 0, 0.0, time.perf_counter()
    for done in itertools.count(1):
        trainer.update()
        tokens += trainer.tokens_of_last
        spent = time.perf_counter() - begun
        if spent > (SHORTEST if done >= TIMED else LONGEST):
            break
    return tokens / spent


def _hours(
    hardware: Hardware,
    recipe: Recipe,
    cost: Cost,
    rate: float | None,
    device: torch.device,
) -> tuple[float | None, str]:
    """How long it would take, and where that is known from."""
    unit = recipe.task.budget_unit
    if rate is not None:
        hours = cost.tokens / rate / 3600
        if hardware.rate:
            return hours, f"at the {rate:,.0f} {unit} a second that were given"
        several = f"; estimate: {hardware.gpus} GPUs as so many times one" * (hardware.gpus > 1)
        return hours, f"measured on {device.type}: {rate / hardware.gpus:,.0f} {unit}/s{several}"
    if hardware.gpu not in GPUS:
        return None, f"not known; name a GPU that is, or give {unit} a second with --rate"
    precision = "bfloat16" if recipe.train.precision == "bfloat16" else "float32"
    peak = GPUS[hardware.gpu]._asdict()[precision]
    seconds = cost.updates * cost.operations / (SHARE_OF_PEAK * peak)
    return seconds / 3600, (
        f"estimate, not measured: {cost.operations:.3g} operations an update on each GPU, at "
        f"{SHARE_OF_PEAK:.0%} of {hardware.gpu}'s {peak / 1e12:g} Tflop/s in {precision}"
    )


def cached_bytes() -> int | None:
    """Bytes on disk of the prepared data that this process has mapped; None where that is not told.

    Small data are prepared anew at each start, and are not kept.
    """
    try:
        lines = MAPPED.read_text().splitlines()
    except OSError:
        return None
    home = cache_folder().resolve()
    mapped = {Path(line.split(maxsplit=5)[-1]) for line in lines if str(home) in line}
    folders = {home / path.relative_to(home).parts[0] for path in mapped}
    return sum(file.stat().st_size for folder in folders for file in _files(folder))


def _files(folder: Path) -> Iterable[Path]:
    return (path for path in folder.rglob("*") if path.is_file())
