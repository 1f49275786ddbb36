"""One process or many: the same loop. `torchrun` starts many, and each finds its place here."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from jaxtyping import Float
from torch import Tensor

from saccade.errors import ConfigError


@dataclass(frozen=True)
class World:
    """Where a process stands among all."""

    rank: int
    size: int
    device: torch.device

    @property
    def first(self) -> bool:
        """Whether this process writes files and speaks to the user."""
        return self.rank == 0

    def sum(self, value: float) -> float:
        """The total over all processes, known to each."""
        if self.size == 1:
            return value
        total = torch.tensor(value, dtype=torch.float64, device=self.device)
        dist.all_reduce(total)
        return total.item()

    def add(self, value: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
        """The total over all processes, left on the device."""
        if self.size > 1:
            dist.all_reduce(value)
        return value

    def wait(self) -> None:
        """Until all processes are here."""
        if self.size > 1:
            dist.barrier()


def choose_device(name: str) -> torch.device:
    """The named device, checked; `auto` takes an accelerator where there is one."""
    if name == "auto":
        found = (
            torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
        )
        return found or torch.device("cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"device={name!r} cannot be used here ({reason}); try cpu") from error
    return device


@contextmanager
def join_world(device_name: str) -> Generator[World, None, None]:
    """Join the processes that `torchrun` started, or be alone."""
    device = choose_device(device_name)
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield World(0, 1, device)
        return
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    backend = "nccl" if device.type == "cuda" else "gloo"
    # A finite time limit: a dead process becomes an error in the others, not a hang.
    dist.init_process_group(backend, timeout=timedelta(minutes=10))
    try:
        yield World(dist.get_rank(), size, device)
    finally:
        dist.destroy_process_group()
