"""How a process begins that was forked to do a part of another's work."""

import ctypes
import os
import signal
import warnings
from collections.abc import Generator
from contextlib import contextmanager

import torch

_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG


def serve_parent(parent: int) -> None:
    """Leave signals to the parent, and end when it does, however that happens. Linux only."""
    # Ctrl-C reaches all processes of a terminal; the parent ends those that work for it.
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN if number == signal.SIGINT else signal.SIG_DFL)
    ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before that was said
        os._exit(1)
    torch.set_num_threads(1)  # the parent's threads are not there, and would be waited for


@contextmanager
def forking() -> Generator[None]:
    """Fork inside without being warned of threads (Python 3.12 on): `serve_parent` needs none."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
        yield
