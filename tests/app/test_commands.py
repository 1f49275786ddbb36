"""Commands that use a run: their options, what they read, when they answer, how they stop."""

import ast
import inspect
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

import saccade
from saccade.app.cli import main
from saccade.app.cli.bench import BENCHES
from saccade.app.cli.inputs import file_named
from saccade.app.kinds import HOMES, kind_named
from saccade.errors import DataError
from tests.app.drawer_runs import drawer_run

Patch = pytest.MonkeyPatch
Capture = pytest.CaptureFixture[str]
LINES = ["The dog eats.", "She sleeps.", "A very old house is white.", "The dog eats."]


def run(arguments: list[str], monkeypatch: Patch) -> int:
    monkeypatch.setattr(sys, "argv", ["saccade", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


def without_help(page: str) -> list[str]:
    """The options of a help page of which nothing is said before their default."""
    entries: list[str] = []
    for line in page.partition("show this help message")[2].splitlines():
        words = " ".join(line.strip("╭╮╰╯│─ ").split())
        if re.match("--?[a-z]", words):
            entries.append(words)
        elif entries:
            entries[-1] += f" {words}"
    assert entries
    return [one for one in entries if not re.search(r"\. \((default|required|repeatable)", one)]


def help_of(monkeypatch: Patch, capsys: Capture, *arguments: str) -> str:
    monkeypatch.setenv("COLUMNS", "200")
    assert run([*arguments, "--help"], monkeypatch) == 0
    return capsys.readouterr().out


RUNS = (
    "translator",
    "writer",
    "filler",
    "understander",
    "captioner",
    "classifier",
    "detector",
    "matcher",
    "tokenizer_of_images",
)


@pytest.fixture(scope="module")
def every_run(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> list[Path]:
    """Of every kind of work one."""
    joint: dict[str, Path] = request.getfixturevalue("joint")
    drawer = drawer_run(tmp_path_factory.mktemp("drawn") / "dalle")
    return [*map(request.getfixturevalue, RUNS), *joint.values(), drawer]


@pytest.mark.slow
@pytest.mark.parametrize("command", ["predict", "eval", "look"])
def test_every_option_of_every_kind_has_a_help_text(
    command: str, every_run: list[Path], monkeypatch: Patch, capsys: Capture
) -> None:
    for folder in every_run:
        assert without_help(help_of(monkeypatch, capsys, command, str(folder))) == [], folder


def test_every_option_of_the_other_commands_has_a_help_text(
    monkeypatch: Patch, capsys: Capture
) -> None:
    for command in (["export"], ["serve"], *(["bench", name] for name in BENCHES)):
        assert without_help(help_of(monkeypatch, capsys, *command)) == [], command


def advised(path: Path) -> set[str]:
    """The options that messages of a file name: its strings but for docstrings."""
    tree = ast.parse(path.read_text())
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docs = {
        ast.get_docstring(one, clean=False) for one in ast.walk(tree) if isinstance(one, documented)
    }
    texts = (one.value for one in ast.walk(tree) if isinstance(one, ast.Constant))
    strings = (text for text in texts if isinstance(text, str) and text not in docs)
    return {name for text in strings for name in re.findall(r"(?<!\S)--[a-z][\w.-]*\w", text)}


TRAINED = (  # a recipe of each kind, and of the user's data where these ask for more
    "transformer",
    "gpt",
    "show-attend-tell-photos",
    "vit",
    "detr",
    "bert",
    "bert-classify",
    "vilbert",
    "vilbert-questions",
    "vilbert-retrieval",
    "vilbert-referring",
    "vilbert-choices",
    "clip",
    "dvae",
    "dalle",
)


@pytest.mark.slow
def test_every_option_that_a_message_names_is_there(
    every_run: list[Path], monkeypatch: Patch, capsys: Capture
) -> None:
    runs = [str(folder) for folder in every_run]
    commands = [[name, run] for name in ("predict", "eval", "look") for run in runs]
    commands += [["train", name] for name in TRAINED]
    commands += [["export"], ["serve"], ["describe"], ["demo"], ["compare"], ["figures"]]
    commands += [["plan", "transformer"]]
    pages = (help_of(monkeypatch, capsys, *command) for command in commands)
    known = {name for page in pages for name in re.findall(r"--[a-z][\w.-]*\w", page)}
    root = Path(saccade.__file__).parent
    files = [path for path in root.rglob("*.py") if "bench" not in path.parts]
    named = {name: path.name for path in files for name in advised(path)}
    others = {"--help", "--version", "--nproc-per-node", "--max-restarts"}  # two of torchrun
    assert {name: named[name] for name in set(named) - known - others} == {}


def test_every_argument_of_a_kind_is_named_in_its_docstring() -> None:
    for name in HOMES:
        kind = kind_named(name)
        for command in (kind.predict, kind.evaluate, kind.look):
            documented = set(re.findall(r"^ +(\w+):", inspect.getdoc(command) or "", re.MULTILINE))
            assert set(inspect.signature(command).parameters) <= documented


@pytest.mark.parametrize(
    "text",
    [
        "The dog.",
        "e.g.",
        "U.S",
        "and / or",
        "a b.txt",
        "我" * 60,
        "x" * 5000,
        "a\0b",
        "3.14",
        "ok.",
    ],
)
def test_a_sentence_is_no_file(text: str) -> None:
    assert file_named(text) is None


@pytest.mark.parametrize("text", ["x.txt", "x.tar.gz", "train.en", "a/b", "/", "..", "我.jsonl"])
def test_what_looks_like_a_path_must_be_a_file(text: str) -> None:
    with pytest.raises(DataError, match="give it as text: --text "):
        file_named(text)


def test_a_blank_line_gives_a_blank_line(
    translator: Path, monkeypatch: Patch, capsys: Capture, tmp_path: Path
) -> None:
    file = tmp_path / "lines.txt"
    file.write_bytes(b"The dog eats.\n\n \nShe sleeps.\n\xff\n")
    arguments = ["predict", str(translator), str(file), "--skip-bad", "1"]
    assert run([*arguments, "--n-best", "2"], monkeypatch) == 0
    lines = capsys.readouterr().out.split("\n")
    assert [bool(line) for line in lines[:-1:2]] == [True, False, False, True, False]
    assert run([*arguments, "--json"], monkeypatch) == 0
    sources = [row["source"] for row in json.loads(capsys.readouterr().out)]
    assert sources == ["The dog eats.", "", "", "She sleeps.", ""]


class Typing:
    """Standard input and output of someone who types a line when the last is answered."""

    def __init__(self, monkeypatch: Patch, lines: list[str]) -> None:
        reading, writing = os.pipe()
        self.answers: list[str] = []
        self._answered = threading.Semaphore(0)
        self.reading = os.fdopen(reading, encoding="utf-8")
        monkeypatch.setattr(sys, "stdin", self.reading)
        monkeypatch.setattr(sys, "stdout", self)
        self.encoding = "utf-8"
        threading.Thread(target=self._type, args=(writing, lines), daemon=True).start()

    def _type(self, writing: int, lines: list[str]) -> None:
        with os.fdopen(writing, "wb", buffering=0) as keys:
            for line in lines:
                keys.write(f"{line}\n".encode())
                assert self._answered.acquire(timeout=60)

    def write(self, text: str) -> int:
        for _ in range(text.count("\n")):
            self._answered.release()
        self.answers.append(text)
        return len(text)

    def flush(self) -> None: ...

    def isatty(self) -> bool:
        return False


@pytest.mark.parametrize("how", [["--beam", "2"], ["--sample", "--seed", "3"]])
def test_each_line_is_answered_before_the_next_is_typed_with_the_same_text(
    how: list[str], translator: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    assert run(["predict", str(translator), *LINES, *how], monkeypatch) == 0
    together = capsys.readouterr().out
    with monkeypatch.context() as patch:
        typing = Typing(patch, LINES)
        assert run(["predict", str(translator), *how], patch) == 0
        typing.reading.close()
    assert "".join(typing.answers) == together


def test_a_mistake_in_the_options_is_found_before_anything_is_loaded(
    translator: Path, monkeypatch: Patch, capsys: Capture, tmp_path: Path
) -> None:
    def load(*given: Any, **more: Any) -> None:
        raise AssertionError

    for home in ("kinds.translation.kind", "api"):
        monkeypatch.setattr(f"saccade.app.{home}.load", load)
    for arguments in (
        ["look", str(translator), "hi", "-o", "x.pdf"],
        ["look", str(translator), "hi", "-o", str(tmp_path / "no" / "x.png")],
        ["look", str(translator), "hi", "--compare", str(translator)],
        ["look", str(translator), "no.txt"],
        ["predict", str(translator), "no.txt"],
        ["predict", str(translator), "hi", "--temperature", "2"],
        ["eval", str(translator), "--beam", "0"],
    ):
        assert run(arguments, monkeypatch) in (1, 2)
        assert len(capsys.readouterr().err.splitlines()) == 1


def interrupt(*given: Any, **more: Any) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("command", ["predict", "eval", "look", "export"])
def test_ctrl_c_is_one_line_and_exit_code_130(
    command: str, translator: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    before = signal.getsignal(signal.SIGINT)
    homes = dict.fromkeys(("predict", "eval"), "kinds.translation.kind.load")
    homes |= {"look": "kinds.text_looks.load_alike", "export": "cli.export.export_run"}
    monkeypatch.setattr(f"saccade.app.{homes[command]}", interrupt)
    more = {"predict": ["hi"], "look": ["hi"], "export": ["--to", "onnx"]}
    try:
        assert run([command, str(translator), *more.get(command, [])], monkeypatch) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr().err == "saccade: stopped\n"


def test_no_memory_is_one_line_and_exit_code_1(
    translator: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    def huge(*given: Any, **more: Any) -> None:
        torch.empty(1 << 60, dtype=torch.uint8)

    monkeypatch.setattr("saccade.app.kinds.translation.kind.load", huge)
    assert run(["predict", str(translator), "hi"], monkeypatch) == 1
    error = capsys.readouterr().err
    assert error.startswith("saccade: out of memory (")
    assert len(error.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0.3, 1.0, 2.0])
def test_ctrl_c_is_obeyed_while_libraries_are_imported(delay: float, translator: Path) -> None:
    command = [sys.executable, "-m", "saccade", "predict", str(translator)]
    pipe: dict[str, Any] = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a shell may have it ignored
    with subprocess.Popen(command, **pipe, preexec_fn=heard) as child:  # noqa: PLW1509
        time.sleep(delay)
        child.send_signal(signal.SIGINT)
        _, error = child.communicate(timeout=30)
    assert b"Traceback" not in error
    assert child.returncode in (130, -signal.SIGINT)  # the latter before we are even there


def test_standard_input_of_any_bytes_is_answered_or_refused_in_one_line(
    translator: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    def check(typed: bytes) -> int:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(typed)))
        return run(["predict", str(translator), "--beam", "1"], monkeypatch)

    assert check(b"") == 0
    assert capsys.readouterr().out == ""
    assert check(b"\xef\xbb\xbfhi\r\nthere") == 0  # a byte order mark, and no last line end
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert check(b"x" * 1_100_000 + b"\nhi\n") == 2
    assert "standard input:1: too long" in capsys.readouterr().err
