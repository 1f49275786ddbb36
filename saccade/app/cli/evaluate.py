"""`saccade eval runs/transformer`: scores on held-out data."""

from typing import Any

import tyro
from rich.console import Console
from rich.table import Table

from saccade.app.api import CaptioningModel, load
from saccade.app.cli.caption_scores import print_caption_scores
from saccade.app.cli.output import counting, print_json
from saccade.app.evaluate import evaluate
from saccade.decode.engine import Decoding


def eval_command(
    run: tyro.conf.Positional[str],
    /,
    *,
    split: str = "test",
    data: str = "",
    groups: tuple[str, ...] = (),
    beam: int = 5,
    length_penalty: float = 1.0,
    lowercase: bool = False,
    device: str = "auto",
    json: bool = False,
) -> None:
    """Score a run on data it was not trained on.

    Translation: BLEU and chrF by sacreBLEU with their signature, BLEU by sentence length,
    perplexity, and on lingua the alignment error rate of the attention.

    Language models: loss and perplexity.

    Captioners: BLEU-1 to 4, CIDEr-D and ROUGE-L of their own captions against all references,
    METEOR where nltk and WordNet are there, perplexity. On shapes the share of captions that say
    only what is so (exact) and leave out nothing (complete). Where the data say where things are,
    how often attention points at them; where they say who is of which group, how each fares.

    Further splits: compositional of lingua and shapes; many, biased-test and balanced-test of
    shapes.

    Args:
        run: folder of the run, such as runs/transformer.
        split: test, valid, a test file's name, or a further split of the built-in data.
        data: score on other data than the run's own.
        groups: for captions of people, the words of each group: man,boy woman,girl.
        beam: hypotheses kept while decoding; 1 is greedy.
        length_penalty: 0 ranks by probability alone, more favours longer sentences.
        lowercase: compare translations without regard to case; captions always are.
        device: cpu, cuda …; auto takes the fastest there is.
        json: print everything as JSON.
    """
    model = load(run, device=device)
    how = Decoding(beam=beam, length_penalty=length_penalty)
    with counting("describing" if isinstance(model, CaptioningModel) else "decoding") as progress:
        asked: dict[str, Any] = {"split": split, "data": data, "groups": groups}
        found = evaluate(model, **asked, how=how, lowercase=lowercase, progress=progress)
    if json:
        print_json(found)
    elif isinstance(model, CaptioningModel):
        print_caption_scores(found)
    else:
        print_scores(found)


def print_scores(found: dict[str, Any]) -> None:
    """Scores as a table; scores by band or site indented under their name."""
    table = Table(show_header=False, box=None, pad_edge=False)
    for name, value in found.items():
        label = name.replace("_", " ")
        if isinstance(value, dict):
            for key, part in value.items():
                table.add_row(f"{label}: {key}", _shown(part))
        elif isinstance(value, list):
            for part in value:
                table.add_row(label, str(part))
        else:
            table.add_row(label, _shown(value))
    Console(highlight=False).print(table)


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
