"""How a process begins that was forked to do a part of another's work."""

import ctypes
import os
import signal

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
