"""C1: through one vector long sentences are lost; attention keeps them."""

from pathlib import Path

from saccade.app.api import load
from saccade.app.figures.claim import LectureClaim
from saccade.app.figures.finding import Finding, LinePanel, over_seeds
from saccade.app.figures.translators import LONGEST, translator
from saccade.app.figures.workshop import Workshop
from saccade.app.kinds.translation.kind import TranslationModel
from saccade.app.look.draw.chart import Mark
from saccade.data.lingua import LinguaSettings, pairs
from saccade.metrics.translation import score_translations

RECIPES = {"with attention": "rnn-attention", "one vector": "rnn-seq2seq"}
BANDS = ((3, 5), (6, 10), (11, 15), (16, 20), (21, 25), (26, LONGEST))
SENTENCES = 100  # of each band


def bleu_by_band(model: TranslationModel, count: int) -> list[float]:
    """BLEU on held-out sentences of each band of lengths, decoded greedily."""
    found: list[float] = []
    for shortest, longest in BANDS:
        held_out = list(pairs("test", count, LinguaSettings(shortest=shortest, longest=longest)))
        made = model.predict([pair.source for pair in held_out], beam=1)
        scores = score_translations(
            [one.text for one in made],
            [pair.target for pair in held_out],
            [longest] * count,
            ter_seconds=0.0,
        )
        found.append(scores.bleu)
    return found


def _runs(work: Workshop) -> dict[str, list[Path]]:
    return {
        name: [translator(work, recipe, seed) for seed in work.seeds]
        for name, recipe in RECIPES.items()
    }


def _measure(work: Workshop) -> Finding:
    count = work.share(SENTENCES)
    found = {
        name: [bleu_by_band(load(path, device=work.device), count) for path in paths]
        for name, paths in _runs(work).items()
    }
    lines = {name: _line(runs) for name, runs in found.items()}
    looks, squeezed = lines.values()
    fell = [line[0].mean - line[-1].mean for line in (looks, squeezed)]
    return Finding(
        verdict=f"From {BANDS[0][0]}–{BANDS[0][1]} to {BANDS[-1][0]}–{BANDS[-1][1]} words BLEU "
        f"goes from {squeezed[0].mean:.1f} to {squeezed[-1].mean:.1f} through one vector, and from "
        f"{looks[0].mean:.1f} to {looks[-1].mean:.1f} with attention.",
        holds=fell[1] > fell[0] + 5 and looks[-1].low > squeezed[-1].high,
        head=("words", *(f"{name}: BLEU" for name in lines), "smallest, largest"),
        rows=tuple(
            (
                f"{low}–{high}",
                *(f"{line[band].mean:.1f}" for line in lines.values()),
                "; ".join(f"{one[band].low:.1f}, {one[band].high:.1f}" for one in lines.values()),
            )
            for band, (low, high) in enumerate(BANDS)
        ),
        lines=(
            LinePanel(
                title="Translations of held-out sentences",
                x_title="words of the source (middle of a band)",
                y_title="BLEU",
                lines=lines,
            ),
        ),
    )


def _line(runs: list[list[float]]) -> tuple[Mark, ...]:
    """The bands of each run, seeds together."""
    return tuple(
        over_seeds((low + high) / 2, [scores[band] for scores in runs])
        for band, (low, high) in enumerate(BANDS)
    )


CLAIM = LectureClaim(
    key="C1",
    title="The bottleneck: quality against length, with and without attention",
    claim="A sequence-to-sequence RNN squeezes the whole source through one vector of fixed size, "
    "which is too small for long sentences. With attention the decoder looks back at every "
    "word, and length does not matter.",
    expect="The line of one vector falls steeply as sentences grow; the one with attention is "
    "close to level.",
    seconds=600,
    measure=_measure,
    runs=_runs,
)
