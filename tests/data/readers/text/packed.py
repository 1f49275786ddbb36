"""Bytes as files hold them: plain, or packed by their ending."""

import gzip
from collections.abc import Callable

import pyarrow as pa


def zstandard(raw: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as packed:
        packed.write(raw)
    return sink.getvalue().to_pybytes()


PACK: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": lambda raw: gzip.compress(raw, 1),
    ".zst": zstandard,
}
