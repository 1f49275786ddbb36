"""A run folder has one owner at a time, and a signal is a request."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from saccade.errors import RunError, WriteError
from saccade.train.stopping import Stopped, locked, obey_within_a_second, stop_on_signals


def test_a_second_owner_is_told_who_the_first_is(tmp_path: Path) -> None:
    with locked(tmp_path), pytest.raises(RunError) as raised, locked(tmp_path):
        pass
    assert f"being trained by pid {os.getpid()} on {socket.gethostname()}" in str(raised.value)
    assert "--out" in str(raised.value)


def test_the_lock_is_free_once_its_owner_is_done(tmp_path: Path) -> None:
    for _ in range(2):
        with locked(tmp_path / "made" / "on demand"):
            pass


def test_an_owner_that_takes_its_folder_away_leaves_no_lock_to_others(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with locked(folder) as made:
        assert made
        shutil.rmtree(folder)
        with locked(folder) as made_again:
            assert made_again
    with locked(folder) as made:
        assert not made


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
            request.saving = True
            assert request.signal == 0
            os.kill(os.getpid(), number)
            assert request.signal == number
        assert signal.getsignal(number) is handler
    finally:
        signal.signal(number, before)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_with_nothing_to_save_a_signal_raises_at_once(number: signal.Signals) -> None:
    before = signal.signal(number, signal.default_int_handler)  # it may have been ignored
    try:
        with pytest.raises(Stopped) as stopped, stop_on_signals():
            signal.raise_signal(number)
    finally:
        signal.signal(number, before)
    assert stopped.value.signal == number
    assert isinstance(stopped.value, KeyboardInterrupt)


def test_only_a_main_thread_hears_signals_and_others_may_train() -> None:
    before, seen = signal.getsignal(signal.SIGTERM), []

    def other() -> None:
        with stop_on_signals(), obey_within_a_second():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert seen == [before]


STUCK = """
import hashlib, os, signal, sys, threading, time
from saccade.train.stopping import obey_within_a_second
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, signal.SIG_DFL)
with obey_within_a_second() as request:
    {before}
    threading.Timer(0.2, os.kill, (os.getpid(), {number})).start()
    {work}
print("never", flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(
    "work",
    [
        "hashlib.pbkdf2_hmac('sha256', b'', b'', 10**9)",
        "exec('while True:\\n try: time.sleep(30)\\n except BaseException: pass')",
    ],
    ids=["a call that does not come back", "code that swallows everything"],
)
def test_a_command_that_is_stuck_ends_within_a_second(number: signal.Signals, work: str) -> None:
    script = STUCK.format(before="begun = time.monotonic()", number=int(number), work=work)
    begun = time.monotonic()
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (
        128 + number,
        "",
        "saccade: stopped\n",
    )
    assert time.monotonic() - begun < 15  # of which a loaded machine needs some to start


@pytest.mark.slow
def test_what_is_saving_is_not_cut_short() -> None:
    work = "time.sleep(2); print(request.signal, flush=True)"
    script = STUCK.format(before="request.saving = True", number=15, work=work)
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout) == (0, "15\nnever\n")


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
        "with stop_on_signals() as request:\n"
        "    request.saving = True\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    print('still here', flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    print('never')\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout) == (143, "still here\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_work_that_can_be_repeated_is_ended_by_a_signal_while_something_is_saving(
    number: signal.Signals,
) -> None:
    def work() -> str:
        signal.raise_signal(number)
        raise AssertionError("went on")

    with stop_on_signals() as request:
        request.saving = True
        assert request.unless_asked(lambda: "made", wanted=True) == "made"
        assert request.unless_asked(work, wanted=True) is None
        assert request.signal == number
        assert request.unless_asked(lambda: "made", wanted=True) is None
        assert request.unless_asked(lambda: "made", wanted=False) == "made"


def test_work_that_may_not_be_broken_off_comes_to_its_end() -> None:
    def work() -> str:
        signal.raise_signal(signal.SIGTERM)
        return "made"

    with stop_on_signals() as request:
        request.saving = True
        assert request.unless_asked(work, wanted=False) == "made"
        assert request.signal == signal.SIGTERM


def test_with_nothing_to_save_such_work_is_stopped_as_all_else_is() -> None:
    with pytest.raises(Stopped), stop_on_signals() as request:
        request.unless_asked(lambda: signal.raise_signal(signal.SIGTERM), wanted=True)
