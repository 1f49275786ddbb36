"""`saccade look runs/transformer "we are eating bread" -o look.html`: where a model looked."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import tyro

from saccade.app.api import LanguageModel, TranslationModel, load
from saccade.app.cli.output import busy, say
from saccade.app.look.document import LookSettings, look_document
from saccade.app.look.picture import save_document
from saccade.data.readers import read_texts
from saccade.errors import ConfigError

LONG = 60  # rows that are still printed


def look_command(
    run: tyro.conf.Positional[str],
    text: tyro.conf.Positional[str],
    /,
    *,
    out: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None,
    settings: LookSettings = LookSettings(),  # noqa: B008
    compare: str | None = None,
    zoom: tuple[str, ...] = (),
    device: str = "auto",
) -> None:
    """Show where a model looks: for each word it writes, the words it read it from.

    On the terminal every source word is shaded by its weight; elsewhere the three that weigh most
    are listed. With --out it goes to a file: .html is a page with every layer and head, beams and
    exact zoom, that works without a network; .png and .svg are pictures for papers; .json has the
    numbers.

    Args:
        run: folder of the run.
        text: the sentence to translate, the text that a language model reads, or a file of it.
        out: a .html, .png, .svg or .json file.
        settings: what to look at, and how large a page may become.
        compare: a second run, to be looked at beside the first; needs --out x.html.
        zoom: heads to keep exactly on the page, as decoder.3.self:7; the sharpest by default.
        device: cpu, cuda …; auto takes the fastest there is.
    """
    model = load(run, device=device)
    text = _read(text)
    how = _with_zoom(settings, zoom)
    other = None if compare is None else load(compare, device=device)
    page = out is not None and out.suffix == ".html"
    if other is not None and not page:
        raise ConfigError("--compare is shown on a page; name it with --out x.html")
    if other is None and not (page and isinstance(model, LanguageModel)):
        _print(model, text, how, out)
    if out is not None and page:
        with busy("looking"):
            document = look_document(model, text, how, compare=other)
        _say_written(save_document(document, out))


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
        _say_written(look.save(out))


def _say_written(path: Path) -> None:
    say(f"wrote {path} ({path.stat().st_size / 1e6:.2f} MB)")


def _read(text: str) -> str:
    """A file is read whole: its lines are one text."""
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
