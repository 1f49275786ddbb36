"""Every command's help, as the program prints it."""

import io
import os
import re
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from unittest.mock import patch

from saccade.app.cli import COMMANDS, _started, usage
from saccade.app.cli.bench import BENCHES
from saccade.app.cli.options import call
from saccade.app.kinds import HOMES, kind_named
from saccade.app.kinds.base import Kind

COLUMNS = "96"
VERBS: dict[str, Callable[[Kind], Callable[..., None]]] = {
    "predict": lambda kind: kind.predict,
    "eval": lambda kind: kind.evaluate,
    "look": lambda kind: kind.look,
}
# A recipe for each kind of work: the options of training are those of its model and its task.
TRAINED = {
    "translation": "transformer",
    "language": "gpt",
    "captioning": "show-attend-tell",
    "classification": "vit",
    "detection": "detr",
    "masked": "bert",
    "understanding": "bert-classify",
    "text-to-image": "dalle",
}
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def command_line_markdown() -> str:
    """A section for each command; where options follow from the kind of work, one for each kind."""
    return "\n\n".join([f"```text\n{usage()}\n```", *map(_command, COMMANDS)])


def _command(name: str) -> str:
    parts = [f"## saccade {name}", f"{COMMANDS[name].about[0].upper()}{COMMANDS[name].about[1:]}."]
    parts += [_block(lambda: _started([name, "--help"]))]
    if name in VERBS:
        parts += [_of_kind(name, kind) for kind in HOMES]
    if name == "train":
        parts += [
            _folded(f"saccade train {one}", lambda one=one: _started(["train", one, "--help"]))
            for one in TRAINED.values()
        ]
    if name == "bench":
        parts += [
            _folded(f"saccade bench {one}", lambda one=one: _started(["bench", one, "--help"]))
            for one in BENCHES
        ]
    return "\n\n".join(parts)


def _of_kind(verb: str, kind: str) -> str:
    command = VERBS[verb](kind_named(kind))
    return _folded(
        f"saccade {verb}, {kind}", lambda: call(command, ["--help"], prog=f"saccade {verb}")
    )


def _folded(title: str, command: Callable[[], object]) -> str:
    return f"<details>\n<summary>{title}</summary>\n\n{_block(command)}\n\n</details>"


def _block(command: Callable[[], object]) -> str:
    return f"~~~~text\n{help_text(command)}\n~~~~"


def help_text(command: Callable[[], object]) -> str:
    """What it prints."""
    printed = io.StringIO()
    size = {"COLUMNS": COLUMNS, "TERM": "dumb", "NO_COLOR": "1"}
    with patch.dict(os.environ, size), redirect_stdout(printed), suppress(SystemExit):
        command()
    return _COLOUR.sub("", printed.getvalue()).rstrip()
