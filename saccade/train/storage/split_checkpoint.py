"""Checkpoints of split weights: each process writes its part, while training goes on.

torch.distributed.checkpoint copies the parts, writes them as safetensors from a thread, and fits
them to any other number of processes when they are read. Around it is the protocol of
`checkpoint.py`: a temporary folder, a SHA-256 of every file, a manifest, and one rename when all
processes are done. So a kill at any instant leaves the checkpoint before, and no pickle is written
or read.
"""

import warnings
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch.distributed as dist
from safetensors import SafetensorError
from torch import Tensor
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
from torch.distributed.checkpoint.hf_storage import (
    HuggingFaceStorageReader,
    HuggingFaceStorageWriter,
)
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import async_save

from saccade.errors import CheckpointError, WriteError
from saccade.models.names.former import name_today
from saccade.printable import printable
from saccade.train.devices.distributed import World
from saccade.train.storage.checkpoint import (
    PARTS,
    Checkpoint,
    Template,
    begin,
    publish,
    state_content,
)
from saccade.train.storage.files import sha256, sync_file
from saccade.train.storage.manifest import MANIFEST

SLOWEST = timedelta(hours=2)  # for the slowest process to write its part


class SplitSaver:
    """Writes checkpoints one after another, while training goes on."""

    def __init__(self, folder: Path, world: World, *, keep: int) -> None:
        self._folder, self._world, self._keep = folder, world, keep
        # Of its own, for the thread exchanges numbers while training does.
        self._group: Any = dist.new_group(backend="gloo", timeout=SLOWEST)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
        self._writing: Future[None] | None = None

    def save(self, make: Callable[[], Checkpoint]) -> None:
        """Copy what `make` gives; it is written while training goes on."""
        self.finish()
        checkpoint = make()
        temporary = self._folder / f".tmp-{checkpoint.name}"
        if self._world.first:
            begin(self._folder, temporary)
        dist.barrier(self._group)
        tensors = {
            f"{part}/{name}": tensor
            for part, some in checkpoint.tensors.items()
            for name, tensor in some.items()
        }
        written = async_save(
            tensors,
            storage_writer=HuggingFaceStorageWriter(str(temporary), save_distributed=True),
            planner=DefaultSavePlanner(dedup_save_to_lowest_rank=True),
            process_group=self._group,
        )
        self._writing = self._thread.submit(self._complete, written, temporary, checkpoint)

    def finish(self) -> None:
        """Wait until the last one is safe."""
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.result()

    def _complete(self, written: Any, temporary: Path, checkpoint: Checkpoint) -> None:
        """All processes have written: list the digests and give the folder its name."""
        try:
            written.result()
        except CheckpointException as error:
            reasons = [str(one) for one, _ in error.failures.values()]
            raise WriteError(
                f"cannot write {printable(temporary)}: {printable(reasons[0])}; earlier "
                "checkpoints are unharmed"
            ) from error
        mine: dict[str, str] = {}
        for path in temporary.glob(PARTS.replace("*", f"{self._world.rank + 1:05d}-*")):
            sync_file(path)
            mine[path.name] = sha256(path)
        every: list[Any] | None = [None] * self._world.size if self._world.first else None
        dist.gather_object(mine, every, dst=0, group=self._group)
        if every is not None:
            listed = {name: digest for some in every for name, digest in sorted(some.items())}
            contents = {"state.json": state_content(checkpoint)}
            publish(temporary, contents, checkpoint, keep=self._keep, listed=listed)


def read_parts(folder: Path, names: list[str], template: Template) -> dict[str, dict[str, Tensor]]:
    """Each tensor in the layout of its template; this process reads no more than that needs."""
    strange = {path.name for path in folder.glob("*.safetensors")} - set(names)
    if strange:
        raise CheckpointError(f"{printable(folder / min(strange))} is not in {MANIFEST}")
    try:
        reader = HuggingFaceStorageReader(str(folder))
        tensors: dict[str, Any] = {}
        listed: dict[str, Any] = reader.read_metadata().state_dict_metadata
        for key, stored in listed.items():
            part, _, name = key.partition("/")
            _check_whole(key, stored)
            tensors[key] = template(part, name_today(name), stored.size, stored.properties.dtype)
        with warnings.catch_warnings():  # that every process reads by itself is what is wanted
            warnings.simplefilter("ignore", UserWarning)
            load(tensors, storage_reader=reader, no_dist=True)
    except (CheckpointException, SafetensorError, *WRONG) as error:
        raise CheckpointError(
            f"{printable(folder)} does not hold all parts of its tensors: {printable(error)}"
        ) from error
    found: dict[str, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        part, _, name = key.partition("/")
        found.setdefault(part, {})[name_today(name)] = tensor
    return found


WRONG = (OSError, ValueError, RuntimeError, LookupError, TypeError, AttributeError, AssertionError)


def _check_whole(key: str, stored: Any) -> None:
    """Parts lie one after another along the first dimension, from the first row to the last."""
    rows = 0
    for chunk in sorted(stored.chunks, key=lambda one: (*one.offsets, *one.sizes)):
        if not stored.size:
            rows += 1
        elif chunk.offsets[0] != rows or chunk.sizes[1:] != stored.size[1:]:
            raise ValueError(f"a part of {key} is missing")
        else:
            rows += chunk.sizes[0]
    if rows != (stored.size[0] if stored.size else 1):
        raise ValueError(f"a part of {key} is missing")
