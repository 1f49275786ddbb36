"""`saccade demo`: train a translator on the built-in corpus, score it, see where it looks."""

import sys
import time
from dataclasses import replace
from pathlib import Path

from saccade.app.api import load
from saccade.app.cli.output import counting, say, tell, tell_drawing
from saccade.app.cli.pace import duration
from saccade.app.cli.serve import serve_command
from saccade.app.cli.train import run_training
from saccade.app.kinds.translation.kind import TranslationModel, evaluate
from saccade.app.look.draw.terminal import terminal
from saccade.data.lingua import LinguaSettings
from saccade.models.text.rnn_attention import RnnAttentionConfig
from saccade.train.recipe import Recipe
from saccade.train.recipes import recipe

SENTENCES = (
    "The agreement on the European Economic Area was signed in August 1992.",
    "She does not eat the old apples.",
    "The president of the small association will not buy a white house in Paris tomorrow.",
)


def demo_recipe() -> Recipe:
    """`rnn-attention`, made small enough to train while one watches."""
    full = recipe("rnn-attention")
    assert isinstance(full.model, RnnAttentionConfig)
    return replace(
        full,
        model=replace(full.model, width=192),
        task=replace(full.task, pairs=40_000, lingua=LinguaSettings(longest=40)),
        train=replace(full.train, steps=2700, batch_tokens=768, validate_every=675),
    )


def demo_command(
    *, out: Path = Path("runs/demo"), serve: bool = True, start_over: bool = False
) -> None:
    """Train an attention translator in minutes, score it, translate, and show where it looks.

    Stopped, the same command goes on; run again when trained, it only shows the results.

    Args:
        out: folder of the run.
        serve: stay and open the page (on a terminal); --no-serve ends after the scores.
        start_over: move a demo of before aside and train anew.
    """
    begun = time.monotonic()
    say("An RNN with attention learns to translate the built-in corpus, English to French.")
    outcome = run_training(demo_recipe(), out, start_over=start_over)
    if outcome.signal:
        sys.exit(128 + outcome.signal)
    say(f"training took {duration(time.monotonic() - begun)}, data included")
    model: TranslationModel = load(out, device="cpu")
    _score(model)
    for sentence in SENTENCES:
        _show(model, sentence)
    page = model.look(SENTENCES[0]).save(out / "look.html")
    tell(f"\nThe first of these as a page that works anywhere: {page}")
    if serve and sys.stdin.isatty():
        tell("Now type sentences of your own and look, on this page; Ctrl-C ends it.\n")
        serve_command((str(out),), port=0, browser=True)  # any port that is free
    else:
        tell(f"To type sentences of your own and look: saccade serve {out}")


def _score(model: TranslationModel) -> None:
    with counting("translating the test split") as progress:
        found = evaluate(model, progress=progress)
    tell(f"\nBLEU {found['bleu']:.1f} on {found['sentences']:,} test sentences")
    tell(f"     {found['signature']}")
    bands = "   ".join(f"{band} words: {b:.1f}" for band, b in found["bleu_by_length"].items())
    tell(f"     by length: {bands}")
    tell(f"     alignment error rate of its attention: {found['alignment_error_rate']:.3f}")


def _show(model: TranslationModel, sentence: str) -> None:
    prediction = model.predict(sentence, look=True)
    tell(f"\n{sentence}\n→ {prediction.text}\n")
    tell_drawing(prediction.look().text(**terminal()))
