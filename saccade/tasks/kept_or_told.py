"""What is kept in the cache, or a line for the user that it cannot be."""

from collections.abc import Callable
from typing import TypeVar

from saccade.printable import printable
from saccade.tasks.images import cache_folder

Kept = TypeVar("Kept")


def kept_or_told(keep: Callable[[], Kept], what: str, notes: list[str]) -> Kept | None:
    """What is kept, or None and a line for the user where that cannot be."""
    try:
        return keep()
    except OSError as error:
        notes.append(
            f"{what} cannot be kept in {printable(cache_folder())} ({error.strerror}), and will be "
            "made anew at every start; make room there, or name another place by --cache"
        )
        return None
