"""Weights that others trained: read without running code from them, and told what became of each.

Files are safetensors or torch's own (`.pth`, `.bin`), from torchvision, timm, Hugging Face or us.
"""

import argparse
import pickle
import warnings
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from saccade.errors import CheckpointError
from saccade.models.names import LIBRARIES, RESIZED
from saccade.models.names.table import located, to_ours
from saccade.printable import printable
from saccade.regular import regular_file

# Where training scripts put the weights; an average over training is what they then evaluate.
WRAPPINGS = (
    *("model_ema", "state_dict_ema", "ema_state_dict"),
    *("model", "model_state", "model_state_dict", "state_dict", "module"),
)
PREFIXES = ("module.", "_orig_mod.")  # of models that several devices share, or that are compiled
IN_FOLDER = ("model.safetensors", "pytorch_model.bin")
SHOWN = 6


@dataclass(frozen=True, kw_only=True)
class Report:
    """What became of each tensor. Names are the model's, but for `unexpected`: the file's.

    `matched` holds the `resized` as well: positions of another grid. `mismatched` were left as
    they are in the model, for theirs had another shape.
    """

    path: str
    matched: tuple[str, ...]
    missing: tuple[str, ...]
    unexpected: tuple[str, ...]
    resized: tuple[str, ...]
    mismatched: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether every weight of the model came from the file."""
        return not self.missing and not self.mismatched

    def __str__(self) -> str:
        found = f"{self.path}: {len(self.matched)} of {self._wanted} tensors loaded"
        kinds = {
            "resized": self.resized,
            "of another shape, left as they were": self.mismatched,
            "missing": self.missing,
            "in the file but not in the model": self.unexpected,
        }
        told = (f"{len(names)} {kind} ({_some(names)})" for kind, names in kinds.items() if names)
        return "; ".join([found, *told])

    @property
    def _wanted(self) -> int:
        return len(self.matched) + len(self.missing) + len(self.mismatched)


def load_pretrained(model: nn.Module, path: Path) -> Report:
    """Put the weights of a file, or of a Hugging Face folder, into a model.

    What the file does not have, or has in another shape, stays as it is; if that is everything,
    the file is refused.
    """
    there = {
        name: tensor
        for name, tensor in model.state_dict().items()
        if not name.endswith("num_batches_tracked")  # counts that nothing here reads
    }
    given, taken = read_weights(path), dict[str, Tensor]()
    found, unexpected = _translated(model, given, there)
    resized, mismatched = list[str](), dict[str, str]()
    for name, part in found.items():
        fit = _fitted(name, part, there[name])
        if fit is None:
            mismatched[name] = f"{name}: {_shape(part)}, not {_shape(there[name])}"
            continue
        taken[name] = fit
        resized += [name] * (fit is not part)
    if not taken:
        raise CheckpointError(_nothing(path, model, unexpected, [*mismatched.values()]))
    model.load_state_dict(taken, strict=False)
    return Report(
        path=str(path),
        matched=tuple(name for name in there if name in taken),
        missing=tuple(name for name in there if name not in taken and name not in mismatched),
        unexpected=tuple(dict.fromkeys(unexpected)),
        resized=tuple(resized),
        mismatched=tuple(mismatched[name] for name in there if name in mismatched),
    )


def _translated(
    model: nn.Module, given: dict[str, Tensor], there: dict[str, Tensor]
) -> tuple[dict[str, Tensor], list[str]]:
    """Their tensors by our names, in the tongue that explains most of them; and the rest."""
    ours = {name: name for name in there}
    tongues = [ours, *LIBRARIES.get(type(model), {}).values()]
    names = max(tongues, key=lambda one: len(to_ours(one, given, there)))
    found = to_ours(names, given, there)
    places = located(names, there)
    known = {places[name].name for name in found}
    rest = (name for name in given if name not in known)
    return found, [name for name in rest if not name.endswith("num_batches_tracked")]


def _fitted(name: str, part: Tensor, wanted: Tensor) -> Tensor | None:
    if part.shape == wanted.shape:
        return part
    resize = RESIZED.get(name.rpartition(".")[2])
    fit = resize(part, len(wanted)) if resize is not None and part.dim() == 2 else None
    return fit if fit is not None and fit.shape == wanted.shape else None


def read_weights(path: Path) -> dict[str, Tensor]:
    """The tensors of a file by the names that training gave them, out of their wrappings."""
    if path.is_dir():
        inside = [path / name for name in IN_FOLDER if (path / name).is_file()]
        if not inside:
            raise CheckpointError(f"{path} holds none of: {', '.join(IN_FOLDER)}")
        path = inside[0]
    weights = _unwrapped(_loaded(path))
    if not weights:
        raise CheckpointError(f"{path} holds no named tensors; give a file of a model's weights")
    return {_bare(name): tensor for name, tensor in weights.items()}


def _loaded(path: Path) -> Any:
    """What a file holds; its content says of which kind it is, whatever its name."""
    size = regular_file(path, CheckpointError).st_size
    try:
        with path.open("rb") as file:
            safe = file.read(9)[8:] == b"{"  # after the length of the header, the header
        if safe:
            return load_file(path)
        _refuse_packed(path, size)
        # Training scripts leave their arguments beside the weights; such a namespace runs nothing.
        with torch.serialization.safe_globals([argparse.Namespace]), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Detected pickle protocol")  # it is read or refused
            return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise CheckpointError(
            f"{path} is not a file of weights, or holds more than weights and would run code when "
            "loaded; save the model's state_dict() alone, best as safetensors"
        ) from error
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror or error}") from error
    except BROKEN as error:
        reason = printable(str(error).strip().partition("\n")[0])
        raise CheckpointError(f"{path} is damaged, or no file of weights: {reason}") from error


def _refuse_packed(path: Path, size: int) -> None:
    """Torch packs nothing: a member that is packed, or that others overlap, is a bomb."""
    if not zipfile.is_zipfile(path):
        return
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
    packed = any(member.compress_type != zipfile.ZIP_STORED for member in members)
    if packed or sum(member.file_size for member in members) > size:
        raise CheckpointError(
            f"{printable(path)} is compressed, as torch.save never does, and may unpack to any "
            "size; save the model's state_dict() again, best as safetensors"
        )


BROKEN = (
    *(SafetensorError, RuntimeError, ValueError, KeyError, EOFError, zipfile.BadZipFile),
    *(AttributeError, IndexError, TypeError, AssertionError),  # of unpickling what is no pickle
)


def _unwrapped(loaded: Any) -> dict[str, Tensor]:
    while isinstance(loaded, Mapping):
        held = cast(Mapping[Any, Any], loaded)
        inner = next(
            (held[name] for name in WRAPPINGS if isinstance(held.get(name), Mapping)), None
        )
        if inner is None:
            return {str(name): x for name, x in held.items() if isinstance(x, Tensor)}
        loaded = inner
    return {}


def _bare(name: str) -> str:
    while name.startswith(PREFIXES):
        name = name.partition(".")[2]
    return name


def _nothing(path: Path, model: nn.Module, unexpected: list[str], mismatched: list[str]) -> str:
    kind, own = type(model).__name__, next(iter(model.state_dict()), "no weights")
    if mismatched:
        return f"no weight of {path} fits this {kind}: {_some(mismatched)}; build it in that size"
    return (
        f"no weight of {path} belongs to {kind}: it has {_some(unexpected)}, and the model {own} "
        "and others; is it of another architecture?"
    )


def _shape(tensor: Tensor) -> str:
    return "×".join(map(str, tensor.shape)) or "a single number"


def _some(names: Iterable[str]) -> str:
    names = list(names)
    more = [f"and {len(names) - SHOWN} more"] if len(names) > SHOWN else []
    return ", ".join([*(printable(name)[:200] for name in names[:SHOWN]), *more])
