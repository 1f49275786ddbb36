"""Read a look document's arrays back, independently of the page: by its description alone."""

import base64
import zlib

import numpy as np

from saccade.app.look.arrays import ArrayRef

KINDS = {"u8": "<u1", "u16": "<u2", "u32": "<u4", "f16": "<f2", "f32": "<f4"}


def values(blobs: list[str], ref: ArrayRef) -> np.ndarray:
    raw = zlib.decompress(base64.b64decode(blobs[ref.blob]))
    array = np.frombuffer(raw, KINDS[ref.dtype]).reshape(ref.shape)
    return (array / 255.0) ** 2 if ref.code == "sqrt" else array
