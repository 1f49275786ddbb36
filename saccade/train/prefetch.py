"""Batches made by another thread while the device is at work."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

T = TypeVar("T")


class Prefetch(Generic[T]):
    """A function of position, asked for one position after another, computed a few ahead."""

    def __init__(self, make: Callable[[int], T], *, ahead: int = 3) -> None:
        self._make, self._ahead = make, ahead
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="batches")
        self._coming: dict[int, Future[T]] = {}

    def __call__(self, position: int) -> T:
        # All by the one thread, even what is needed at once: a task remembers its epoch.
        self._coming = {p: made for p, made in self._coming.items() if p >= position}
        for wanted in range(position, position + 1 + self._ahead):
            if wanted not in self._coming:
                self._coming[wanted] = self._thread.submit(self._make, wanted)
        return self._coming.pop(position).result()
