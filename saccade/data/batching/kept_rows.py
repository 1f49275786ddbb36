"""Numbers that take long to compute, kept in a folder that all processes map.

Rows lie end to end, in one file for each name. The folder is named by what the rows depend on; one
that is damaged is made anew.
"""

import hashlib
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from jaxtyping import Int, Shaped
from torch import Tensor

from saccade.data.files.file_state import recalled
from saccade.data.files.whole_folders import sealed_index, sync, whole_folder

PIECE = 1 << 24  # bytes that are checked at a time

Rows = Mapping[str, Shaped[Tensor, "rows ..."]]


class KeptRows:
    """Rows by name, as they were written.

    All are read once, to check that they are, and again when somebody has written to the files.
    """

    def __init__(self, folder: Path) -> None:
        self._arrays = dict[str, np.ndarray[Any, Any]]()
        for name, about in sealed_index(folder)["arrays"].items():
            path, shape, dtype = folder / f"{name}.rows", tuple(about["shape"]), about["dtype"]
            if recalled(folder / f"{name}.sum.json", [path], partial(_sum, path)) != about["sum"]:
                raise ValueError(f"{path} is not what was written there")
            if 0 in shape:  # nothing cannot be mapped
                self._arrays[name] = np.zeros(shape, dtype)
            else:
                self._arrays[name] = np.memmap(path, dtype, "r", shape=shape)

    @property
    def names(self) -> list[str]:
        """Of all that there is."""
        return list(self._arrays)

    def count(self, name: str) -> int:
        """How many rows there are."""
        return len(self._arrays[name])

    def all(self, name: str) -> Shaped[Tensor, "rows ..."]:
        """A copy of every row."""
        return torch.from_numpy(np.array(self._arrays[name]))

    def take(self, name: str, rows: Int[Tensor, " n"]) -> Shaped[Tensor, "n ..."]:
        """A copy of some rows, in this order."""
        return torch.from_numpy(self._arrays[name][rows.numpy()])


def kept_rows(folder: Path, what: str, key: str, compute: Callable[[], Iterator[Rows]]) -> KeptRows:
    """The rows that `compute` gives, some at a time, or gave when it was last asked with this key.

    Every part has the same names, with rows of one shape each.
    """
    home = folder / f"{what}-{hashlib.sha256(key.encode()).hexdigest()[:32]}"
    return whole_folder(home, KeptRows, lambda empty: _write(empty, compute()))


def _write(folder: Path, parts: Iterator[Rows]) -> dict[str, Any]:
    """The index: of each name the shape and kind of its rows, and a sum over their bytes.

    Written and not mapped: on a full disk a write fails, and a mapped page kills the process.
    """
    arrays, files = dict[str, dict[str, Any]](), dict[str, BinaryIO]()
    with ExitStack() as stack:
        for part in parts:
            for name, rows in part.items():
                array = np.ascontiguousarray(rows.cpu().numpy())
                if name not in files:
                    files[name] = stack.enter_context((folder / f"{name}.rows").open("wb"))
                    shape = [0, *array.shape[1:]]
                    arrays[name] = {"shape": shape, "dtype": array.dtype.str, "sum": 0}
                about, raw = arrays[name], array.tobytes()
                files[name].write(raw)
                about["sum"] = zlib.crc32(raw, about["sum"])
                about["shape"][0] += len(array)
        for file in files.values():
            sync(file)
    return {"arrays": arrays}


def _sum(path: Path) -> int:
    total = 0
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            total = zlib.crc32(piece, total)
    return total
