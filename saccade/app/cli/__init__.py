"""The command line: a literal dict of commands, and one place where errors become one line."""

import errno
import os
import sys
import time
from contextlib import suppress
from importlib import import_module
from typing import Any, NamedTuple

from saccade.errors import ConfigError, SaccadeError, out_of_memory, perhaps
from saccade.printable import printable
from saccade.train.stopping import Stopped, StopRequest, leave, obey_within_a_second

_WAYS_OUT = {
    errno.EACCES: "ask whom it belongs to, or name another place",
    errno.ENAMETOOLONG: "check the path",
}


class Command(NamedTuple):
    """What is printed about a command, and where it lives; it is imported when it is asked for."""

    given: str
    about: str
    home: str
    parses: bool = False  # its arguments itself: its options depend on the first of them


COMMANDS = {
    "train": Command(
        "RECIPE",
        "train a recipe or a model preset, or go on with a run that was stopped",
        "saccade.app.cli.train:train_command",
        parses=True,
    ),
    "eval": Command("RUN", "scores on held-out data", "saccade.app.cli.of_run:evaluate", True),
    "compare": Command(
        "RUN …",
        "finished runs beside one another: what each cost, and how well it does",
        "saccade.app.cli.compare:compare_command",
    ),
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
        "RUN",
        "the model for CTranslate2, ONNX, transformers or timm",
        "saccade.app.cli.export:export_command",
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
        "settings and size of a recipe or a model preset; how far a run has come",
        "saccade.app.cli.listing:describe_command",
    ),
    "plan": Command(
        "RECIPE",
        "what training would cost: memory, updates, hours, disk",
        "saccade.app.cli.plan:plan_command",
        parses=True,
    ),
    "figures": Command(
        "C1 … C14",
        "the lectures' claims, each measured and drawn; all of them with `all`",
        "saccade.app.cli.figures:figures_command",
    ),
    "bench": Command(
        "WHAT",
        "what training, decoding and looking cost beside other programs, in one run",
        "saccade.app.cli.bench:bench_command",
        parses=True,
    ),
}


# What takes less memory.
LESS_INPUT = "give fewer or shorter texts, or smaller images, at once, or lower --beam"
LESS = {
    "train": "lower --train.batch-tokens and raise --train.accumulate, or lower --model.width",
    "export": "export where there is more, or from a smaller model",
    "bench": "lower the sizes that it compares",
}

FIRST_SPEAKS = 5.0  # seconds for the first of many processes to fail as well


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
    from saccade.app.cli.options import call

    module, _, function = COMMANDS[name].home.partition(":")
    command: Any = vars(import_module(module))[function]
    if COMMANDS[name].parses:
        return command(arguments)
    call(command, arguments, prog=f"saccade {name}")
    return 0


def main() -> None:
    """What the `saccade` command runs."""
    with obey_within_a_second() as request:
        _run_or_fail(sys.argv[1:], request)


def _started(arguments: list[str]) -> int:
    """Do what was asked for; the exit code."""
    from saccade.app.cli.output import prepare_streams, show_help

    prepare_streams()
    if not arguments or arguments[0] in ("-h", "--help"):
        show_help(usage())
        return 0 if arguments else 2
    if arguments[0] == "--version":
        from saccade import __version__

        show_help(f"saccade {__version__}")
        return 0
    name, *rest = arguments
    if name not in COMMANDS:
        near = perhaps(name, COMMANDS)
        raise ConfigError(f"there is no command {name!r}{near}; there are: {', '.join(COMMANDS)}")
    return _run(name, rest)


def _finished(arguments: list[str]) -> str | int | None:
    """The same, with all that was told written out: a full disk is still an error here."""
    try:
        code = _started(arguments)
    except SystemExit as ended:  # help was asked for
        code = ended.code
    if sys.stdout is not None:  # pyright: ignore[reportUnnecessaryComparison] # closed: `>&-`
        sys.stdout.flush()
    return code


def _stopped(request: StopRequest, number: int) -> None:
    if not request.told:
        from saccade.app.cli.output import fail  # slow: meanwhile the other thread may say it

        request.told = True
        fail("stopped")
    with suppress(OSError):
        sys.stdout.flush()
    leave(number)


def _run_or_fail(arguments: list[str], request: StopRequest) -> None:
    request.told = os.environ.get("RANK", "0") != "0"  # the first process of many says it
    try:
        sys.exit(_finished(arguments))
    except SaccadeError as error:
        _fail(str(error), error.exit_code)
    except Stopped as stopped:
        _stopped(request, stopped.signal)
    except ImportError:  # a library that swallowed the signal while it was imported
        if not request.signal:
            raise
        _stopped(request, request.signal)
    except KeyboardInterrupt:
        _fail("stopped", 130)
    except BrokenPipeError:  # the reader of our output has gone, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except (MemoryError, RuntimeError, OSError) as error:
        if isinstance(error, OSError) and error.errno in _WAYS_OUT and error.filename:
            _fail(_refused(error), 2)
        if not out_of_memory(error):
            raise
        told = str(error).strip().partition("\n")[0][:200]
        less = LESS.get(arguments[0], LESS_INPUT)
        _fail(f"out of memory ({told or 'none is left'}); {less}", 1)


def _refused(error: OSError) -> str:
    """What the system says of a path, wherever in a command it was touched first."""
    return f"{printable(error.filename)}: {error.strerror}; {_WAYS_OUT[error.errno or 0]}"


def _fail(message: str, code: int) -> None:
    """Say it once: of the processes that torchrun has started here, the first says what all have.

    torchrun then ends the others; one that is not ended is alone with its error, and says it.
    """
    from saccade.app.cli.output import fail

    with suppress(Stopped):
        if os.environ.get("LOCAL_RANK", "0") != "0":
            time.sleep(FIRST_SPEAKS)
        fail(message)
    sys.exit(code)
