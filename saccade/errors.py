"""What can go wrong because of what a person gave us. The command line prints these as one line."""

import errno
from collections.abc import Iterable
from difflib import get_close_matches


class SaccadeError(Exception):
    """Something a user can mend; the message names the value, the rule and the way out."""

    exit_code = 2


class ConfigError(SaccadeError):
    """A setting, or a combination of settings, that cannot work."""


class DataError(SaccadeError):
    """A file that cannot be read as the data it should hold."""


class RunError(SaccadeError):
    """A run folder that cannot be trained further or used."""


class CheckpointError(RunError):
    """A checkpoint that is damaged or foreign."""


class WriteError(SaccadeError):
    """A file that could not be written: the disk is full, or may not be written to."""

    exit_code = 1


class TrainingError(SaccadeError):
    """A training that came to its end and has nothing to show for it."""

    exit_code = 1


def out_of_memory(error: BaseException) -> bool:
    """Whether the machine, or a device of it, has no memory left; each library says it otherwise.

    torch raises a RuntimeError for the CPU, and a kind of it for an accelerator.
    """
    told = str(error).lower()
    return (
        isinstance(error, MemoryError)
        or (isinstance(error, OSError) and error.errno == errno.ENOMEM)
        or (isinstance(error, RuntimeError) and any(words in told for words in _NO_MEMORY))
    )


_NO_MEMORY = ("out of memory", "not enough memory", "can't allocate memory", "bad_alloc")


def perhaps(name: str, known: Iterable[str]) -> str:
    """What may have been meant by a name that is not known, or nothing."""
    near = get_close_matches(name.lower(), known, n=2, cutoff=0.65)  # vti is vit
    return f"; perhaps you meant {' or '.join(near)}" if near else ""
