"""`saccade look runs/transformer "we are eating bread" -o look.html`: where a model looked."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import tyro

from saccade.app.api import CaptioningModel, LanguageModel, TranslationModel, load
from saccade.app.cli.look_images import look_at_pictures, pictures_to_look_at, say_written
from saccade.app.cli.output import busy
from saccade.app.look.document import look_document
from saccade.app.look.draw.picture import save_document
from saccade.app.look.settings import LookSettings
from saccade.data.readers import read_texts
from saccade.errors import ConfigError

LONG = 60  # rows that are still printed


def look_command(
    run: tyro.conf.Positional[str],
    text: tyro.conf.Positional[tuple[str, ...]] = (),
    /,
    *,
    out: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None,
    settings: LookSettings = LookSettings(),  # noqa: B008
    compare: str | None = None,
    zoom: tuple[str, ...] = (),
    split: str | None = None,
    rows: int = 10,
    cells: bool = False,
    device: str = "auto",
) -> None:
    """Show where a model looks: for each word it writes, the words or the place it read it from.

    On the terminal every source word is shaded by its weight; elsewhere the three that weigh most
    are listed. With --out it goes to a file: .html is a page with every layer and head, beams and
    exact zoom, that works without a network; .png and .svg are pictures for papers; .json has the
    numbers.

    For a captioner name images. Each word is shown over the picture; a page may hold many, such
    as the first of a split: saccade look RUN --split test --rows 10 -o page.html

    Args:
        run: folder of the run.
        text: the text that is translated or read, or a file of it; for a captioner the images.
        out: a .html, .png, .svg or .json file.
        settings: what to look at, and how large a page may become.
        compare: a second run, to be looked at beside the first; needs --out x.html.
        zoom: heads to keep exactly on the page, as decoder.3.self:7; the sharpest by default.
        split: look at pictures of this split of the captioner's data.
        rows: how many of them.
        cells: in a .png or .svg of a captioner, leave the cells of the maps square.
        device: cpu, cuda …; auto takes the fastest there is.
    """
    model = load(run, device=device)
    how = _with_zoom(settings, zoom)
    other = None if compare is None else load(compare, device=device)
    if isinstance(model, CaptioningModel):
        if zoom:
            raise ConfigError("--zoom is for texts: the page of a captioner has every head in full")
        if other is not None and not isinstance(other, CaptioningModel):
            raise ConfigError(f"{model.name} and {other.name} do different work")
        shown = pictures_to_look_at(model, text, split, rows)
        look_at_pictures(model, shown, how, out, compare=other, cells=cells)
    else:
        _look_at_text(model, other, _read(text), how, out)


def _look_at_text(
    model: TranslationModel | LanguageModel,
    other: TranslationModel | LanguageModel | CaptioningModel | None,
    text: str,
    how: LookSettings,
    out: Path | None,
) -> None:
    page = out is not None and out.suffix == ".html"
    if other is not None and not page:
        raise ConfigError("--compare is shown on a page; name it with --out x.html")
    if other is None and not (page and isinstance(model, LanguageModel)):
        _print(model, text, how, out)
    if out is not None and page:
        with busy("looking"):
            document = look_document(model, text, how, compare=other)
        say_written(save_document(document, out))


def _print(
    model: TranslationModel | LanguageModel, text: str, how: LookSettings, out: Path | None
) -> None:
    """On the terminal, and to a picture if one is wanted."""
    with busy("looking"):
        look = model.look(text, how)
    if isinstance(model, TranslationModel):
        print(look.caption)
    if len(look.rows) <= LONG:
        print(look.text(colour=sys.stdout.isatty()))
    elif out is None:
        raise ConfigError(f"{len(look.rows)} rows are too many to print; name a file with --out")
    if out is not None and out.suffix != ".html":
        say_written(look.save(out))


def _read(given: tuple[str, ...]) -> str:
    """A file is read whole: its lines are one text."""
    if len(given) != 1:
        raise ConfigError(f"give one text to look at, not {len(given)}; put it in quotes")
    (text,) = given
    if len(text) < 256 and Path(text).is_file():
        return "\n".join(read_texts(Path(text), "train").texts)
    return text


def _with_zoom(settings: LookSettings, zoom: tuple[str, ...]) -> LookSettings:
    heads: list[tuple[str, int]] = []
    for one in zoom:
        site, _, head = one.rpartition(":")
        if not site or not head.isdecimal():
            raise ConfigError(f"--zoom {one}: name a site and a head, as decoder.3.self:7")
        heads.append((site, int(head)))
    return replace(settings, zoom=tuple(heads))
