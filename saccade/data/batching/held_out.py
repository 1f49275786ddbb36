"""Rows of training data that are held out for validation, where there is no such split."""

from collections import Counter
from collections.abc import Hashable, Iterable


def held_out(classes: Iterable[Hashable], share: float) -> list[bool]:
    """Whether each row is held out: of each class every (1/share)-th, of a single one none."""
    every, seen = round(1 / share), Counter[Hashable]()
    found: list[bool] = []
    for one in classes:
        seen[one] += 1
        found.append(seen[one] % every == 0)
    return found
