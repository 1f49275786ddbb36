"""Dice whose throws depend on nothing but the whole numbers they were made from."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

_POOL = 64

Item = TypeVar("Item")


def generator(*key: int) -> np.random.Generator:
    """A generator of its own for each key; no global state is read or changed."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(key)))


class Dice:
    """Throws one at a time, fetched by the pool: a call of numpy's for each would be slow."""

    def __init__(self, *key: int) -> None:
        self._rng = generator(*key)
        self._pool: list[float] = []

    def random(self) -> float:
        """At least 0 and below 1."""
        if not self._pool:
            self._pool = self._rng.random(_POOL).tolist()
        return self._pool.pop()

    def between(self, low: float, high: float) -> float:
        """Any number from `low` up to `high`."""
        return low + (high - low) * self.random()

    def below(self, end: int) -> int:
        """A whole number from 0 to `end` − 1."""
        return int(self.random() * end)

    def chance(self, probability: float) -> bool:
        """True this often."""
        return self.random() < probability

    def pick(self, items: Sequence[Item]) -> Item:
        """Any of them."""
        return items[self.below(len(items))]

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        """All of them, in any order."""
        left = list(items)
        return [left.pop(self.below(len(left))) for _ in range(len(left))]
