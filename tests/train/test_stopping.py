"""A run folder has one owner at a time, and a signal is a request."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from saccade.errors import RunError, WriteError
from saccade.train.stopping import locked, stop_on_signals


def test_a_second_owner_is_told_who_the_first_is(tmp_path: Path) -> None:
    with locked(tmp_path), pytest.raises(RunError) as raised, locked(tmp_path):
        pass
    assert f"being trained by pid {os.getpid()} on {socket.gethostname()}" in str(raised.value)
    assert "--out" in str(raised.value)


def test_the_lock_is_free_once_its_owner_is_done(tmp_path: Path) -> None:
    for _ in range(2):
        with locked(tmp_path / "made" / "on demand"):
            pass


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(WriteError, match=r"cannot write .*file/run"), locked(tmp_path / "file/run"):
        pass


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_is_remembered_and_the_old_handler_comes_back(number: signal.Signals) -> None:
    def handler(number: int, frame: object) -> None:
        raise AssertionError

    before = signal.signal(number, handler)
    try:
        with stop_on_signals() as request:
            assert request.signal == 0
            os.kill(os.getpid(), number)
            assert request.signal == number
        assert signal.getsignal(number) is handler
    finally:
        signal.signal(number, before)


def test_what_nohup_ignores_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stop_on_signals() as request:
            os.kill(os.getpid(), signal.SIGHUP)
            assert request.signal == 0
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_second_signal_ends_at_once() -> None:
    script = (
        "import os, signal\n"
        "from saccade.train.stopping import stop_on_signals\n"
        "signal.signal(signal.SIGTERM, signal.SIG_DFL)\n"
        "with stop_on_signals():\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    print('still here', flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    print('never')\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout) == (143, "still here\n")
