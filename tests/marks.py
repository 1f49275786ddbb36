"""Which of many parameters of a law the fast tests see; `make test` sees them all."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import pytest


def slow(value: Any) -> Any:
    """A tuple is of several parameters."""
    values = value if isinstance(value, tuple) else (value,)
    return pytest.param(*values, marks=pytest.mark.slow)


def one_fast(values: Iterable[Any]) -> list[Any]:
    """The first as it is, the others slow."""
    first, *others = values
    return [first, *map(slow, others)]


def one_fast_of_each(groups: Mapping[str, Hashable]) -> list[Any]:
    """Names; of those that share a group, all but the first are slow."""
    first = {group: name for name, group in reversed(groups.items())}
    return [name if first[group] == name else slow(name) for name, group in groups.items()]
