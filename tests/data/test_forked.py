"""A process that works for another ends with it, and leaves signals to it."""

import signal
import subprocess
import sys

import psutil
import pytest

FORKS = """
import os, signal, time
from saccade.data.forked import serve_parent
parent = os.getpid()
child = os.fork()
if not child:
    signal.set_wakeup_fd(-1)
    serve_parent(parent)
    print("ready", signal.getsignal(signal.SIGINT) is signal.SIG_IGN, flush=True)
    time.sleep(60)
print(child, flush=True)
time.sleep(60)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only there")
def test_it_ends_when_the_parent_is_killed_and_does_not_hear_ctrl_c() -> None:
    with subprocess.Popen([sys.executable, "-c", FORKS], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        said = sorted(run.stdout.readline().strip() for _ in range(2))
        number, ready = said
        assert ready == "ready True"
        child = psutil.Process(int(number))
        run.send_signal(signal.SIGKILL)
        child.wait(5)
    assert not child.is_running()


@pytest.mark.skipif(sys.platform != "linux", reason="only there")
def test_who_comes_too_late_leaves_at_once() -> None:
    script = "from saccade.data.forked import serve_parent; serve_parent(-1); print('stayed')"
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stdout) == (1, "")
