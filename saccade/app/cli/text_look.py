"""`saccade look` at a text: on the terminal, in a picture file, or on a page."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from saccade.app.cli.inputs import is_page, save_look, say_written
from saccade.app.cli.output import busy, tell, tell_drawing
from saccade.app.look.document import LookDocument
from saccade.app.look.draw.figure import MatrixLook, save_document
from saccade.app.look.draw.terminal import terminal
from saccade.app.look.settings import LookSettings, Selection, refuse_selection

LONG = 60  # rows that are still printed


def look_at_text(
    models: list[Any],
    text: str,
    how: LookSettings,
    out: Path | None,
    document: Callable[[list[Any], str, LookSettings], LookDocument],
    select: Selection,
    *,
    writes: bool = False,
    **options: Any,
) -> None:
    """The look of one model is printed, a page may hold two. What it `writes` is printed too.

    `options` are those of the model's own `look`.
    """
    compares = len(models) > 1
    prints = not compares and (writes or not is_page(out))
    if not prints:
        refuse_selection(select)
    if prints:
        with busy("looking"):
            most = None if out is not None else LONG
            chosen = vars(select) | {"most_rows": most} | options
            found: MatrixLook = models[0].look(text, how, **chosen)
        if writes:
            tell(found.caption)
        if len(found.rows) <= LONG:
            tell_drawing(found.text(**terminal()))
        if not is_page(out):
            save_look(found.save, out)
    if is_page(out):
        with busy("looking"):
            whole = document(models, text, how)
        say_written(save_document(whole, out))
