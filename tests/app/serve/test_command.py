"""`saccade serve` as a user starts it: what it refuses, and what it says."""

import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import tyro

from saccade.app.cli.serve import serve_command
from saccade.app.serve.listening import bind
from saccade.errors import ConfigError, RunError
from tests.app.serve.serving import COMMAND

pytestmark = pytest.mark.slow  # waits for deadlines, or starts processes


def run(*arguments: str) -> None:
    tyro.cli(serve_command, args=list(arguments), config=(tyro.conf.OmitArgPrefixes,))


def test_a_run_must_be_named() -> None:
    with pytest.raises(ConfigError, match="name at least one run: saccade serve RUN"):
        run()


def test_a_run_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="there is no run at"):
        run(str(tmp_path / "none"))
    with pytest.raises(RunError, match=r"is not a run: it has no config\.json"):
        run(str(tmp_path))


def test_two_runs_of_one_name_are_refused(runs: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(runs["writer"], tmp_path / "writer")
    with pytest.raises(ConfigError, match="are both called writer; rename one"):
        run(str(runs["writer"]), str(tmp_path / "writer"))


def test_a_port_that_is_taken_is_named(runs: dict[str, Path]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = rf"port {port} of 127\.0\.0\.1 cannot be used: it is in use; .* --port"
        with pytest.raises(ConfigError, match=said):
            run(str(runs["writer"]), "--port", str(port))


@pytest.mark.parametrize(("host", "port"), [("no.such.host.invalid", 80), ("127.0.0.1", 99999)])
def test_an_address_that_cannot_be_is_named(host: str, port: int) -> None:
    with pytest.raises(ConfigError, match=f"{host}|port={port} must be"):
        bind(host, port)


@pytest.mark.parametrize("missing", ["fastapi", "uvicorn", "python_multipart"])
def test_what_is_not_installed_is_named_with_its_cure(missing: str) -> None:
    blocked = f"import sys; sys.modules[{missing!r}] = None\n{COMMAND}"
    done = subprocess.run(
        [sys.executable, "-c", blocked, "x"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    cure = "pip install 'saccade[serve]'"
    assert done.stderr == f"saccade: serving needs {missing}, which is not installed: {cure}\n"


def test_help_explains_every_limit(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run("--help")
    text = " ".join(capsys.readouterr().out.replace("│", " ").split())
    for words in ("--deadline-s FLOAT", "--queue INT", "requests that may wait", "--host STR"):
        assert words in text


@pytest.mark.slow
def test_a_run_that_cannot_be_loaded_ends_in_one_line_for_each(
    runs: dict[str, Path], tmp_path: Path
) -> None:
    for name in ("damaged", "half"):
        shutil.copytree(runs["writer"], tmp_path / name)
    (tmp_path / "damaged" / "model.safetensors").write_bytes(b"nonsense")
    (tmp_path / "half" / "model.safetensors").unlink()
    for given in (["damaged"], ["half"], ["damaged", "half"]):
        paths = [str(tmp_path / name) for name in given]
        command = [sys.executable, "-c", COMMAND, *paths, "--port", "0"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 2
        assert done.stdout == ""
        lines = done.stderr.splitlines()
        assert all(line.startswith("saccade: ") for line in lines)
        assert all("model.safetensors" in line for line in lines[: len(given)])
        assert lines[len(given) :] == [
            "saccade: damaged and half could not be loaded; the lines above say why"
        ] * (len(given) > 1)
