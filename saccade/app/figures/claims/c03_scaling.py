"""C3: without division by √D the softmax peaks, and no gradient comes through it."""

import itertools
import math

import torch
from jaxtyping import Float
from torch import Tensor

from saccade.app.figures.claim import LectureClaim
from saccade.app.figures.finding import Finding, LinePanel, over_seeds
from saccade.app.figures.workshop import Workshop
from saccade.app.look.draw.chart import Mark
from saccade.attention.attend import weigh
from saccade.attention.scores import Score, dot, scaled_dot

WIDTHS = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
KEYS, QUERIES = 64, 256
SCORES: dict[str, Score] = {"q · k": dot, "q · k / √D": scaled_dot}
KINDS = ("variance", "entropy", "gradient")


def entropy(weights: Float[Tensor, "*batch S"]) -> Float[Tensor, "*batch"]:
    """How widely a query looks, in nats: 0 at one key, log S at all alike.

    −Σᵢ aᵢ log aᵢ
    """
    return torch.special.entr(weights).sum(dim=-1)


def gradient_norm(weights: Float[Tensor, "*batch S"]) -> Float[Tensor, "*batch"]:
    """How much of a gradient comes through a softmax: the norm of its Jacobian.

    ‖diag(a) − a aᵀ‖ = √(Σᵢ aᵢ² − 2 Σᵢ aᵢ³ + (Σᵢ aᵢ²)²)
    """
    squares, cubes = weights.square().sum(dim=-1), weights.pow(3).sum(dim=-1)
    return (squares - 2 * cubes + squares.square()).clamp(min=0).sqrt()


def score_statistics(score: Score, width: int, seed: int) -> dict[str, float]:
    """Of queries and keys of independent standard normal numbers.

    The gradient is that of the middle query: a mean would be that of the few that are torn.
    """
    rng = torch.Generator().manual_seed(seed)
    q = torch.randn(QUERIES, width, generator=rng, dtype=torch.float64)
    k = torch.randn(KEYS, width, generator=rng, dtype=torch.float64)
    scores = score(q, k)  # (T, S)
    weights = weigh(scores)
    return {
        "variance": scores.square().mean().item(),
        "entropy": entropy(weights).mean().item(),
        "gradient": gradient_norm(weights).median().item(),
    }


Found = dict[tuple[str, int], dict[str, Mark]]


def _measure(work: Workshop) -> Finding:
    found: Found = {}
    for (name, score), width in itertools.product(SCORES.items(), WIDTHS):
        runs = [score_statistics(score, width, seed) for seed in work.seeds]
        found[name, width] = {k: over_seeds(width, [one[k] for one in runs]) for k in KINDS}
    plain, scaled = ({k: mark.mean for k, mark in found[name, 512].items()} for name in SCORES)
    holds = (
        0.8 * 512 < plain["variance"] < 1.25 * 512
        and 0.8 < scaled["variance"] < 1.25
        and plain["entropy"] < 0.25 * scaled["entropy"]
        and plain["gradient"] < 0.25 * scaled["gradient"]
    )
    seen = math.exp(plain["entropy"]), math.exp(scaled["entropy"])
    return Finding(
        verdict=f"At D = 512 the variance of a score is {plain['variance']:.0f}, and "
        f"{scaled['variance']:.2f} after division by √D. Of {KEYS} keys a query looks at "
        f"{seen[0]:.1f} (entropy {plain['entropy']:.2f} nats) instead of {seen[1]:.0f} "
        f"({scaled['entropy']:.2f}), and the gradient through the softmax is "
        f"{plain['gradient']:.4f} instead of {scaled['gradient']:.4f} (its norm, at the middle "
        "query).",
        holds=holds,
        head=("D", *(f"{kind}, {name}" for kind in KINDS for name in SCORES)),
        rows=tuple(
            (str(w), *(f"{found[name, w][kind].mean:.3f}" for kind in KINDS for name in SCORES))
            for w in WIDTHS
        ),
        lines=(
            _panel(found, "variance", "Scores spread with the width", "variance of a score"),
            _panel(found, "entropy", "The softmax peaks", "entropy in nats"),
            _panel(found, "gradient", "Less gradient comes through", "norm of ∂a/∂e"),
        ),
    )


def _panel(found: Found, kind: str, title: str, y_title: str) -> LinePanel:
    return LinePanel(
        title=title,
        x_title="width D of queries and keys",
        y_title=y_title,
        lines={name: tuple(found[name, width][kind] for width in WIDTHS) for name in SCORES},
        log_x=True,
        log_y=kind == "variance",
    )


CLAIM = LectureClaim(
    key="C3",
    title="What √D does to the softmax",
    claim="Dot products of wide vectors are large: their variance grows with D, the softmax peaks, "
    "and its gradient vanishes. Dividing by √D undoes it.",
    expect="Without the division the variance rises with D on a straight line, and in the end "
    "entropy and gradient fall towards zero; with it all three are level.",
    seconds=2,
    measure=_measure,
)
