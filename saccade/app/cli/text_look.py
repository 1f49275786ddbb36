"""`saccade look` at a text: on the terminal, in a picture file, or on a page."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from saccade.app.cli.inputs import say_written
from saccade.app.cli.output import busy, tell, tell_drawing
from saccade.app.look.document import LookDocument
from saccade.app.look.draw.figure import MatrixLook, save_document
from saccade.app.look.settings import LookSettings
from saccade.errors import ConfigError

LONG = 60  # rows that are still printed


def look_at_text(
    models: list[Any],
    text: str,
    how: LookSettings,
    out: Path | None,
    document: Callable[[list[Any], str, LookSettings], LookDocument],
    *,
    writes: bool = False,
) -> None:
    """The look of one model is printed, a page may hold two. What it `writes` is printed too."""
    compares = len(models) > 1
    page = out is not None and out.suffix == ".html"
    if not compares and (writes or not page):
        with busy("looking"):
            found: MatrixLook = models[0].look(text, how)
        if writes:
            tell(found.caption)
        _print(found, out)
    if out is not None and page:
        with busy("looking"):
            whole = document(models, text, how)
        say_written(save_document(whole, out))


def _print(look: MatrixLook, out: Path | None) -> None:
    if len(look.rows) <= LONG:
        tell_drawing(look.text(colour=sys.stdout.isatty()))
    elif out is None:
        raise ConfigError(f"{len(look.rows)} rows are too many to print; name a file with --out")
    if out is not None and out.suffix != ".html":
        say_written(look.save(out))
