"""`saccade look runs/transformer "we are eating bread" -o look.png`: where a model looked."""

import sys
from pathlib import Path
from typing import Annotated

import tyro

from saccade.app.api import LanguageModel, load
from saccade.app.cli.output import say


def look_command(
    run: tyro.conf.Positional[str],
    text: tyro.conf.Positional[str],
    /,
    *,
    out: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None,
    beam: int = 5,
    device: str = "auto",
) -> None:
    """Show where a model looks: for each word it writes, the words it read it from.

    On the terminal every source word is shaded by its weight; elsewhere the three that weigh most
    are listed. With --out the picture goes to a file.

    Args:
        run: folder of the run.
        text: the sentence to translate, or the text that a language model reads.
        out: a .png, .svg or .json file.
        beam: hypotheses kept while translating.
        device: cpu, cuda …; auto takes the fastest there is.
    """
    model = load(run, device=device)
    if isinstance(model, LanguageModel):
        look = model.look(text)
    else:
        prediction = model.predict(text, look=True, beam=beam)
        print(prediction.text)
        look = prediction.look()
    print(look.text(colour=sys.stdout.isatty()))
    if out is not None:
        say(f"wrote {look.save(out)}")
