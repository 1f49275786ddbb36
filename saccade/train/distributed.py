"""One process or many: the same loop. `torchrun` starts many, and each finds its place here."""

import itertools
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from jaxtyping import Float
from torch import Tensor

from saccade.errors import ConfigError

# For an exchange of numbers: a dead process becomes an error in the others, not a hang.
LIMIT = timedelta(minutes=10)
_MEETINGS = itertools.count()  # each process comes to all of them, in this order


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
        where = self.device if dist.get_backend() == "nccl" else torch.device("cpu")
        total = torch.tensor(value, dtype=torch.float64, device=where)
        dist.all_reduce(total)
        return total.item()

    def add(self, value: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
        """The total over all processes, left on the device."""
        if self.size > 1:
            dist.all_reduce(value)
        return value

    def wait(self) -> None:
        """Until all processes are here, however long one of them reads.

        They meet in the store and not in a barrier, which would give up after the time limit. If
        one dies, torchrun ends the others, and without it the store goes with the first.
        """
        if self.size == 1:
            return
        everyone: Any = dist.distributed_c10d
        store: Any = everyone._get_default_store()
        here = f"saccade-{next(_MEETINGS)}"
        store.add(here, 1)
        while store.add(here, 0) < self.size:
            time.sleep(0.1)


def choose_device(name: str) -> torch.device:
    """The named device, checked; `auto` takes an accelerator where there is one."""
    if name == "auto":
        found = (
            torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
        )
        return found or torch.device("cpu")
    try:
        device = torch.device(name)
        torch.zeros((), device=device).item()  # which `meta` has not
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
    dist.init_process_group(backend, timeout=LIMIT)
    try:
        yield World(dist.get_rank(), size, device)
    finally:
        dist.destroy_process_group()
