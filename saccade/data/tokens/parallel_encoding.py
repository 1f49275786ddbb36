"""Rows to tokens by several processes, shard by shard, in the order of the rows.

What a shard holds depends on its rows alone, so it is all one who encodes it. The processes are
forked, as torch's loaders are: a script that trains then needs no guard around its main part. Each
encodes in one thread, so that there are not more of them than cores.
"""

import multiprocessing
import os
import sys
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch

from saccade.data.batching.ragged import Ragged
from saccade.data.files.forked import forking, serve_parent
from saccade.data.tokens.streamed_encoding import StreamEncoder, TextRow, encoded_block, row_blocks
from saccade.data.tokens.token_shards import Shard
from saccade.data.tokens.vocabulary import Vocabulary

MOST = 4  # processes: each remembers words of its own
THREADS = "TOKENIZERS_PARALLELISM"  # what `tokenizers` asks, and warns of when it was forked

_encoders = list[StreamEncoder]()  # of a forked process: the one that it encodes with


class ShardArrays(NamedTuple):
    """A shard as it is sent from one process to another."""

    columns: list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]
    marks: np.ndarray[Any, Any]


def workers() -> int:
    """Processes that are worth starting; 1: this one."""
    if sys.platform != "linux":  # elsewhere a forked process may not be used
        return 1
    return min(MOST, len(os.sched_getaffinity(0)))


def encoded_in_parallel(
    vocabulary: Vocabulary, rows: Iterable[TextRow], *, first: int, processes: int
) -> Iterator[Shard]:
    """The shards that `encoded_shards` gives."""
    waiting = deque[tuple[list[TextRow], Future[ShardArrays] | None]]()
    here = StreamEncoder(vocabulary)
    with _forked(vocabulary, processes) as pool:
        for block in row_blocks(rows, first=first):
            waiting.append((block, _submitted(pool, block)))
            if len(waiting) > processes:
                yield _shard(here, *waiting.popleft())
        while waiting:
            yield _shard(here, *waiting.popleft())


@contextmanager
def _forked(vocabulary: Vocabulary, processes: int) -> Generator[ProcessPoolExecutor]:
    """Processes that encode until the block is left; what they have not begun is given up."""
    told = os.environ.get(THREADS)
    os.environ[THREADS] = "false"
    pool = ProcessPoolExecutor(
        processes,
        mp_context=multiprocessing.get_context("fork"),
        initializer=_begin,
        initargs=(vocabulary, os.getpid()),
    )
    try:
        with forking():
            pool.submit(_ready).result()  # all are forked with the first
        if told is None:
            del os.environ[THREADS]
        else:
            os.environ[THREADS] = told
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _begin(vocabulary: Vocabulary, parent: int) -> None:
    serve_parent(parent)
    _encoders.append(StreamEncoder(vocabulary))


def _ready() -> None:
    """Nothing to do."""


def _submitted(pool: ProcessPoolExecutor, block: list[TextRow]) -> Future[ShardArrays] | None:
    try:
        return pool.submit(_encoded, block)
    except BrokenProcessPool:
        return None


def _encoded(block: list[TextRow]) -> ShardArrays:
    shard = encoded_block(_encoders[0], block)
    columns = [(column.flat.numpy(), column.starts.numpy()) for column in shard.columns]
    return ShardArrays(columns, shard.marks.numpy())


def _shard(here: StreamEncoder, block: list[TextRow], found: Future[ShardArrays] | None) -> Shard:
    """What a process has sent; this one encodes it where the other was killed."""
    try:
        arrays = None if found is None else found.result()
    except BrokenProcessPool:
        arrays = None
    if arrays is None:
        return encoded_block(here, block)
    columns = tuple(Ragged(*map(torch.from_numpy, both)) for both in arrays.columns)
    return Shard(columns, torch.from_numpy(arrays.marks))
