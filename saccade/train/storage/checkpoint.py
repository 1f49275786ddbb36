"""Checkpoints that are either whole or not there.

A checkpoint is a folder: tensors as safetensors, numbers as JSON, and a manifest with the SHA-256
of each file. It is written under a temporary name, each file through to the disk, the manifest
last; then the folder is renamed. No pickle anywhere: loading runs no code.
"""

import fnmatch
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from saccade.errors import CheckpointError, WriteError
from saccade.models.names.former import name_today, names_today
from saccade.printable import printable
from saccade.train.devices.distributed import World
from saccade.train.storage.files import (
    clear,
    explain,
    read_json,
    refuse_link,
    sha256,
    sync_folder,
    write_synced,
)
from saccade.train.storage.manifest import MANIFEST

PARTS = "shard-*.safetensors"  # of tensors that are split, as torch names them
# Room for a tensor, by its group, name, shape and type; which follows from the plain values.
Template = Callable[[str, str, torch.Size, torch.dtype], Tensor]
Templates = Callable[[dict[str, Any]], Template]


@dataclass(frozen=True)
class Checkpoint:
    """All that training needs to go on: named groups of tensors, and plain values."""

    step: int
    tensors: dict[str, dict[str, Tensor]]
    state: dict[str, Any]

    @property
    def name(self) -> str:
        """Of its folder."""
        return f"step-{self.step:08d}"


@runtime_checkable
class Saver(Protocol):
    """What writes checkpoints, one after another."""

    def save(self, make: Callable[[], Checkpoint], /) -> None:
        """Write what `make` gives; every process must come here."""
        ...

    def finish(self) -> None:
        """Wait until the last one is safe."""
        ...


class WholeSaver:
    """The first process writes everything, and training goes on when it is safe."""

    def __init__(self, folder: Path, world: World, *, keep: int) -> None:
        self._folder, self._world, self._keep = folder, world, keep

    def save(self, make: Callable[[], Checkpoint]) -> None:
        if self._world.first:
            save_checkpoint(self._folder, make(), keep=self._keep)

    def finish(self) -> None:
        """Nothing is left to wait for."""


def save_checkpoint(folder: Path, checkpoint: Checkpoint, *, keep: int) -> Path:
    """Write `folder/step-N`, then delete all but it and the `keep` − 1 before it."""
    temporary = folder / f".tmp-{checkpoint.name}-{os.getpid()}"
    contents = {f"{name}.safetensors": serialise(t) for name, t in checkpoint.tensors.items()}
    contents["state.json"] = state_content(checkpoint)
    begin(folder, temporary, size=sum(map(len, contents.values())))
    return publish(temporary, contents, checkpoint, keep=keep)


def state_content(checkpoint: Checkpoint) -> bytes:
    """The plain values as they are written."""
    return json.dumps({**checkpoint.state, "step": checkpoint.step}).encode()


def begin(folder: Path, temporary: Path, *, size: int = 0) -> None:
    """Make a folder to write a checkpoint to, and clear away what kills have left."""
    refuse_link(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob(".tmp-*"):
            with suppress(OSError):  # one of somebody else's is passed over
                clear(old)
        temporary.mkdir()
    except OSError as error:
        raise WriteError(_unharmed(explain(error, temporary, size))) from error


def publish(
    temporary: Path,
    contents: dict[str, bytes],
    checkpoint: Checkpoint,
    *,
    keep: int,
    listed: Mapping[str, str] | None = None,
) -> Path:
    """Write the rest to a folder, give it its name, and delete old ones.

    `listed` are the digests of files that are there already.
    """
    folder = temporary.parent
    final = folder / checkpoint.name
    try:
        _write(temporary, contents, listed or {})
        clear(final)  # written before by a run that was then set back by a damaged one
        temporary.rename(final)
        sync_folder(folder)
    except OSError as error:
        shutil.rmtree(temporary, ignore_errors=True)
        size = sum(map(len, contents.values()))
        raise WriteError(_unharmed(explain(error, temporary, size))) from error
    # A newer one can only be damaged: else this run would have gone on from it.
    every = sorted(folder.glob("step-*"))
    kept = [path for path in every if path <= final][-keep:]
    for path in every:
        if path not in kept:
            shutil.rmtree(path, ignore_errors=True)
    return final


def _unharmed(trouble: str) -> str:
    return f"{trouble}; earlier checkpoints are unharmed"


def load_newest(
    folder: Path, templates: Templates | None = None
) -> tuple[Checkpoint | None, list[str]]:
    """The newest whole checkpoint, and what is wrong with newer ones.

    None means that there never was one; if there are only damaged ones, it raises.
    """
    troubles: list[str] = []
    for candidate in sorted(folder.glob("step-*"), reverse=True):
        try:
            return load_checkpoint(candidate, templates), troubles
        except CheckpointError as error:
            troubles.append(str(error))
    if troubles:
        raise CheckpointError(
            f"no checkpoint under {folder} can be used: {'; '.join(troubles)}. "
            "Restore one from a backup, or start over in another folder with --out"
        )
    return None, []


def load_checkpoint(folder: Path, templates: Templates | None = None) -> Checkpoint:
    """Read a checkpoint after checking every byte of it.

    One that many processes wrote is read into tensors of the layout that `templates` give.
    """
    names = [name for name in _checked_files(folder) if name.endswith(".safetensors")]
    state = read_state(folder)
    if fnmatch.filter(names, PARTS):
        from saccade.train.storage.split_checkpoint import read_parts

        template = whole_template if templates is None else templates(state)
        return Checkpoint(state["step"], read_parts(folder, names, template), state)
    tensors = {name.removesuffix(".safetensors"): read_tensors(folder / name) for name in names}
    return Checkpoint(state["step"], tensors, state)


def whole_template(part: str, name: str, size: torch.Size, dtype: torch.dtype) -> Tensor:
    """Room for all of a tensor."""
    return torch.empty(size, dtype=dtype)


def _checked_files(folder: Path) -> list[str]:
    """The files of a checkpoint, every byte of which is as it was written."""
    if not (folder / MANIFEST).is_file():
        raise CheckpointError(f"{folder / MANIFEST} is missing")
    manifest = read_json(folder / MANIFEST)
    if not isinstance(manifest, dict) or "state.json" not in manifest:
        raise CheckpointError(f"{folder / MANIFEST} does not list the files of a checkpoint")
    for name, digest in manifest.items():
        path = folder / name
        if Path(name).name != name or not path.is_file():
            raise CheckpointError(f"{printable(path)} is missing")
        if sha256(path) != digest:
            raise CheckpointError(f"{path} is damaged: its content is not what was written")
    return list(manifest)


def read_state(folder: Path) -> dict[str, Any]:
    """The plain values, each of the kind that training wrote."""
    path = folder / "state.json"
    state = read_json(path)
    if not isinstance(state, dict) or type(state.get("step")) is not int:
        raise CheckpointError(f"{path} does not say which step it is of")
    if folder.name != f"step-{state['step']:08d}":
        raise CheckpointError(f"{path} is of step {state['step']!s:.30}, not of {folder.name}")
    for name, rule in _FIELDS.items():
        if name in state and not rule(state[name], state["step"]):
            raise CheckpointError(f"{path}: {name}={printable(state[name]):.60} cannot be")
    if "parameters" in state:
        state["parameters"] = [name_today(name) for name in state["parameters"]]
    return state


def _is_count(value: Any, step: int) -> bool:
    return type(value) is int and 0 <= value <= max(step, 1)


def _are_figures(value: Any, step: int) -> bool:
    return isinstance(value, dict) and all(
        one is None or isinstance(one, float) or (type(one) is int and abs(one) < 1 << 53)
        for one in value.values()
    )


def _decides(value: Any, step: int) -> bool:
    match value:
        case {"figure": str(), "label": str(), "higher": bool()}:
            return len(value) == 3
        case _:
            return False


_FIELDS: dict[str, Callable[[Any, int], bool]] = {
    "step": _is_count,
    "best_step": _is_count,
    "stale": _is_count,
    "skipped": _is_count,
    "owed": lambda value, step: type(value) is bool,
    "seen": lambda value, step: value is None or (type(value) is int and 0 <= value < 1 << 63),
    "threads": lambda value, step: type(value) is int and value > 0,
    "deciding": _decides,
    "parameters": lambda value, step: (
        isinstance(value, list) and all(isinstance(one, str) for one in value)  # type: ignore[arg-type]
    ),
    "best": _are_figures,
    "best_loss": lambda value, step: _are_figures({"loss": value}, step),
}


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Tensors of a safetensors file; anything else is refused."""
    try:
        return names_today(load_file(path))
    except (SafetensorError, OSError, ValueError, RuntimeError, KeyError) as error:
        raise CheckpointError(
            f"{printable(path)} is not a sound safetensors file: {printable(error)}"
        ) from error


def serialise(tensors: Mapping[str, Tensor]) -> bytes:
    """A safetensors file as bytes."""
    return save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})


def _write(folder: Path, contents: dict[str, bytes], listed: Mapping[str, str]) -> None:
    for name, content in contents.items():
        write_synced(folder / name, content)
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    write_synced(folder / MANIFEST, json.dumps({**listed, **digests}).encode())
    sync_folder(folder)
