"""Scenes of shapes as images, drawn by as many processes as there are cores."""

import mmap
import multiprocessing
import os
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.context import ForkProcess
from typing import Any

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor

from saccade.data import shapes
from saccade.data.files.forked import forking, serve_parent
from saccade.data.shapes import Scene
from saccade.tasks.base import Progress

Pixels = UInt8[np.ndarray, "count 3 side side"]

WORTH_IT = 5000  # scenes; fewer are drawn before processes have started
MOST = 16  # processes
A_SECOND = 4000  # scenes that a core draws
TOLD_EVERY = 0.2  # seconds


def announced(count: int) -> str:
    """What is about to happen, for it may take a while."""
    return f"drawing {count:,} scenes of shapes, some {count // A_SECOND // _workers(count) + 2} s"


def draw_scenes(
    scenes: Sequence[Scene], side: int, progress: Progress
) -> UInt8[Tensor, "count 3 side side"]:
    """Scenes as images; the same whoever draws them."""
    shape = (len(scenes), 3, side, side)
    memory = mmap.mmap(-1, max(1, len(scenes) * 3 * side**2))  # forked processes write into it
    images = np.frombuffer(memory, np.uint8, len(scenes) * 3 * side**2).reshape(shape)
    workers = _workers(len(scenes))
    if workers > 1:
        _draw_together(scenes, images, workers, progress)
    else:
        for done in _draw(scenes, images, range(len(scenes))):
            progress(done, len(scenes))
    return torch.from_numpy(images)


def _draw_together(
    scenes: Sequence[Scene], images: Pixels, workers: int, progress: Progress
) -> None:
    """Every process draws each so-manieth scene; what one that was killed has left is drawn here.

    Forked, as torch's loaders are: who draws needs no device, and a script that trains needs no
    guard around its main part.
    """
    fork, count = multiprocessing.get_context("fork"), len(scenes)
    done = fork.Array("q", workers, lock=False)
    parts = [range(first, count, workers) for first in range(workers)]
    drawing = [
        fork.Process(target=_count_drawn, args=(scenes, images, part, done, worker, os.getpid()))
        for worker, part in enumerate(parts)
    ]
    with _running(drawing):
        for one in drawing:
            while one.is_alive():
                one.join(TOLD_EVERY)
                progress(sum(done), count)
    for worker, part in enumerate(parts):
        for more in _draw(scenes, images, part[done[worker] :]):
            progress(sum(done) + more, count)
    progress(count, count)


@contextmanager
def _running(processes: Sequence[ForkProcess]) -> Generator[None]:
    """Until the block is left, however that happens."""
    try:
        with forking():
            for one in processes:
                one.start()
        yield
    finally:
        for one in processes:
            if one.pid is not None:
                one.kill()
                one.join()


def _count_drawn(
    scenes: Sequence[Scene],
    images: Pixels,
    which: range,
    done: Any,  # an array of numbers that all processes share
    worker: int,
    parent: int,
) -> None:
    serve_parent(parent)
    for drawn in _draw(scenes, images, which):
        done[worker] = drawn


def _draw(scenes: Sequence[Scene], images: Pixels, which: range) -> Iterator[int]:
    """Some of the scenes, in place; yields how many."""
    for drawn, index in enumerate(which, start=1):
        images[index] = shapes.render(scenes[index], images.shape[-1]).transpose(2, 0, 1)
        yield drawn


def _workers(count: int) -> int:
    """Processes that draw so many scenes; 1: this one."""
    if sys.platform != "linux" or count < WORTH_IT:  # elsewhere a forked process may not be used
        return 1
    return min(MOST, len(os.sched_getaffinity(0)))
