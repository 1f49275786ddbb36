"""Where the weights lie: whole in every process, or split over several of them.

Everything else of training is the same.
"""

import math
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from saccade.errors import ConfigError
from saccade.models.protocol import CalledSeparately
from saccade.train.devices.distributed import World
from saccade.train.settings import TrainSettings
from saccade.train.storage.checkpoint import Saver, WholeSaver


class WeightLayout(ABC):
    """What an update, a validation and a checkpoint must know of where the weights lie."""

    splits: bool  # whether a process holds only a part of each weight
    shard: int  # over how many processes

    @abstractmethod
    def place(self, model: nn.Module) -> nn.Module:
        """A model where its copies and its optimizer can be made."""

    @abstractmethod
    def wrap(self, objective: nn.Module, average: nn.Module | None) -> nn.Module:
        """Model and losses, ready for many processes; an average lies as the weights do."""

    @abstractmethod
    def compile(self, objective: nn.Module, *, fixed_shapes: bool) -> None:
        """Hand what can be compiled to torch.compile."""

    @abstractmethod
    def hold_back(self, objective: nn.Module, *, last: bool) -> AbstractContextManager[Any]:
        """What need not travel before the last micro-batch of an update does not."""

    @abstractmethod
    def whole(self, model: nn.Module) -> AbstractContextManager[nn.Module]:
        """The model with all of its weights here; every process must ask for it."""

    @abstractmethod
    def saver(self, folder: Path, *, keep: int) -> Saver:
        """What writes checkpoints of these weights."""

    @abstractmethod
    def all_of(self, tensor: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """A whole tensor from its parts; every process must ask for it."""

    @abstractmethod
    def like(self, tensor: Tensor, model: Tensor) -> Tensor:
        """A tensor, or the part of it that a process holds of one of its shape."""

    @abstractmethod
    def empty(self, model: Tensor | None, size: torch.Size, dtype: torch.dtype) -> Tensor:
        """Room for a tensor that lies as `model` does, if that is given and has its shape."""


class WholeWeights(WeightLayout):
    """Every process has all weights; of several, each adds its gradient to the others' (DDP)."""

    splits, shard = False, 1

    def __init__(self, world: World) -> None:
        self._world = world

    def place(self, model: nn.Module) -> nn.Module:
        return model.to(self._world.device)

    def wrap(self, objective: nn.Module, average: nn.Module | None) -> nn.Module:
        return DistributedDataParallel(objective) if self._world.size > 1 else objective

    def compile(self, objective: nn.Module, *, fixed_shapes: bool) -> None:
        objective.compile(dynamic=None if fixed_shapes else True)

    def hold_back(self, objective: nn.Module, *, last: bool) -> AbstractContextManager[Any]:
        several = isinstance(objective, DistributedDataParallel)
        return objective.no_sync() if several and not last else nullcontext()

    def whole(self, model: nn.Module) -> AbstractContextManager[nn.Module]:
        return nullcontext(model)

    def saver(self, folder: Path, *, keep: int) -> Saver:
        return WholeSaver(folder, self._world, keep=keep)

    def all_of(self, tensor: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return tensor

    def like(self, tensor: Tensor, model: Tensor) -> Tensor:
        return tensor

    def empty(self, model: Tensor | None, size: torch.Size, dtype: torch.dtype) -> Tensor:
        return torch.empty(size, dtype=dtype)


def separate_parts(model: nn.Module) -> list[Any]:
    """Those that can be called by themselves, from the first to the last."""
    return [part for part in model.modules() if isinstance(part, CalledSeparately)]


def make_layout(settings: TrainSettings, world: World) -> WeightLayout:
    """The one that the settings ask for, on so many processes."""
    shard = shard_size(settings, world.size)
    if shard == 1:
        return WholeWeights(world)
    from saccade.train.devices.split_weights import SplitWeights  # takes a second to import

    return SplitWeights(world, shard)


def shard_size(settings: TrainSettings, processes: int) -> int:
    """Over how many processes each weight is split; refuses what does not go up."""
    shard = settings.shard or processes
    if processes % shard:
        raise ConfigError(
            f"shard={settings.shard} does not divide the number of processes, {processes}; start "
            f"a multiple of it (torchrun --nproc-per-node {shard}), or give --train.shard 0 for all"
        )
    if shard > 1 and settings.optimizer != "adamw":
        raise ConfigError(
            f"optimizer={settings.optimizer} needs whole weights, and shard={settings.shard} "
            "splits them; use --train.optimizer adamw, or leave --train.shard at 1"
        )
    return shard


def check_layout(model: nn.Module, settings: TrainSettings, processes: int) -> None:
    """Refuse, before any data are read, a model that cannot be laid out so, or not recompute."""
    if settings.checkpoint_activations and not separate_parts(model):
        raise ConfigError(
            f"checkpoint_activations={settings.checkpoint_activations}: {type(model).__name__} has "
            "no blocks that could be computed again; leave it at 0"
        )
    if shard_size(settings, processes) == 1:
        return
    for name, parameter in model.named_parameters():
        if not parameter.dim():
            raise ConfigError(
                f"shard={settings.shard}: {name} of {type(model).__name__} is a single number, "
                "which cannot be split; leave --train.shard at 1"
            )


def recompute_blocks(model: nn.Module, share: float) -> None:
    """Let a share of the blocks, the first ones, keep their input alone, and compute the rest anew
    for the gradient.
    """
    parts = separate_parts(model)
    for part in parts[: math.ceil(share * len(parts))]:
        part.separate = part.recompute = True
