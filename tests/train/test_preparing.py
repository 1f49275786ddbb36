"""Signals while data are prepared, or modules imported: obeyed within a second, in one line."""

import os
import pty
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

SOON = 3.0  # seconds; one on a machine that does nothing else
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}


@contextmanager
def started(*command: str, errors: int = subprocess.PIPE) -> Iterator[Any]:
    process = subprocess.Popen(
        [sys.executable, *command],
        stdout=subprocess.PIPE,
        stderr=errors,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        preexec_fn=lambda: [signal.signal(n, signal.SIG_DFL) for n in CODES],  # noqa: PLW1509
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def stopped(process: Any, number: signal.Signals) -> tuple[int, str, float]:
    begun = time.monotonic()
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    return process.returncode, errors.decode(), time.monotonic() - begun


def wait_for(process: Any, text: bytes) -> None:
    for line in process.stderr:
        if text in line:
            return
    pytest.fail(f"ended before {text!r}")


@pytest.fixture(scope="module")
def many_words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of which a tokenizer needs half a minute to learn."""
    rng, path = random.Random(0), tmp_path_factory.mktemp("words") / "words.txt"
    letters = "abcdefghijklmnopqrstuvwxyz"
    lines = (
        " ".join("".join(rng.choices(letters, k=rng.randint(8, 30))) for _ in range(10))
        for _ in range(60_000)
    )
    path.write_text("\n".join(lines))
    return path


@pytest.mark.parametrize(("number", "seconds"), [(signal.SIGINT, 1.0), (signal.SIGTERM, 4.0)])
def test_a_tokenizer_that_is_being_trained_is_left(
    number: signal.Signals, seconds: float, many_words: Path, tmp_path: Path
) -> None:
    options = ["--level", "bpe", "--vocabulary", "30000", "--unit", "stream", "--out"]
    command = ["-m", "saccade", "train", "gpt", "--data", str(many_words), *options]
    with started(*command, str(tmp_path / "run")) as process:
        wait_for(process, b"reading")
        time.sleep(seconds)
        code, errors, took = stopped(process, number)
    assert (code, errors) == (CODES[number], "saccade: stopped\n")
    assert took < SOON


def test_data_that_are_being_made_are_left_and_the_same_command_starts(tmp_path: Path) -> None:
    run = ["-m", "saccade", "train", "rnn-attention", "--out", str(tmp_path / "run")]
    with started(*run) as process:
        wait_for(process, b"making")
        time.sleep(0.5)
        code, errors, took = stopped(process, signal.SIGTERM)
    assert (code, errors) == (143, "saccade: stopped\n")
    assert took < SOON
    small = ["--pairs", "20", "--vocabulary", "300", "--train.steps", "1", "--model.width", "16"]
    with started(*run, *small) as process:
        assert process.wait(120) == 0


@pytest.mark.parametrize("number", CODES)
@pytest.mark.parametrize("module", [b"numpy.linalg", b"torch.autograd", b"torch.nn.modules"])
def test_imports_are_left_without_a_traceback(number: signal.Signals, module: bytes) -> None:
    with started("-X", "importtime", "-m", "saccade", "train", "transformer") as process:
        wait_for(process, module)
        code, errors, took = stopped(process, number)
    assert code == CODES[number]
    # Not always the last line: between saying it and leaving, one more import may be told of.
    assert errors.count("saccade: stopped\n") == 1
    assert "Traceback" not in errors
    assert took < SOON


@pytest.mark.parametrize("signals", [1, 2])
def test_on_a_terminal_the_cursor_comes_back(signals: int, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    command = ["-m", "saccade", "train", "rnn-lm", "--out", str(tmp_path / "run")]
    with started(*command, "--train.steps", "100000", errors=theirs) as process:
        os.close(theirs)
        shown = b""
        while b"step" not in shown:  # an update was made
            shown += os.read(ours, 4096)
        for _ in range(signals):
            process.send_signal(signal.SIGINT)
        while True:
            try:
                shown += os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
        assert process.wait(60) == 130
    assert b"\x1b[?25l" in shown
    assert shown.rindex(b"\x1b[?25h") > shown.rindex(b"\x1b[?25l")
