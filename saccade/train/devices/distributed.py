"""One process or many: the same loop. `torchrun` starts many, and each finds its place here."""

import itertools
import os
import time
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from jaxtyping import Float
from torch import Tensor
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from saccade.errors import ConfigError, TrainingError

# For an exchange of numbers: a dead process becomes an error in the others, not a hang.
LIMIT = timedelta(minutes=10)
_MEETINGS = itertools.count()  # each process comes to all of them, in this order


@dataclass(frozen=True)
class World:
    """Where a process stands among all."""

    rank: int
    size: int
    device: torch.device
    launch: Any = field(default=None, compare=False)  # what torchrun keeps over all its restarts

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

    def restarted(self, what: str) -> bool:
        """Whether torchrun has started this work before, and starts it again; ask once."""
        if int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")):
            return True  # else another machine may have counted it
        return self.launch is not None and self.launch.add(f"saccade/begun/{what}", 1) > 1

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


def processes_started() -> int:
    """By `torchrun`, this one among them."""
    return int(os.environ.get("WORLD_SIZE", "1"))


@contextmanager
def join_world(device_name: str) -> Generator[World, None, None]:
    """Join the processes that `torchrun` started, or be alone."""
    device = choose_device(device_name)
    size = processes_started()
    if size == 1:
        yield World(0, 1, device)
        return
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    if dist.is_initialized():  # by whoever has started this process, such as Ray Train
        yield World(dist.get_rank(), size, device)
        return
    backend = "nccl" if device.type == "cuda" else "gloo"
    launch, rank, size = next(rendezvous("env://", timeout=LIMIT))
    store = PrefixStore(meet(launch, rank, size), launch)
    dist.init_process_group(backend, timeout=LIMIT, store=store, rank=rank, world_size=size)
    try:
        yield World(rank, size, device, launch)
    except RuntimeError as error:
        if not lost_another(error):
            raise
        reason = str(error).splitlines()[0].rpartition("] ")[2].partition(". ")[0]
        raise TrainingError(
            f"process {rank} of {size} lost another one ({reason}); the same command goes on from "
            "the last checkpoint, and torchrun --max-restarts 3 gives it by itself"
        ) from error
    finally:
        dist.destroy_process_group()


@contextmanager
def alone(device: torch.device) -> Generator[World, None, None]:
    """A world of one process that exchanges numbers with itself."""
    everyone: Any = dist
    backend = "nccl" if device.type == "cuda" else "gloo"
    dist.init_process_group(backend, store=everyone.HashStore(), rank=0, world_size=1)
    try:
        yield World(0, 1, device)
    finally:
        dist.destroy_process_group()


def lost_another(error: RuntimeError) -> bool:
    """Whether an exchange of numbers failed because somebody is not there any more."""
    return isinstance(error, dist.DistError) or "/gloo/" in str(error)


def meet(store: Any, rank: int, size: int) -> str:
    """A name that the processes of this start have agreed on, and those of no other.

    torchrun may keep its store when it starts processes again, with the addresses of dead ones in
    it, and the machines count restarts each for itself. So each process says hello by a name of its
    own, again at every start, and the first answers whom it has not answered yet.
    """
    name = uuid.uuid4().hex
    if rank:
        store.set(f"saccade/hello/{rank}", name)
        agreed = store.get(f"saccade/welcome/{name}").decode()
        store.add(f"saccade/here/{agreed}", 1)
        return agreed
    answered: set[bytes] = set()
    while store.add(f"saccade/here/{name}", 0) < size - 1:
        for other in range(1, size):
            key = f"saccade/hello/{other}"
            if store.check([key]) and (said := store.get(key)) not in answered:
                store.set(f"saccade/welcome/{said.decode()}", name)
                answered.add(said)
        time.sleep(0.05)
    return name
