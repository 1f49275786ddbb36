"""Rows that stream, some at a time: neither too many nor too long together."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Row = TypeVar("Row")


def blocks(
    rows: Iterable[Row], *, most: int, size: Callable[[Row], int], total: int
) -> Iterator[list[Row]]:
    """At most `most` rows, and no more once their sizes come to `total`; none is empty."""
    block, held = list[Row](), 0
    for row in rows:
        block.append(row)
        held += size(row)
        if len(block) == most or held >= total:
            yield block
            block, held = [], 0
    if block:
        yield block
