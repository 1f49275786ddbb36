"""Arguments of a command: what tyro makes of them, and its objections in one line."""

import io
import re
from collections.abc import Callable
from contextlib import redirect_stderr
from functools import partial, wraps
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import tyro

from saccade.errors import ConfigError

Output = Annotated[Path | None, tyro.conf.arg(aliases=["-o"], metavar="PATH")]
_Many = tuple[str, ...]
RunArgument = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
RunArguments = Annotated[_Many, tyro.conf.Positional, tyro.conf.arg(metavar="RUN …")]
TextArguments = Annotated[_Many, tyro.conf.Positional, tyro.conf.arg(metavar="TEXT …")]
MixedArguments = Annotated[_Many, tyro.conf.Positional, tyro.conf.arg(metavar="IMAGE|TEXT …")]
ImageArguments = Annotated[_Many, tyro.conf.Positional, tyro.conf.arg(metavar="IMAGE …")]

_RULE = re.compile(r"[─-]{3,}")
_OPTION = re.compile(r"^--\S+")
_NONE = re.compile(r"(?<=[(\s])'None', |, 'None'(?=\))")  # among choices: not to give the option


def parse(target: Callable[..., Any], arguments: list[str], *, prog: str, **more: Any) -> Any:
    """An object with the options put into it; tyro's objections become a ConfigError."""
    objections = io.StringIO()
    try:
        with redirect_stderr(objections):
            return tyro.cli(target, args=arguments, prog=prog, **more)
    except SystemExit as end:
        if not end.code:
            raise
        raise ConfigError(_in_one_line(objections.getvalue(), prog)) from None


def value_of(option: str, arguments: list[str]) -> str:
    """What an option is given, before all are read: the last counts; nothing where it is not."""
    found = ""
    for place, one in enumerate(arguments):
        if one == option:
            found = next(iter(arguments[place + 1 : place + 2]), "")
        elif one.startswith(f"{option}="):
            found = one.partition("=")[2]
    return found


def call(command: Callable[..., None], arguments: list[str], *, prog: str) -> None:
    """Run a command with its options; what it says itself goes where it should."""

    @wraps(command)
    def later(*given: Any, **options: Any) -> Callable[[], None]:
        return partial(command, *given, **options)

    parse(later, arguments, prog=prog, config=(tyro.conf.OmitArgPrefixes,))()


def _in_one_line(box: str, prog: str) -> str:
    """The objection and the options that may have been meant, without frame and help."""
    lines = [line.strip("╭╮╰╯│+| ") for line in box.splitlines()[1:-1]]
    ruled = groupby(lines, key=lambda line: bool(_RULE.fullmatch(line)))
    parts = [list(part) for is_rule, part in ruled if not is_rule]
    said = _NONE.sub("", " ".join(parts[0])).rstrip(".")
    said = said[:1].lower() + said[1:]
    meant = [found[0] for part in parts[1:-1] for line in part if (found := _OPTION.match(line))]
    if meant and said.startswith("unrecognized"):
        said += f"; perhaps you meant {' or '.join(dict.fromkeys(meant[:3]))}"
    return f"{said}; `{prog} --help` lists every option"
