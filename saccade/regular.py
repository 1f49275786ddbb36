"""A path where an ordinary file should be: a FIFO is waited for for ever, a device never ends."""

import os
import stat
from pathlib import Path

from saccade.errors import SaccadeError
from saccade.printable import printable


def file_status(path: Path, error: type[SaccadeError]) -> os.stat_result:
    """What is at a path, following links."""
    try:
        return path.stat()
    except FileNotFoundError:
        raise error(f"{printable(path)} does not exist; check the path") from None
    except (OSError, ValueError) as cause:  # ValueError: a NUL in the path
        why = (cause.strerror if isinstance(cause, OSError) else None) or str(cause)
        raise error(f"{printable(path)} cannot be read: {why}") from None


def regular_file(path: Path, error: type[SaccadeError]) -> os.stat_result:
    """The same of a file; anything else is refused."""
    status = file_status(path, error)
    if stat.S_ISDIR(status.st_mode):
        raise error(f"{printable(path)} is a directory where a file should be; remove or rename it")
    if not stat.S_ISREG(status.st_mode):
        raise error(f"{printable(path)} is not a regular file; copy its content into one first")
    return status
