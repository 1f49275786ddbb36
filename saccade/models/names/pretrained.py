"""Weights that others trained: read without running code from them, and told what became of each.

Files are safetensors or torch's own (`.pth`, `.bin`), from torchvision, timm, Hugging Face or us;
in a folder of Hugging Face's, timm's or ours they may lie in several parts.
"""

import argparse
import json
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
from saccade.models.names import HEADS, RESIZED, TIED, Head, tables
from saccade.models.names.former import names_today
from saccade.models.names.table import Names, located, to_ours
from saccade.models.protocol import KnowsPublishedNames
from saccade.printable import printable
from saccade.regular import regular_file

# Where training scripts put the weights; an average over training is what they then evaluate.
WRAPPINGS = (
    *("model_ema", "state_dict_ema", "ema_state_dict"),
    *("model", "model_state", "model_state_dict", "state_dict", "module"),
)
PREFIXES = ("module.", "_orig_mod.")  # of models that several devices share, or that are compiled
IN_FOLDER = ("model.safetensors", "pytorch_model.bin")
IN_PARTS = tuple(f"{name}.index.json" for name in IN_FOLDER)
# Counts that nothing here reads, and tables that follow from the sizes.
NOT_LEARNT = (
    *("num_batches_tracked", "relative_position_index", "attn_mask"),
    *("position_ids", "token_type_ids", "attn.bias", "attn.masked_bias", "embed_positions.weight"),
)
OLD_LEAVES = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
ADDED = ("final_logits_bias",)  # nothing is lost with one of zeros
SHOWN = 6


@dataclass(frozen=True, kw_only=True)
class Report:
    """What became of each tensor. Names are the model's, but for `unexpected`: the file's.

    `matched` holds the `resized` as well: positions of another grid or length. `mismatched` were
    left as they are in the model, for theirs had another shape. `fresh` is a head that the file
    does not have, or has for another number of classes: it is `zero` now, or as it was drawn.
    """

    path: str
    matched: tuple[str, ...]
    missing: tuple[str, ...]
    unexpected: tuple[str, ...]
    resized: tuple[str, ...]
    mismatched: tuple[str, ...]
    fresh: tuple[str, ...] = ()
    zero: bool = True

    @property
    def complete(self) -> bool:
        """Whether every weight of the model came from the file."""
        return self.fits and not self.fresh

    @property
    def fits(self) -> bool:
        """Whether every weight but those of the head did."""
        return not self.missing and not self.mismatched

    @property
    def lines(self) -> list[str]:
        """What became of the tensors, for people."""
        wanted = len(self.matched) + len(self.missing) + len(self.mismatched) + len(self.fresh)
        kinds = {
            "resized": self.resized,
            f"of a new head, {'zero' if self.zero else 'random'} at first": self.fresh,
            "of another shape, left as they were": self.mismatched,
            "missing": self.missing,
            "in the file but not in the model": self.unexpected,
        }
        return [
            f"{printable(self.path)}: {len(self.matched)} of {wanted} tensors loaded",
            *(f"{len(names)} {kind} ({_some(names)})" for kind, names in kinds.items() if names),
        ]

    def __str__(self) -> str:
        return "; ".join(self.lines)


def renamed(model: nn.Module, given: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of a file by the names that a model has for them, whatever their shapes."""
    return _translated(model, given, model.state_dict())[0]


def load_pretrained(model: nn.Module, path: Path) -> Report:
    """Put the weights of a file, or of a folder, into a model; see `load_weights`."""
    return load_weights(model, read_weights(path), path)


def load_weights(model: nn.Module, given: dict[str, Tensor], path: Path) -> Report:
    """Put the tensors of a file into a model.

    What the file does not have, or has in another shape, stays as it is; so does a head, or it
    becomes zero, as `HEADS` says of the family. If nothing fits, the file is refused.
    """
    taken, report = compare(model, given, path)
    if not taken:
        raise CheckpointError(_nothing(model, report))
    own, fresh = model.state_dict(), [name.partition(":")[0] for name in report.fresh]
    zeros = {name: torch.zeros_like(own[name]) for name in fresh if report.zero}
    model.load_state_dict({**taken, **zeros}, strict=False)
    return report


def compare(
    model: nn.Module, given: dict[str, Tensor], path: Path
) -> tuple[dict[str, Tensor], Report]:
    """The tensors of a file that a model can take, and what would become of all."""
    learns = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    state = model.state_dict().items()
    there = {n: tensor for n, tensor in state if n in learns or not n.endswith(NOT_LEARNT)}
    found, unexpected = _translated(model, _untied(model, given), there)
    taken, resized, mismatched = dict[str, Tensor](), list[str](), dict[str, str]()
    for name, part in found.items():
        fit = _fitted(name, part, there[name])
        if fit is None:
            mismatched[name] = f"{name}: {_shape(part)}, not {_shape(there[name])}"
            continue
        taken[name] = fit
        resized += [name] * (fit is not part)
    fresh = _new_head(model, there, taken)
    absent = [name for name in there if name not in taken and name not in fresh]
    return taken, Report(
        path=str(path),
        matched=tuple(name for name in there if name in taken),
        missing=tuple(name for name in absent if name not in mismatched),
        unexpected=tuple(dict.fromkeys(unexpected)),
        resized=tuple(resized),
        mismatched=tuple(mismatched[name] for name in absent if name in mismatched),
        fresh=tuple(mismatched.get(name, name) for name in fresh),
        zero=HEADS.get(type(model), Head(())).zero,
    )


def _untied(model: nn.Module, given: dict[str, Tensor]) -> dict[str, Tensor]:
    """Each tensor that has several names under the first alone; where they differ, all stay."""
    given = dict(given)
    for first, *others in TIED.get(type(model), ()):
        for name in others:
            if name in given and first not in given:
                given[first] = given.pop(name)
            elif name in given and torch.equal(given[name], given[first]):
                del given[name]
    return given


def _new_head(
    model: nn.Module, there: dict[str, Tensor], taken: dict[str, Tensor]
) -> tuple[str, ...]:
    """The tensors of those parts of the head that were not found whole; none of them is taken."""
    fresh: list[str] = []
    for part in HEADS.get(type(model), Head(())).parts:
        names = [name for name in there if f"{name}.".startswith(f"{part}.")]
        if not all(name in taken for name in names):
            fresh += names
    for name in fresh:
        taken.pop(name, None)
    return tuple(fresh)


def _translated(
    model: nn.Module, given: dict[str, Tensor], there: dict[str, Tensor]
) -> tuple[dict[str, Tensor], list[str]]:
    """Their tensors by our names, in the tongue that explains most of them; and the rest."""
    ours = {name: name for name in there}
    known = tables(model)
    headless = [_headless(names) for one, names in known.items() if one.startswith("huggingface")]
    tongues = [ours, *known.values(), *headless]
    if isinstance(model, KnowsPublishedNames):
        tongues.append(model.published_names(given))
    names = max(tongues, key=lambda one: len(to_ours(one, given, there)))
    found = to_ours(names, given, there)
    places = located(names, there)
    taken = {places[name].name for name in found}
    rest = (name for name in given if name not in taken)
    told = [name for name in rest if not name.endswith(NOT_LEARNT)]
    return found, [name for name in told if name not in ADDED or bool(given[name].any())]


def _headless(names: Names) -> Names:
    """As Hugging Face saves a model without its head: less what it calls the model inside."""
    inside = next(iter(names.values())).partition(".")[0] + "."
    return {ours: x.removeprefix(inside) for ours, x in names.items() if x.startswith(inside)}


def _fitted(name: str, part: Tensor, wanted: Tensor) -> Tensor | None:
    if part.shape == wanted.shape:
        return part
    resize = RESIZED.get(name.rpartition(".")[2])
    fit = resize(part, len(wanted)) if resize is not None and part.dim() == 2 else None
    return fit if fit is not None and fit.shape == wanted.shape else None


def read_weights(path: Path) -> dict[str, Tensor]:
    """The tensors of a file by the names that training gave them, out of their wrappings."""
    weights: dict[str, Tensor] = {}
    for part in weight_files(path):
        weights |= _unwrapped(_loaded(part))
    if not weights:
        raise CheckpointError(f"{path} holds no named tensors; give a file of a model's weights")
    return names_today({_bare(name): tensor for name, tensor in weights.items()})


def weight_files(path: Path) -> list[Path]:
    """The files of a folder that hold its weights; a file is its own only part."""
    if not path.is_dir():
        return [path]
    for name in IN_FOLDER:
        if (path / name).is_file():
            return [path / name]
    for name in IN_PARTS:
        if (path / name).is_file():
            return _indexed(path / name)
    raise CheckpointError(
        f"{printable(path)} holds none of: {', '.join(IN_FOLDER)}; name a file of weights, or a "
        "folder that has one"
    )


def _indexed(index: Path) -> list[Path]:
    """The files that an index names, all beside it."""
    try:
        match json.loads(index.read_bytes()):
            case {"weight_map": dict(places)}:
                names = {Path(str(name)).name for name in cast(dict[str, Any], places).values()}
                return [index.with_name(name) for name in sorted(names)]
            case _:
                raise ValueError("it has no weight_map")
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(
            f"{printable(index)} does not say which files the weights are in ({printable(error)}); "
            "download the folder again"
        ) from error


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
        with path.open("rb") as file:
            if file.read(4) == b"PK\x03\x04":
                raise CheckpointError(
                    f"{printable(path)} is damaged: its end is missing; copy or download it again"
                )
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
    old = next((old for old in OLD_LEAVES if name.endswith(old)), None)
    return name if old is None else name.removesuffix(old) + OLD_LEAVES[old]


def _nothing(model: nn.Module, report: Report) -> str:
    kind, own = type(model).__name__, next(iter(model.state_dict()), "no weights")
    path, others = printable(report.path), report.mismatched
    if others:
        return f"no weight of {path} fits this {kind}: {_some(others)}; build it in that size"
    return (
        f"no weight of {path} belongs to {kind}: it has {_some(report.unexpected)}, and the model "
        f"{own} and others; is it of another architecture?"
    )


def _shape(tensor: Tensor) -> str:
    return "×".join(map(str, tensor.shape)) or "a single number"


def _some(names: Iterable[str]) -> str:
    names = list(names)
    more = [f"and {len(names) - SHOWN} more"] if len(names) > SHOWN else []
    return ", ".join([*(printable(name)[:200] for name in names[:SHOWN]), *more])
