"""What a captioner's loss may have beside cross-entropy: cover the image; learn where to glance.

Xu et al. 2015, arXiv:1502.03044, §4.1 and §4.2.1, with the constants of the authors' code.
"""

from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from saccade.blocks.output import OutputLayer
from saccade.data.batching.rows import Rows
from saccade.models.caption.captioner import CaptionHidden
from saccade.models.caption.show_attend_tell import Baseline
from saccade.tasks.captioning.data import HardSettings
from saccade.tasks.cross_entropy import IGNORED


def uncovered(
    looked: Float[Tensor, "R T cells"],
    labels: Int[Tensor, " words"],
    captions: Rows,
    by: Literal["paper", "mean", "length"],
) -> Float[Tensor, ""]:
    """How far the looks at each cell are from one in all, summed over captions.

        Σᵢ (1 − Σₜ aₜᵢ)²

    As published the sum is over cells, `mean` divides it by their number, and `length` asks of T
    words what they can give: T / cells looks at each. Nothing is asked of what has no label.
    """
    cells = looked.shape[2]
    received = of_words(looked, labels, captions).sum(dim=1)  # (R, cells)
    words = captions_sums((labels != IGNORED).to(received), captions)[:, None]
    wanted = words / cells if by == "length" else (words > 0).to(received)
    total = (wanted - received).square().sum()
    return total / cells if by == "mean" else total


def reinforced(
    states: CaptionHidden,
    layer: OutputLayer,
    labels: Int[Tensor, " words"],
    captions: Rows,
    settings: HardSettings,
    baseline: Baseline,
) -> Float[Tensor, ""]:
    """Cross-entropy along the glances drawn, and the estimate of how their chances should change.

        Σₜ costₜ + r Σ over captions of (mean cost − b) Σₜ log p(glanceₜ) + e Σₜᵢ aₜᵢ log aₜᵢ

    The second is only there in a batch of single glances. Words that have no label count nothing.
    """
    assert states.glances is not None
    assert states.looked is not None
    cost = F.cross_entropy(layer(states.hidden), labels, reduction="none", ignore_index=IGNORED)
    counts = captions_sums((labels != IGNORED).to(cost), captions)
    each = captions_sums(cost.detach(), captions) / counts.clamp(min=1)
    log_chance = of_words(states.glances.log_chance, labels, captions)
    estimate = score_function(each - baseline.cost, log_chance)
    order = negative_entropy(of_words(states.looked, labels, captions))
    words = counts.sum()
    baseline.follow(cost.detach().sum() / words, settings.memory)
    return (
        cost.sum() + settings.reinforce * states.glances.hard * estimate + settings.entropy * order
    )


def of_words(
    x: Float[Tensor, "R T *rest"], labels: Int[Tensor, " words"], captions: Rows
) -> Float[Tensor, "R T *rest"]:
    """What is known of each word; zero for what only fills captions up, which has no label."""
    real = captions.rectangle(labels != IGNORED)  # (R, T)
    return x.where(real.view(*real.shape, *[1] * (x.dim() - 2)), 0.0)


def captions_sums(x: Float[Tensor, " words"], captions: Rows) -> Float[Tensor, " R"]:
    """Sum what is known of each word over each caption."""
    return x.new_zeros(len(captions.lengths)).index_add(0, captions.sequences, x)


def score_function(
    advantage: Float[Tensor, " R"], log_chance: Float[Tensor, "R T"]
) -> Float[Tensor, ""]:
    """Its gradient makes likelier what cost less than expected (Williams 1992, Mach. Learn. 8).

        Σ over captions of (cost − b) Σₜ log p(glanceₜ)        ∇ E[cost] = E[∇ cost + ∇ of this]

    That holds for the whole cost of a caption; the mean over its T words is a T-th of it.
    """
    return (advantage.detach() * log_chance.sum(dim=1)).sum()


def negative_entropy(looked: Float[Tensor, "R T cells"]) -> Float[Tensor, ""]:
    """Σₜᵢ aₜᵢ log aₜᵢ: the less the more evenly attention is spread. A weight of zero counts zero,
    and its slope is finite.
    """
    tiny = torch.finfo(looked.dtype).tiny
    return (looked * looked.clamp(min=tiny).log()).sum()
