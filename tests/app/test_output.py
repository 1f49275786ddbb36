"""What goes out: whoever wrote it, a terminal obeys none of it, and no encoding stops it."""

import ast
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

import pytest

from saccade.app.cli import main
from saccade.app.cli.output import (
    StandardStream,
    json_list,
    prepare_streams,
    print_json,
    print_scores,
    say,
    show_table,
    tell,
    tell_drawing,
)
from saccade.app.cli.progress import TrainingProgress
from saccade.app.look.draw.terminal import draw_text
from saccade.train.run import Note

Patch = pytest.MonkeyPatch
Capture = pytest.CaptureFixture[str]
APP = Path(__file__).parents[2] / "saccade" / "app"
HOSTILE = "a\x1b[31mb\x07c\x9b2Jd\u202ee\ud800f"
# The door itself; a text is drawn there before it is told; those that have a door of their own.
DOORS = {
    "cli/output.py": "",
    "look/draw/terminal.py": "",
    "cli/listing.py": "",  # words of our own
    "cli/progress.py": "printable(",
    "serve/http/logs.py": "printable(",
}


class Terminal(io.StringIO):
    """It says that it is one."""

    def isatty(self) -> bool:
        return True


def printing(path: Path) -> bool:
    """Whether a file prints by itself."""
    calls = (one.func for one in ast.walk(ast.parse(path.read_text())) if isinstance(one, ast.Call))
    return any(
        (isinstance(one, ast.Name) and one.id == "print")
        or (isinstance(one, ast.Attribute) and one.attr == "print")
        for one in calls
    )


def test_there_is_one_door_for_all_that_is_printed() -> None:
    found = {str(path.relative_to(APP)) for path in APP.rglob("*.py") if printing(path)}
    assert found <= set(DOORS)
    for name, guard in DOORS.items():
        assert guard in (APP / name).read_text()


def test_no_terminal_obeys_what_others_wrote(monkeypatch: Patch, capsys: Capture) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    tell(HOSTILE, "name\tof two")
    tell_drawing(draw_text([HOSTILE], [HOSTILE], [[0.5]], colour=True))
    print_json({HOSTILE: [HOSTILE]})
    print_scores({"split": HOSTILE, "by": {HOSTILE: 1.0}, "note": ["[/red] [bold]"]})
    show_table([(HOSTILE, "1")], head=("x", "y"))
    say(HOSTILE)
    shown = terminal.getvalue() + capsys.readouterr().err
    for mark in ("\x1b[31m", "\x07", "\x9b", "\u202e", "\ud800"):
        assert mark not in shown
    assert "name\tof two" in shown
    assert "[/red] [bold]" in shown


def test_a_pipe_gets_the_very_text(capsys: Capture) -> None:
    tell("\u200fa\xad", "b")  # a mark of direction, a soft hyphen
    assert capsys.readouterr().out == "\u200fa\xad\tb\n"


@pytest.mark.parametrize("values", [[], [1], [{"a": "é"}, "\u202e", None]])
def test_a_list_told_value_by_value_is_the_same_json(values: list[object], capsys: Capture) -> None:
    with json_list() as add:
        for value in values:
            add(value)
    alone = capsys.readouterr().out
    print_json(values)
    assert alone == capsys.readouterr().out
    assert json.loads(alone) == values


def test_json_has_no_number_that_json_lacks(capsys: Capture) -> None:
    print_json({"score": float("-inf"), "all": [float("nan"), 1.5, (2, float("inf"))]})
    assert json.loads(capsys.readouterr().out) == {"score": None, "all": [None, 1.5, [2, None]]}


def test_a_long_cell_is_whole_where_nobody_looks(capsys: Capture) -> None:
    print_scores({"signature": "x" * 300})
    assert "x" * 300 in capsys.readouterr().out


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_an_encoding_without_the_mark_is_no_error(
    encoding: str, translator: Path, monkeypatch: Patch
) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding=encoding))
    monkeypatch.setattr(sys, "argv", ["saccade", "look", str(translator), "The dog → eats."])
    with pytest.raises(SystemExit) as end:
        main()
    sys.stdout.flush()
    assert end.value.code == 0
    assert ("←" if encoding == "utf-8" else "\\u2190") in raw.getvalue().decode(encoding)


def test_json_in_an_encoding_that_lacks_a_mark_is_the_same_json(monkeypatch: Patch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    prepare_streams()
    print_json({"é": "𝒳 →"})
    sys.stdout.flush()
    assert json.loads(raw.getvalue()) == {"é": "𝒳 →"}


@contextmanager
def in_place(stream: TextIO, name: str, monkeypatch: Patch) -> Generator[None]:
    """As if this process had been started with it."""
    with monkeypatch.context() as patch:
        for one in (name, f"__{name}__"):
            patch.setattr(sys, one, stream)
        yield
    with suppress(OSError):
        stream.close()


@pytest.mark.parametrize("asked", [["--help"], ["train", "--help"], ["train", "gpt", "--help"]])
def test_results_that_find_no_room_are_an_error_in_one_line(
    asked: list[str], monkeypatch: Patch, capsys: Capture
) -> None:
    monkeypatch.setattr(sys, "argv", ["saccade", *asked])
    with in_place(Path("/dev/full").open("w"), "stdout", monkeypatch):
        with pytest.raises(SystemExit) as ended:
            main()
        sys.stdout.flush()  # as Python does at its end: nothing is left to complain about
    assert ended.value.code == 1
    assert capsys.readouterr().err == (
        "saccade: cannot write to standard output: No space left on device; make room there, or "
        "send it somewhere else\n"
    )


@pytest.mark.parametrize("gone", [False, True], ids=["full", "reader gone"])
def test_a_log_that_cannot_be_written_stops_no_work(
    gone: bool, monkeypatch: Patch, capsys: Capture
) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    stream = os.fdopen(writes, "w") if gone else Path("/dev/full").open("w")  # noqa: SIM115
    with in_place(stream, "stderr", monkeypatch):
        prepare_streams()
        for _ in range(3):
            say("going on")
            TrainingProgress(3)(Note("going on"))
    tell("a result")
    assert capsys.readouterr().out == "a result\n"


def test_whoever_wants_nothing_held_back_has_it_at_once() -> None:
    code = "from saccade.app.cli.output import prepare_streams; import os; prepare_streams()\n"
    code += "print('heard'); os._exit(0)"
    command = [sys.executable, "-u", "-c", code]
    assert subprocess.run(command, capture_output=True, check=True).stdout == b"heard\n"


class SignalledError(Exception):
    """What a signal's handler raises."""


def test_a_signal_that_comes_while_a_line_is_written_does_not_write_it_twice(
    tmp_path: Path,
) -> None:
    """At whatever instant it comes; a line that was not begun may be missing."""

    def heard(*_: object) -> None:
        raise SignalledError

    before = signal.signal(signal.SIGALRM, heard)
    with (tmp_path / "lines").open("wb") as file:
        stream = io.TextIOWrapper(StandardStream(file.fileno(), results=True))
        for number in range(5000):
            with suppress(SignalledError):  # one to each line
                signal.setitimer(signal.ITIMER_REAL, 1e-6 * (1 + number % 60))
                stream.write(f"{number}\n")  # print writes a line and its end one by one
                stream.flush()
                signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        stream.close()
    numbers = [int(line) for line in (tmp_path / "lines").read_text().splitlines()]
    assert len(numbers) > 100
    assert len(set(numbers)) == len(numbers), "written twice"
    assert numbers == sorted(numbers)
