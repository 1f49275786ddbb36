"""A process that works for another ends with it, and leaves signals to it."""

import signal
import subprocess
import sys

import psutil
import pytest

FORKS = r"""
import os, signal, time
from saccade.data.files.forked import serve_parent
parent = os.getpid()
child = os.fork()
if not child:
    signal.set_wakeup_fd(-1)
    serve_parent(parent)
    os.write(1, b"ready %d\n" % (signal.getsignal(signal.SIGINT) is signal.SIG_IGN))
    time.sleep(60)
os.write(1, b"%d\n" % child)  # in one piece: both write to one pipe
time.sleep(60)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only there")
def test_it_ends_when_the_parent_is_killed_and_does_not_hear_ctrl_c() -> None:
    with subprocess.Popen([sys.executable, "-c", FORKS], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        said = sorted(run.stdout.readline().strip() for _ in range(2))
        number, ready = said
        assert ready == "ready 1"
        child = psutil.Process(int(number))
        run.send_signal(signal.SIGKILL)
        child.wait(5)
    assert not child.is_running()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only there")
def test_a_process_with_threads_is_forked_without_a_warning_and_its_child_computes() -> None:
    script = """
import multiprocessing, os, torch
from saccade.data.files.forked import forking, serve_parent
torch.set_num_threads(4)
many = torch.ones(1 << 22)
many.sum()  # its threads have been started
def compute(parent):
    serve_parent(parent)
    os._exit(int(many.sum() == len(many)) + 40)
child = multiprocessing.get_context("fork").Process(target=compute, args=(os.getpid(),))
with forking():
    child.start()
child.join(20)
child.kill()
child.join()
print(child.exitcode)
"""
    command = [sys.executable, "-W", "error::DeprecationWarning", "-c", script]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.stdout.strip(), run.stderr) == ("41", "")


@pytest.mark.skipif(sys.platform != "linux", reason="only there")
def test_who_comes_too_late_leaves_at_once() -> None:
    script = "from saccade.data.files.forked import serve_parent; serve_parent(-1); print('stayed')"
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stdout) == (1, "")
