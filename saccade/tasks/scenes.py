"""Scenes of shapes as images, drawn by as many processes as there are cores."""

import mmap
import multiprocessing
import os
import pickle
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.context import ForkProcess
from typing import Any, BinaryIO, Generic, TypeVar

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor

from saccade.data import shapes
from saccade.data.batching.packed_rows import LazyRows
from saccade.data.files.forked import forking, serve_parent
from saccade.data.shapes import Scene, ShapesSettings
from saccade.tasks.base import Progress

Pixels = UInt8[np.ndarray, "count 3 side side"]
Told = TypeVar("Told")

WORTH_IT = 5000  # scenes; fewer are drawn before processes have started
MOST = 16  # processes
A_SECOND = 4000  # scenes that a core draws
TOLD_EVERY = 0.2  # seconds


def announced(count: int) -> str:
    """What is about to happen, for it may take a while."""
    return f"drawing {count:,} scenes of shapes, some {count // A_SECOND // _workers(count) + 2} s"


@dataclass(frozen=True, eq=False)
class Scenes(LazyRows[Scene]):
    """The first scenes of a split, each composed when it is asked for: the same at every time."""

    split: str
    total: int
    settings: ShapesSettings

    def __len__(self) -> int:
        return self.total

    def row(self, number: int) -> Scene:
        return shapes.scene(self.split, number, self.settings)


def draw_scenes(
    scenes: Sequence[Scene], side: int, progress: Progress
) -> UInt8[Tensor, "count 3 side side"]:
    """Scenes as images; the same whoever draws them."""
    return draw_and_tell(scenes, side, _nothing, progress)[0]


def draw_and_tell(
    scenes: Sequence[Scene], side: int, tell: Callable[[Scene], Told], progress: Progress
) -> tuple[UInt8[Tensor, "count 3 side side"], list[Told]]:
    """Scenes as images, and what `tell` says of each."""
    shape = (len(scenes), 3, side, side)
    memory = mmap.mmap(-1, max(1, len(scenes) * 3 * side**2))  # forked processes write into it
    images = np.frombuffer(memory, np.uint8, len(scenes) * 3 * side**2).reshape(shape)
    work, workers = _Work(scenes, images, tell), _workers(len(scenes))
    if workers > 1:
        told = _together(work, workers, progress)
    else:
        told = list[Told]()
        for one in work.on(range(len(scenes))):
            told.append(one)
            progress(len(told), len(scenes))
    return torch.from_numpy(images), told


def _nothing(_: Scene) -> None:
    """What is told of a scene that is only drawn."""


@dataclass(frozen=True)
class _Work(Generic[Told]):
    scenes: Sequence[Scene]
    images: Pixels
    tell: Callable[[Scene], Told]

    def on(self, which: Iterable[int]) -> Iterator[Told]:
        """Some of the scenes drawn, in place; yields what is told of each."""
        for index in which:
            scene = self.scenes[index]
            self.images[index] = shapes.render(scene, self.images.shape[-1]).transpose(2, 0, 1)
            yield self.tell(scene)


def _together(work: _Work[Told], workers: int, progress: Progress) -> list[Told]:
    """Every process takes each so-manieth scene; what one that was killed has left is done here.

    Forked, as torch's loaders are: who draws needs no device, and a script that trains needs no
    guard around its main part.
    """
    fork, count = multiprocessing.get_context("fork"), len(work.scenes)
    done = fork.Array("q", workers, lock=False)
    parts = [range(first, count, workers) for first in range(workers)]
    told: dict[int, Told] = {}
    with ExitStack() as stack:
        files = [stack.enter_context(os.fdopen(os.memfd_create("told"), "w+b")) for _ in parts]
        drawing = [
            fork.Process(target=_count_drawn, args=(work, part, file, done, worker, os.getpid()))
            for worker, (part, file) in enumerate(zip(parts, files))
        ]
        with _running(drawing):
            for one in drawing:
                while one.is_alive():
                    one.join(TOLD_EVERY)
                    progress(sum(done), count)
        for part, file in zip(parts, files):
            told.update(zip(part, _told(file)))
    left = [index for index in range(count) if index not in told]
    for index, one in zip(left, work.on(left)):
        told[index] = one
        progress(len(told), count)
    progress(count, count)
    return [told[index] for index in range(count)]


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
    work: _Work[Any],
    which: range,
    file: BinaryIO,
    done: Any,  # an array of numbers that all processes share
    worker: int,
    parent: int,
) -> None:
    serve_parent(parent)
    for drawn, one in enumerate(work.on(which), start=1):
        pickle.dump(one, file)
        done[worker] = drawn
    file.flush()


def _told(file: BinaryIO) -> Iterator[Any]:
    """What a process has written; one that was killed may have been in the middle."""
    file.seek(0)
    with suppress(EOFError, pickle.UnpicklingError):
        while True:
            yield pickle.load(file)


def _workers(count: int) -> int:
    """Processes that draw so many scenes; 1: this one."""
    if sys.platform != "linux" or count < WORTH_IT:  # elsewhere a forked process may not be used
        return 1
    return min(MOST, len(os.sched_getaffinity(0)))
