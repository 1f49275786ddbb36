"""C2: attention aligns words, and follows them where the order changes."""

from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from saccade.app.api import load
from saccade.app.figures.claim import LectureClaim
from saccade.app.figures.finding import BarPanel, Finding, HeatPanel, over_seeds
from saccade.app.figures.translators import translator
from saccade.app.figures.workshop import Workshop
from saccade.app.kinds.translation.kind import TranslationModel
from saccade.data.lingua import AlignedPair, LinguaSettings, pairs
from saccade.data.tokens.words import words
from saccade.metrics.alignment import Link, alignment_error_rate, best_links

PHRASE = "European Economic Area"  # zone économique européenne: all three change places
SHOWN, SENTENCES = 2, 300
SHORT = LinguaSettings(longest=12)


def aligned_words(
    model: TranslationModel, given: list[AlignedPair]
) -> list[Float[Tensor, "words_out words_in"]]:
    """Where each word of given translations looked: the mean over sites."""
    found: dict[int, Tensor] = {}
    for row, sites in model.tool.align([(pair.source, pair.target) for pair in given]):
        found[row] = torch.stack(list(sites.values())).mean(dim=0)
    return [found[row] for row in range(len(given))]


def error_rate(links: list[set[Link]], given: list[AlignedPair]) -> float:
    """The alignment error rate of some links against the truth."""
    sure, possible = [set(one.sure) for one in given], [set(one.possible) for one in given]
    return alignment_error_rate(links, sure, possible)


def diagonal(pair: AlignedPair) -> set[Link]:
    """What one would guess who knows the lengths alone."""
    source, target = len(words(pair.source)), len(words(pair.target))
    return {(min(source - 1, t * source // target), t) for t in range(target)}


def reordered() -> list[AlignedPair]:
    """Held-out sentences with the phrase that French turns around."""
    for count in (1000, 4000, 16_000, 64_000):  # a longer list begins with the shorter ones
        some = [pair for pair in pairs("test", count, SHORT) if PHRASE in pair.source]
        if len(some) >= SHOWN:
            break
    return some[:SHOWN]


def _runs(work: Workshop) -> list[Path]:
    return [translator(work, "rnn-attention", seed) for seed in work.seeds]


def _measure(work: Workshop) -> Finding:
    held_out, shown = list(pairs("test", work.share(SENTENCES), SHORT)), reordered()
    models = [load(path, device=work.device) for path in _runs(work)]
    seen = [aligned_words(model, held_out) for model in models]
    rates = [error_rate([best_links(one) for one in maps], held_out) for maps in seen]
    looked = [aligned_words(model, shown) for model in models]
    turned = [_turned(maps, shown) for maps in looked]
    guess = error_rate([diagonal(pair) for pair in held_out], held_out)
    found, naive = over_seeds(0, rates), over_seeds(0, [guess])
    share = over_seeds(0, turned)
    return Finding(
        verdict=f"On {len(held_out)} held-out sentences the alignment error rate of the attention "
        f"is {found.mean:.3f}, that of the diagonal {naive.mean:.3f}. In “{PHRASE}”, which French "
        f"turns around, {100 * share.mean:.0f} % of the words look at the word that they render.",
        holds=found.high < 0.5 * naive.mean and share.low > 0.5,
        head=("alignment", "error rate", "smallest", "largest"),
        rows=tuple(
            (name, f"{one.mean:.3f}", f"{one.low:.3f}", f"{one.high:.3f}")
            for name, one in (("attention", found), ("diagonal", naive))
        ),
        bars=(
            BarPanel(
                title="Against the true alignment",
                x_title="alignment error rate",
                groups=("attention", "diagonal"),
                bars={"error": (found, naive)},
            ),
        ),
        heats=tuple(_heat(pair, weights) for pair, weights in zip(shown, looked[0])),
    )


def _turned(maps: list[Tensor], shown: list[AlignedPair]) -> float:
    """Of the words that render the phrase, the share that looks at the right one most."""
    hits: list[bool] = []
    for pair, weights in zip(shown, maps):
        first = words(pair.source).index(PHRASE.partition(" ")[0])
        inside = range(first, first + len(PHRASE.split()))
        hits += [(s, t) in best_links(weights) for s, t in pair.sure if s in inside]
    return sum(hits) / len(hits)


def _heat(pair: AlignedPair, weights: Float[Tensor, "words_out words_in"]) -> HeatPanel:
    return HeatPanel(
        title="Where each French word looked",
        rows=tuple(words(pair.target)),
        columns=tuple(words(pair.source)),
        values=tuple(map(tuple, weights.tolist())),
        outlined=tuple((target, source) for source, target in pair.sure),
    )


CLAIM = LectureClaim(
    key="C2",
    title="Attention aligns words, in order and out of order",
    claim="Attention weights show which source words a translated word was read from: a diagonal "
    "where the order is the same, and its reverse in “zone économique européenne”.",
    expect="The strongest cells lie in the outlined ones, which are the truth: along the diagonal, "
    "and turned around where adjectives follow their noun.",
    seconds=330,
    measure=_measure,
    runs=_runs,
)
