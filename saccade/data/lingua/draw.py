"""Chance, and which combinations of words are kept out of training.

A combination is an adjective with its noun, or a verb with the noun it is done to. One in ten,
chosen by a stable hash, is held out: it never occurs in train, valid or test, while every
compositional sentence contains one.
"""

from collections.abc import Callable, Sequence
from functools import cache
from random import Random
from typing import TypeVar
from zlib import crc32

Item = TypeVar("Item")

_ONE_IN = 10
_TRIES = 6


@cache
def is_held_out(first: str, noun: str) -> bool:
    """Whether an adjective or verb (in its dictionary form) may not meet this noun in training."""
    return crc32(f"{first} + {noun}".encode()) % _ONE_IN == 0


class Draw:
    """A stream of random choices that steers towards, or clear of, held-out combinations."""

    def __init__(self, rng: Random, *, compositional: bool) -> None:
        self.random = rng.random
        self.compositional = compositional
        self.met_held_out = False

    def chance(self, probability: float) -> bool:
        """True that often."""
        return self.random() < probability

    def pick(self, items: Sequence[Item]) -> Item:
        """Any item, all alike."""
        return items[int(self.random() * len(items))]

    def between(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""
        return low + int(self.random() * (high - low + 1))

    def combine(
        self, items: Sequence[Item], pairs: Callable[[Item], Sequence[tuple[str, str]]]
    ) -> Item | None:
        """An item whose word pairs suit this stream, or None if none turned up.

        A training stream takes no item with a held-out pair. A compositional one looks for one
        until it has met one, and settles for less.
        """
        item = None
        for _ in range(_TRIES if items else 0):
            item = self.pick(items)
            held_out = any(is_held_out(first, noun) for first, noun in pairs(item))
            if held_out and self.compositional:
                self.met_held_out = True
                return item
            if not held_out and (self.met_held_out or not self.compositional):
                return item
        return item if self.compositional else None
