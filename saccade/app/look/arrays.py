"""Numbers on their way to the page: few bits each, deflated, as text.

Weights lie between 0 and 1 and most are near 0, so a byte holds their square root: the error is
at most 0.002 · 2√a, and small weights keep their order.
"""

import base64
import hashlib
import zlib
from dataclasses import dataclass
from typing import Literal

import numpy as np
from torch import Tensor

Kind = Literal["u8", "index", "f16", "f32"]
DType = Literal["u8", "u16", "u32", "f16", "f32"]


@dataclass(frozen=True, kw_only=True)
class ArrayRef:
    """Where an array is, and how to read it."""

    blob: int
    dtype: DType
    shape: list[int]
    code: Literal["sqrt", "linear"]


class Blobs:
    """All arrays of a document, and what was left out of them. The same bytes are stored once."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.notes: list[str] = []
        self._known: dict[bytes, int] = {}

    @property
    def size(self) -> int:
        """Characters so far."""
        return sum(map(len, self.texts))

    def note(self, *texts: str) -> None:
        """Say what was left out, once."""
        self.notes += [text for text in texts if text not in self.notes]

    def add(self, values: Tensor, kind: Kind) -> ArrayRef:
        """Store an array and say where it is."""
        raw, dtype = _raw(values, kind)
        code = "sqrt" if kind == "u8" else "linear"
        digest = hashlib.sha256(raw).digest()
        if digest not in self._known:
            self._known[digest] = len(self.texts)
            self.texts.append(base64.b64encode(zlib.compress(raw, 6)).decode())
        return ArrayRef(blob=self._known[digest], dtype=dtype, shape=list(values.shape), code=code)


def _raw(values: Tensor, kind: Kind) -> tuple[bytes, DType]:
    """Little-endian bytes in row order; an index of −1 becomes the largest there is."""
    array = values.detach().cpu().numpy()
    if kind == "u8":
        root = np.sqrt(np.clip(np.nan_to_num(array), 0.0, 1.0))
        return np.round(root * 255).astype("<u1").tobytes(), "u8"
    if kind == "index":
        wide = array.size > 0 and array.max() >= 2**16 - 1
        return array.astype("<u4" if wide else "<u2").tobytes(), "u32" if wide else "u16"
    return array.astype("<f2" if kind == "f16" else "<f4").tobytes(), kind
