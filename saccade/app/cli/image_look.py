"""`saccade look` at images: each printed and perhaps drawn, or any number of them on a page."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from saccade.app.cli.inputs import is_page, save_look, say_written
from saccade.app.cli.output import busy, counting, tell, tell_drawing
from saccade.app.look.captioning.film import ImageLook
from saccade.app.look.document import LookDocument
from saccade.app.look.draw.figure import save_document
from saccade.app.look.draw.terminal import terminal
from saccade.app.look.settings import Selection, refuse_selection
from saccade.errors import ConfigError
from saccade.tasks.base import Progress

AnySubject = TypeVar("AnySubject")
MakeDocument = Callable[[Progress], LookDocument]


def check_asked(
    split: str | None, rows: int | None, *, named: bool, what: str = "images to look at"
) -> None:
    """Something is named or a split is, and what is of a split only with one."""
    if (split is None) != named:
        raise ConfigError(f"name {what}, or a split of the data with --split test")
    if rows is not None and (split is None or rows < 1):
        raise ConfigError(f"--rows {rows} is of a --split, and at least 1")


def look_at_images(
    subjects: Sequence[AnySubject],
    document: MakeDocument,
    look: Callable[[AnySubject], ImageLook],
    out: Path | None,
    select: Selection,
    *,
    cells: bool,
) -> None:
    """Write the page of all subjects, or look at one after the other."""
    if is_page(out):
        write_page(document, out, select)
        return
    refuse_several(len(subjects), out)
    for subject in subjects:
        with busy("looking"):
            found = look(subject)
        tell(found.caption)
        tell_drawing(found.text(colour=terminal()["colour"]))
        save_look(found.save, out, cells=cells)


def write_page(document: MakeDocument, out: Path, select: Selection) -> None:
    """A page has everything: nothing may be selected of it."""
    refuse_selection(select)
    with counting("looking") as progress:
        made = document(progress)
    say_written(save_document(made, out))


def refuse_several(count: int, out: Path | None, what: str = "image") -> None:
    """All but a page hold one."""
    if out is not None and count > 1:
        raise ConfigError(f"{out.name} holds one {what}; several go on a page, --out x.html")
