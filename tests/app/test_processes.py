"""The command as a process among others: Ctrl-C from the first line on, and many ranks."""

import os
import signal
import subprocess
import sys
import time

import pytest

from saccade.app.cli import main
from saccade.train.stopping import Stopped

# Runs `saccade --version`, and sends itself a signal while the command line is being imported.
INTERRUPTED = """
import os, runpy, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "saccade.app.cli":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
sys.argv = ["saccade", "--version"]
runpy.run_module("saccade", run_name="__main__")
"""


@pytest.mark.parametrize("handler", [signal.SIG_DFL, signal.SIG_IGN])
def test_ctrl_c_during_imports_ends_quietly_unless_it_is_ignored(
    handler: signal.Handlers,
) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        preexec_fn=lambda: signal.signal(signal.SIGINT, handler),
    )
    ignored = handler is signal.SIG_IGN
    assert ended.stderr == ""
    assert ended.returncode == (0 if ignored else -signal.SIGINT)  # which a shell calls 130
    assert ended.stdout.startswith("saccade ") == ignored


@pytest.mark.parametrize(
    ("rank", "ended", "says"),
    [("0", False, True), ("1", True, False), ("1", False, True)],
    ids=["the first", "another, which torchrun ends", "another, alone with its error"],
)
def test_of_many_processes_one_says_an_error(
    rank: str,
    ended: bool,
    says: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def wait(seconds: float) -> None:
        assert rank != "0"
        if ended:
            raise Stopped(signal.SIGTERM)

    monkeypatch.setenv("LOCAL_RANK", rank)
    monkeypatch.setattr(time, "sleep", wait)
    monkeypatch.setattr(sys, "argv", ["saccade", "fly"])
    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == 2
    assert capsys.readouterr().err.count("saccade: there is no command 'fly'") == says


@pytest.mark.slow
def test_torchrun_shows_an_error_that_all_have_once() -> None:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    ended = subprocess.run(
        [*torchrun, "--nproc-per-node", "2", "-m", "saccade", "train", "lstm"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert ended.returncode != 0
    assert ended.stderr.count("saccade: no recipe 'lstm'") == 1
