"""The command line: a literal dict of commands, and one place where errors become one line."""

import os
import signal
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from types import FrameType
from typing import Any, NamedTuple

from saccade.errors import SaccadeError

STOPPED = 130  # what a shell says of a program that Ctrl-C ended


class Command(NamedTuple):
    """What is printed about a command, and where it lives; it is imported when it is asked for."""

    given: str
    about: str
    home: str
    parses: bool = False  # its arguments itself: its options depend on the first of them


COMMANDS = {
    "train": Command(
        "RECIPE",
        "train a recipe, or go on with a run that was stopped",
        "saccade.app.cli.train:train_command",
        parses=True,
    ),
    "eval": Command("RUN", "scores on held-out data", "saccade.app.cli.of_run:evaluate", True),
    "predict": Command(
        "RUN …",
        "translate, go on writing, or say what is on images",
        "saccade.app.cli.of_run:predict",
        parses=True,
    ),
    "look": Command(
        "RUN …",
        "where the model looked for each word: in a text, or on images",
        "saccade.app.cli.of_run:look",
        parses=True,
    ),
    "export": Command(
        "RUN", "the model for CTranslate2 or ONNX", "saccade.app.cli.export:export_command"
    ),
    "serve": Command(
        "RUN …",
        "the page and an HTTP interface, on this machine",
        "saccade.app.cli.serve:serve_command",
    ),
    "demo": Command(
        "", "all of it on the built-in corpus, in minutes", "saccade.app.cli.demo:demo_command"
    ),
    "list": Command(
        "",
        "every recipe: what it is, its lecture, its size",
        "saccade.app.cli.listing:list_command",
    ),
    "describe": Command(
        "NAME",
        "settings and size of a recipe or a model preset",
        "saccade.app.cli.listing:describe_command",
    ),
    "bench": Command(
        "WHAT",
        "what training, decoding and looking cost beside other programs, in one run",
        "saccade.app.cli.bench:bench_command",
        parses=True,
    ),
}


def usage() -> str:
    """What `saccade` alone prints."""
    lines = [f"  {f'{name} {one.given}':<16} {one.about}" for name, one in COMMANDS.items()]
    return "\n".join(
        [
            "usage: saccade COMMAND …",
            "",
            "Train attention models on your own data, use them, and see where they look.",
            "",
            *lines,
            "",
            "`saccade COMMAND --help` tells more.",
        ]
    )


def _run(name: str, arguments: list[str]) -> int:
    with interrupted_at_once():
        module, _, function = COMMANDS[name].home.partition(":")
        command: Any = vars(import_module(module))[function]
        from saccade.app.cli.options import call
    if COMMANDS[name].parses:
        return command(arguments)
    call(command, arguments, prog=f"saccade {name}")
    return 0


def main() -> None:
    """What the `saccade` command runs."""
    with interrupted_at_once():
        from saccade.app.cli.output import prepare_streams, show_help

    prepare_streams()
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        show_help(usage())
        sys.exit(0 if arguments else 2)
    if arguments[0] == "--version":
        from saccade import __version__

        show_help(f"saccade {__version__}")
        sys.exit(0)
    name, *rest = arguments
    if name not in COMMANDS:
        _fail(f"there is no command {name!r}; there are: {', '.join(COMMANDS)}", 2)
    try:
        sys.exit(_run(name, rest))
    except SaccadeError as error:
        _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # we are going
        _fail("stopped", STOPPED)
    except (MemoryError, RuntimeError) as error:
        if not _lacks_memory(error):
            raise
        reason = str(error).partition("\n")[0][:200]
        _fail(f"out of memory ({reason}); take a smaller model, batch or beam", 1)
    except BrokenPipeError:  # the reader of our output has gone, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


def _lacks_memory(error: Exception) -> bool:
    """Whether Python, torch on a CPU, or torch on a GPU found no room."""
    told = ("can't allocate memory", "not enough memory", "out of memory")
    return isinstance(error, MemoryError) or any(one in str(error) for one in told)


@contextmanager
def interrupted_at_once() -> Generator[None, None, None]:
    """Ctrl-C while libraries are imported: some of them swallow it, and nothing is lost by it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, frame: FrameType | None) -> None:
        os.write(2, b"saccade: stopped\n")
        os._exit(STOPPED)

    before = signal.signal(signal.SIGINT, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _fail(message: str, code: int) -> None:
    from saccade.app.cli.output import fail

    fail(message)
    sys.exit(code)
