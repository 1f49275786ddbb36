"""Input of any length: answers come before it ends, in order, and memory does not grow with it."""

import io
import os
import signal
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.app.api import load
from saccade.app.cli import inputs
from saccade.app.cli.inputs import FIRST_WINDOW, WINDOW, in_windows, input_lines
from saccade.app.kinds.image_files import image_batches, predict_images
from saccade.app.kinds.text_lines import predict_lines
from saccade.decode.engine import Decoding
from saccade.errors import DataError
from saccade.tasks.base import Progress
from saccade.tasks.translation import evaluate, scored_pairs
from saccade.tasks.translation.translator import Translator

Patch = pytest.MonkeyPatch
Capture = pytest.CaptureFixture[str]


@given(st.lists(st.integers(0, 3_000_000), max_size=400))
def test_windows_hold_all_in_order_and_are_bounded(sizes: list[int]) -> None:
    windows = list(in_windows(sizes, size=lambda size: size))
    assert [one for window in windows for one in window] == sizes
    assert all(0 < len(window) <= WINDOW for window in windows)
    assert all(sum(window[:-1]) < inputs.WINDOW_CHARACTERS for window in windows)


def test_the_first_answers_are_not_kept_waiting_for_a_full_window() -> None:
    sizes = [len(window) for window in in_windows(range(10_000), size=lambda _: 1)]
    assert sizes[0] == FIRST_WINDOW
    assert max(sizes) == WINDOW
    assert sizes[:-1] == sorted(sizes[:-1])


def test_of_long_lines_fewer_are_held_at_once() -> None:
    windows = in_windows([inputs.WINDOW_CHARACTERS // 2] * 20, size=lambda size: size)
    assert [len(window) for window in windows] == [2] * 10


def lengths(texts: list[str], first: int, progress: Progress) -> list[list[dict[str, Any]]]:
    """Answers each text with its length."""
    return [[{"text": str(len(text))}] for text in texts]


def predict_lengths(given: tuple[str, ...]) -> None:
    options: dict[str, Any] = {"blank": [{"text": ""}], "doing": "counting", "json": False}
    predict_lines(input_lines(given, ()), lengths, check=len, **options)


@pytest.mark.slow
@pytest.mark.parametrize("typed", [False, True], ids=["a file", "standard input"])
def test_ten_times_the_lines_need_no_more_memory_and_stay_in_order(
    typed: bool, tmp_path: Path, monkeypatch: Patch
) -> None:
    file, answers = tmp_path / "lines.txt", tmp_path / "answers.txt"
    peaks = list[int]()
    monkeypatch.setattr(inputs, "WINDOW", 64)
    monkeypatch.setattr(inputs, "_READ", 4096)
    for count in (1_000, 10_000):
        file.write_text("".join(f"{'x' * (number % 90 + 1)}\n" for number in range(count)))
        tracemalloc.start()
        with file.open() as reading, answers.open("w") as out, redirect_stdout(out):
            monkeypatch.setattr(sys, "stdin", reading)
            predict_lengths(() if typed else (str(file),))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        told = answers.read_text().splitlines()
        assert told == [str(number % 90 + 1) for number in range(count)]
    assert peaks[1] < 1.2 * peaks[0]


def echoed(tool: Translator, sources: list[str], how: Decoding) -> Iterator[tuple[int, Any]]:
    return ((row, SimpleNamespace(text=source)) for row, source in enumerate(sources))


@pytest.mark.slow
def test_ten_times_the_pairs_need_no_more_memory_to_be_scored(
    translator: Path, tmp_path: Path, monkeypatch: Patch
) -> None:
    file, model, peaks = tmp_path / "pairs.tsv", load(translator, device="cpu"), list[int]()
    settings = replace(model.recipe.task, data=str(file), source="en", target="fr")
    monkeypatch.setattr(scored_pairs, "WINDOW", 32)
    monkeypatch.setattr(Translator, "translate", echoed)
    monkeypatch.setattr(evaluate, "pairs_loss", lambda *given: (1.0, 1))
    plain, words = evaluate.Comparing(tokenize="13a"), [f"w{number}" for number in range(30)]
    for count in (500, 5_000):
        sides = (" ".join([str(number), *words[: number % 30]]) for number in range(count))
        file.write_text("".join(f"{side}\t{side}\n" for side in sides))
        tracemalloc.start()
        corpus = scored_pairs.scored_pairs(settings, None)
        found = evaluate.evaluate_translations(model.tool, corpus, how=Decoding(), comparing=plain)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert found["sentences"] == count
    assert peaks[1] - peaks[0] < 100 * 4_500, "bytes; a pair that is held takes 300"


def test_a_bad_line_far_down_a_file_stops_before_anything_is_answered(
    tmp_path: Path, capsys: Capture
) -> None:
    file = tmp_path / "lines.txt"
    file.write_bytes(b"fine\n" * 9_000 + b"\xff\n")
    with pytest.raises(DataError, match=r"lines\.txt:9001: not UTF-8.*--skip-bad 1 "):
        predict_lengths((str(file),))
    assert capsys.readouterr().out == ""


class Watched:
    """A tool that sees how many images are prepared and not yet answered."""

    batch = 4

    def __init__(self) -> None:
        self.waiting = self.most = 0

    def prepare(self, image: Any, *, name: str = "") -> Any:
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        return image

    def predict(self, images: list[Any]) -> list[dict[str, Any]]:
        self.waiting -= len(images)
        return [{"text": str(image)} for image in images]


def test_of_many_images_no_more_than_a_batch_is_prepared_at_once(
    tmp_path: Path, capsys: Capture
) -> None:
    for number in range(30):
        (tmp_path / f"{number:02}.png").touch()
    for named in ((str(tmp_path),), (f"{tmp_path}/*.png",)):
        tool = Watched()
        predict_images(tool, named, tool.predict, doing="seeing", json=False)
        names = [line.partition("\t")[0] for line in capsys.readouterr().out.splitlines()]
        assert names == [f"{tmp_path}/{number:02}.png" for number in range(30)]
        assert tool.most == tool.batch


def test_names_on_standard_input_are_taken_as_they_come(monkeypatch: Patch) -> None:
    reading, writing = os.pipe()
    monkeypatch.setattr(sys, "stdin", os.fdopen(reading))
    with os.fdopen(writing, "wb", buffering=0) as keys:
        keys.write(b"a.png\n")
        batches = image_batches(("-",), 4)
        assert [name for name, _ in next(batches)] == ["a.png"]
        keys.write(b"\nb.png\nc.png\nd.png\ne.png\nf.png")
        assert [name for name, _ in next(batches)] == ["b.png", "c.png", "d.png", "e.png"]
    assert [name for name, _ in next(batches)] == ["f.png"]
    sys.stdin.close()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b" \n\n")))
    with pytest.raises(DataError, match="standard input is empty; give an image, or names"):
        next(image_batches(("-",), 4))


def predicting(run: Path, *options: str, **pipes: Any) -> subprocess.Popen[bytes]:
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a shell may have it ignored
    return subprocess.Popen(
        [sys.executable, "-m", "saccade", "predict", str(run), *options, "--beam", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=heard,  # noqa: PLW1509
        **pipes,
    )


@pytest.mark.slow
def test_what_was_answered_before_ctrl_c_is_kept(translator: Path) -> None:
    with predicting(translator, "-", stdin=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(b"the dog eats .\n" * 3)
        child.stdin.flush()
        answers = [child.stdout.readline() for _ in range(3)]  # and standard input is still open
        assert all(answers)
        begun = time.monotonic()
        child.send_signal(signal.SIGINT)
        rest, error = child.communicate(timeout=30)
    assert time.monotonic() - begun < 1.5
    assert (rest, error) == (b"", b"saccade: stopped\n")
    assert child.returncode == 130


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_ends_it_quietly(translator: Path, tmp_path: Path) -> None:
    file = tmp_path / "many.txt"
    file.write_text("the dog eats .\n" * 20_000)
    with predicting(translator, str(file)) as child:
        assert child.stdout is not None
        assert child.stdout.readline()
        child.stdout.close()
        assert child.stderr is not None
        assert child.stderr.read() == b""
        assert child.wait(timeout=30) == 0
