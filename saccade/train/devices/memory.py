"""Whether a model can be trained here at all, told before anything is allocated."""

import os
from pathlib import Path

import torch

from saccade.config import ModelConfig
from saccade.errors import ConfigError
from saccade.models.outline import SMALLER, outline
from saccade.train.devices.sharding import shard_size
from saccade.train.settings import TrainSettings
from saccade.train.starting.fine_tuning import learning

CGROUP = Path("/sys/fs/cgroup/memory.max")


def count_parameters(config: ModelConfig) -> int:
    """How many weights a model has, counted without making them."""
    return sum(p.numel() for p in outline(config).parameters())


def check_memory(
    config: ModelConfig, settings: TrainSettings, device: torch.device, processes: int = 1
) -> None:
    """Refuse a model whose weights, gradients and optimizer alone need more than there is.

    Where they are split, a process has its share of them all, and to validate the weights alone.
    """
    model, has = outline(config), device_memory(device)
    count = sum(p.numel() for p in model.parameters())
    learns = sum(p.numel() for p in learning(model, settings))
    copies = 2 if settings.optimizer == "muon" else 3  # gradients, and what the optimizer keeps
    needs = count * (1 + bool(settings.ema)) + learns * copies
    shard = shard_size(settings, processes)
    if shard > 1:
        needs = -(-needs // shard) + count
    needs *= 8 if settings.precision == "float64" else 4
    if needs > has:
        split = f" in each of {shard} processes" if shard > 1 else ""
        more = "" if shard == processes else "; or split it over more processes (--train.shard 0)"
        raise ConfigError(
            f"the model would have {count:,} weights: with gradients and the optimizer that is "
            f"{_size(needs)}{split}, and {device.type} has {_size(has)}; {SMALLER}{more}"
        )


def _size(count: int) -> str:
    return f"{count / (1 << 30):,.1f} GiB"


def device_memory(device: torch.device) -> int:
    """Bytes of the device; what is neither a CPU nor CUDA shares the machine's, or has less."""
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        return min(machine, int(CGROUP.read_text()))
    except (OSError, ValueError):  # not in a container, or one without a bound
        return machine
