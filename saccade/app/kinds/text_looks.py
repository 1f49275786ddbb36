"""`saccade look` for kinds whose words look at words."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from saccade.app.cli.inputs import check_out, one_text, with_zoom
from saccade.app.cli.options import Output
from saccade.app.cli.text_look import look_at_text
from saccade.app.kinds.base import check_zoom, load_alike
from saccade.app.look.document import LookDocument
from saccade.app.look.settings import LookSettings, Selection


@dataclass(frozen=True, kw_only=True)
class TextLookOptions:
    """What is looked at, and where that goes.

    Args:
        text: a text that is no file, whatever it looks like.
        out: a .html, .png, .svg or .json file.
        settings: what to look at, and how large a page may become.
        select: which weights are printed or drawn.
        compare: a second run, to be looked at beside the first; needs --out x.html.
        zoom: heads to keep exactly on the page, as SITE:7 (decoder.3.self:7); the sharpest by
            default.
        skip_bad: this many lines of a file that are no text are left out; one more stops.
        device: cpu, cuda …; auto takes the fastest there is.
    """

    text: tuple[str, ...] = ()
    out: Output = None
    settings: LookSettings = field(default_factory=LookSettings)
    select: Selection = field(default_factory=Selection)
    compare: str | None = None
    zoom: tuple[str, ...] = ()
    skip_bad: int = 0
    device: str = "auto"


def look_at_words(
    run: str,
    texts: tuple[str, ...],
    asked: TextLookOptions,
    *,
    check: Callable[[str, LookSettings], None],
    document: Callable[[list[Any], str, LookSettings], LookDocument],
    writes: Callable[[LookSettings], bool] = lambda how: False,
) -> None:
    """Print or draw where the words of a text look.

    `check` refuses settings that a run of this name has no use for; `writes` says whether the model
    writes words of its own.
    """
    check_out(asked.out, asked.compare)
    how = with_zoom(asked.settings, asked.zoom)
    subject = one_text(texts, asked.text, skip_bad=asked.skip_bad)
    models = load_alike(run, asked.compare, asked.device)
    check(models[0].name, how)
    check_zoom(models, how, asked.out)
    look_at_text(models, subject, how, asked.out, document, asked.select, writes=writes(how))
