"""`saccade look` for captioners: where they looked on pictures, one or many."""

import sys
from pathlib import Path

from saccade.app.api import CaptioningModel
from saccade.app.cli.output import busy, say
from saccade.app.look.captioning.document import caption_document, caption_look
from saccade.app.look.captioning.images import Shown, shown_split
from saccade.app.look.draw.picture import save_document
from saccade.app.look.settings import LookSettings
from saccade.errors import ConfigError
from saccade.tasks.captioning.data import read_captioned


def pictures_to_look_at(
    model: CaptioningModel, files: tuple[str, ...], split: str | None, rows: int
) -> list[Shown]:
    """The images that were named, or the first ones of a split."""
    if split is not None and files:
        raise ConfigError("name images or a --split, not both")
    if split is not None:
        told = read_captioned(model.tool.settings, split)
        return shown_split(told, rows, model.tool, split)
    if not files:
        raise ConfigError("name an image to look at, or a split of the data with --split test")
    return [Shown.of(file, model.tool) for file in files]


def look_at_pictures(
    model: CaptioningModel,
    shown: list[Shown],
    how: LookSettings,
    out: Path | None,
    *,
    compare: CaptioningModel | None,
    cells: bool,
) -> None:
    """On a page, in a picture, or in words."""
    if out is not None and out.suffix == ".html":
        with busy("looking"):
            lookers = [model] if compare is None else [model, compare]
            document = caption_document(list(lookers), shown, how)
        if compare is None:
            for look in document["looks"]:
                if look["label"] == "best":
                    print(look["text"])
        say_written(save_document(document, out))
        return
    if compare is not None:
        raise ConfigError("--compare is shown on a page; name it with --out x.html")
    if out is not None and len(shown) > 1:
        raise ConfigError(f"{out.name} holds one picture; several go on a page, --out x.html")
    for one in shown:
        _print(model, one, how, out, cells=cells)


def _print(
    model: CaptioningModel, shown: Shown, how: LookSettings, out: Path | None, *, cells: bool
) -> None:
    with busy("looking"):
        picture = shown.seen_by(model.tool)
        (prediction,) = model.predict(
            [picture], look=model.tool.looks, beam=how.beam, length_penalty=how.length_penalty
        )
    print(prediction.text)
    if not model.tool.looks:
        raise ConfigError(
            f"{model.name} saw the picture once, as a whole: it has no attention to look at"
        )
    look = caption_look(model, prediction, how, shown=shown)
    print(look.text(colour=sys.stdout.isatty()))
    if out is not None:
        say_written(look.save(out, cells=cells))


def say_written(path: Path) -> None:
    """What was made, and how large it is."""
    say(f"wrote {path} ({path.stat().st_size / 1e6:.2f} MB)")
