"""Weights that are split over processes, by FSDP2 (Zhao et al. 2023, arXiv:2304.11277).

A process holds its share of every weight, gradient and optimizer state. A block gets its weights
just before it runs and gives them back after, and gradients arrive summed at who holds the weight.
"""

import copy
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from jaxtyping import Float
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from saccade.train.devices.distributed import World
from saccade.train.devices.sharding import WeightLayout, separate_parts
from saccade.train.storage.checkpoint import Saver
from saccade.train.storage.split_checkpoint import SplitSaver


class SplitWeights(WeightLayout):
    """Groups of `shard` processes hold the weights between them; the groups are replicas.

    Weights stay in their own precision while they travel. FSDP2 could round them to bfloat16 on the
    way, which halves the traffic, but then norms and biases are rounded as well, and so is every
    gradient before it is summed. Under autocast our linear layers round the matrices when they use
    them and leave gradients in float32: the numbers are then those of whole weights.
    """

    splits = True

    def __init__(self, world: World, shard: int) -> None:
        self._world, self.shard, self._regather = world, shard, shard > 1
        shape = (world.size // shard, shard)
        mesh = init_device_mesh(world.device.type, shape, mesh_dim_names=("replicate", "shard"))
        self._mesh = mesh if shape[0] > 1 else mesh["shard"]
        self._outline: nn.Module | None = None

    def place(self, model: nn.Module) -> nn.Module:
        """It stays where it is: only its parts ever come to the device."""
        without_weights: dict[int, Any] = {
            id(p): nn.Parameter(torch.empty_like(p, device="meta"), requires_grad=p.requires_grad)
            for p in model.parameters()
        }
        self._outline = copy.deepcopy(model, without_weights)
        return model

    def wrap(self, objective: nn.Module, average: nn.Module | None) -> nn.Module:
        for part in [objective] if average is None else [objective, average]:
            for unit in separate_parts(part):
                unit.separate = True
                self._shard(unit)
            self._shard(part)
        statistics = [x for x in objective.state_dict().values() if not isinstance(x, DTensor)]
        if statistics:
            objective.register_forward_pre_hook(partial(_send_from_first, statistics))
        return objective

    def _shard(self, part: Any) -> None:
        # What one process holds by itself need not be gathered again for the gradient.
        fully_shard(part, mesh=self._mesh, reshard_after_forward=self._regather)

    def compile(self, objective: nn.Module, *, fixed_shapes: bool) -> None:
        for unit in separate_parts(objective):  # between which weights come and go
            unit.compile(dynamic=None if fixed_shapes else True)

    def hold_back(self, objective: nn.Module, *, last: bool) -> AbstractContextManager[Any]:
        """Between replicas alone: whole gradients would need the room that splitting saves."""
        assert isinstance(objective, FSDPModule)
        objective.set_requires_all_reduce(last)
        return nullcontext()

    @contextmanager
    def whole(self, model: nn.Module) -> Generator[nn.Module, None, None]:
        assert self._outline is not None
        state: dict[str, Tensor] = {n: self.all_of(x) for n, x in model.state_dict().items()}
        one = copy.deepcopy(self._outline)
        one.load_state_dict(state, assign=True)
        for part, same in zip(one.modules(), model.modules(), strict=True):
            part.training = same.training
        yield one.to(self._world.device).requires_grad_(False)

    def saver(self, folder: Path, *, keep: int) -> Saver:
        return SplitSaver(folder, self._world, keep=keep)

    def all_of(self, tensor: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor

    def like(self, tensor: Tensor, model: Tensor) -> Tensor:
        lies_whole = not isinstance(tensor, DTensor) and tensor.shape == model.shape
        if not lies_whole or not isinstance(model, DTensor):
            return tensor
        here = tensor.to(self._world.device)
        return distribute_tensor(here, model.device_mesh, model.placements, src_data_rank=None)

    def empty(self, model: Tensor | None, size: torch.Size, dtype: torch.dtype) -> Tensor:
        if isinstance(model, DTensor) and model.shape == size:
            return torch.empty_like(model, dtype=dtype)
        return torch.empty(size, dtype=dtype)


def _send_from_first(statistics: list[Tensor], *_: object) -> None:
    """What is no weight, such as means of BatchNorm, follows the first process, as under DDP."""
    for tensor in statistics:
        dist.broadcast(tensor, 0)
