"""The run's diary: a line of JSON per event, always; TensorBoard beside it when asked for."""

import json
from pathlib import Path
from typing import Any

from saccade.errors import ConfigError, RunError, WriteError
from saccade.printable import printable
from saccade.regular import regular_file
from saccade.train.storage.files import explain, finite, open_own, refuse_link, replace_file

HELD_OUT = "valid_"  # before the name of a figure of validation
LARGEST = 1e300  # what is drawn must leave room for sums


class Log:
    """`metrics.jsonl`. After a resume, what lies beyond the checkpoint is forgotten first."""

    def __init__(
        self, path: Path, *, after: int, tensorboard: bool = False, owed: bool = False
    ) -> None:
        """With `owed`, the validation after that step is forgotten too."""
        self._path = path
        if path.is_file() and not path.is_symlink():  # writing refuses anything else
            kept = [line for line in path.read_bytes().split(b"\n") if _step(line) <= after]
            kept = [line for line in kept if not (owed and _validates(line, after))]
            replace_file(path, b"".join(line + b"\n" for line in kept if line))
        self._board = _board(path.parent / "tensorboard") if tensorboard else None

    def write(self, step: int, values: dict[str, Any]) -> None:
        line = json.dumps({"step": step, **finite(values)}, allow_nan=False).encode() + b"\n"
        try:
            with open(self._path, "ab", opener=open_own) as file:
                file.write(line)
        except OSError as error:
            raise WriteError(explain(error, self._path, len(line))) from error
        if self._board is not None:
            for name, value in values.items():
                if isinstance(value, float):
                    self._board.add_scalar(name, value, step)

    def close(self) -> None:
        if self._board is not None:
            self._board.close()


def read_validations(path: Path) -> dict[int, dict[str, float]]:
    """The held-out figures of a diary, by update; those that are no number are left out.

    A line that is torn, or of somebody else, belongs to no update.
    """
    regular_file(path, RunError)
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise RunError(f"{printable(path)} cannot be read: {error.strerror}") from error
    found: dict[int, dict[str, float]] = {}
    for line in lines:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        match row:
            case {"step": int(step), **rest} if 0 <= step < 1 << 53:
                found.setdefault(step, {}).update(_held_out(rest))
            case _:
                continue
    return {step: figures for step, figures in sorted(found.items()) if figures}


def _held_out(row: dict[str, Any]) -> dict[str, float]:
    return {
        name.removeprefix(HELD_OUT): float(value)
        for name, value in row.items()
        if name.startswith(HELD_OUT) and type(value) in (int, float) and abs(value) < LARGEST
    }


def _validates(line: bytes, step: int) -> bool:
    """Whether a whole line tells of the validation after a step."""
    return _step(line) == step and any(name.startswith(HELD_OUT) for name in json.loads(line))


def _step(line: bytes) -> float:
    """The step of a line; a line torn by a kill belongs to no step."""
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return float("inf")


def _board(folder: Path) -> Any:
    try:
        from torch.utils.tensorboard.writer import SummaryWriter
    except ImportError as error:
        raise ConfigError("tensorboard is not installed; pip install 'saccade[track]'") from error
    refuse_link(folder)
    return SummaryWriter(str(folder))
