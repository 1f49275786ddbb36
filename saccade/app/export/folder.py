"""An exported model as a folder: whole or not there, and it knows what it was made of."""

import importlib
import json
import os
import shutil
from collections.abc import Callable
from errno import EIO
from pathlib import Path
from types import ModuleType
from typing import Any

from safetensors import SafetensorError

from saccade.errors import CheckpointError, ConfigError, WriteError
from saccade.train.recipe import to_table
from saccade.train.storage.files import (
    clear,
    explain,
    read_json,
    refuse_link,
    sha256,
    sync_folder,
    write_synced,
)
from saccade.train.storage.folder import RunFolder

CARD = "saccade.json"
LAYOUT = 3  # raised when what an export holds changes, so that old ones are made anew


def require(package: str) -> ModuleType:
    """A package that only exporting needs."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ConfigError(
            f"{package} cannot be imported ({error}); pip install 'saccade[export]'"
        ) from error


def default_folder(run: RunFolder, to: str, quantization: str) -> Path:
    return run.path / "exports" / f"{to}-{quantization}"


def describe(run: RunFolder, to: str, quantization: str, *assets: str) -> dict[str, Any]:
    """What an export is made of: it is out of date as soon as any of this is another."""
    return {
        "to": to,
        "quantization": quantization,
        "layout": LAYOUT,
        "weights": sha256(run.weights),
        **{Path(asset).stem: sha256(run.path / asset) for asset in assets},
        "run": to_table(run.load_recipe()),
    }


def is_fresh(folder: Path, description: dict[str, Any]) -> bool:
    """Whether a folder holds an export of exactly this, every byte as it was written."""
    if not (folder / CARD).is_file():
        return False
    try:
        card = read_json(folder / CARD)
        files = card.pop("files") if isinstance(card, dict) else None
        return card == json.loads(json.dumps(description)) and files == _digests(folder)
    except (CheckpointError, KeyError, OSError):
        return False


def _digests(folder: Path) -> dict[str, str]:
    """Of all that an engine reads: not of the README, which a person may add to."""
    names = sorted(path.name for path in folder.iterdir() if path.name not in (CARD, "README.md"))
    return {name: sha256(folder / name) for name in names}


def check_place(final: Path) -> None:
    """Refuse to write over what is not an export, and where nothing can be written."""
    if final.exists() and not (final / CARD).is_file():
        raise ConfigError(f"{final} is there and is not an export; name another folder with --out")
    above = next(folder for folder in final.absolute().parents if folder.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise WriteError(f"cannot write {final}: {above} is no folder that may be written to")


def write_export(
    run: RunFolder,
    final: Path,
    description: dict[str, Any],
    fill: Callable[[Path], None],
    *assets: str,
) -> None:
    """Let `fill` write into a folder, add the run's assets and a description, put it in place.

    A reader sees the old export or the new one. What is not an export is never overwritten.
    An asset that `fill` has written its own way stays so.
    """
    check_place(final)
    refuse_link(final.parent)
    temporary, old = (final.with_name(f".{word}-{final.name}") for word in ("tmp", "old"))
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        for leftover in (temporary, old):
            clear(leftover)
        temporary.mkdir()
        fill(temporary)
        for asset in assets:
            if not (temporary / asset).exists():
                shutil.copyfile(run.path / asset, temporary / asset)
        card = {**description, "files": _digests(temporary)}
        write_synced(temporary / CARD, json.dumps(card, indent=2).encode())
        _sync(temporary)
        if final.exists():
            final.rename(old)
        temporary.rename(final)
        sync_folder(final.parent)
    except (OSError, SafetensorError) as error:
        lost = OSError(EIO, str(error)) if isinstance(error, SafetensorError) else error
        raise WriteError(explain(lost, final, run.weights.stat().st_size)) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _sync(folder: Path) -> None:
    """Through to the disk, for others wrote these files."""
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
    sync_folder(folder)
