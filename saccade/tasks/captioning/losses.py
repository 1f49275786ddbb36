"""What a captioner's loss may have beside cross-entropy: cover the image; learn where to glance.

Xu et al. 2015, arXiv:1502.03044, §4.1 and §4.2.1, with the constants of the authors' code.
"""

from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from saccade.blocks.output import OutputLayer
from saccade.data.rows import Rows
from saccade.models.caption.captioner import CaptionHidden
from saccade.models.caption.show_attend_tell import Baseline
from saccade.tasks.captioning.data import HardSettings
from saccade.tasks.cross_entropy import IGNORED


def uncovered(
    looked: Float[Tensor, "R T cells"], captions: Rows, by: Literal["paper", "mean", "length"]
) -> Float[Tensor, ""]:
    """How far the looks at each cell are from one in all, summed over captions.

        Σᵢ (1 − Σₜ aₜᵢ)²

    As published the sum is over cells, `mean` divides it by their number, and `length` asks of T
    words what they can give: T / cells looks at each.
    """
    cells = looked.shape[2]
    received = looked.sum(dim=1)  # (R, cells)
    wanted = torch.ones_like(received[:, :1])
    if by == "length":
        wanted = captions.lengths.to(received, non_blocking=True)[:, None] / cells
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

    The second is only there in a batch of single glances. Captions whose labels are all padding
    count nothing.
    """
    assert states.glances is not None
    assert states.looked is not None
    cost = F.cross_entropy(layer(states.hidden), labels, reduction="none", ignore_index=IGNORED)
    counts = captions_sums((labels != IGNORED).to(cost), captions)
    each = captions_sums(cost.detach(), captions) / counts.clamp(min=1)
    counted = counts > 0
    log_chance = states.glances.log_chance.where(counted[:, None], 0.0)
    estimate = score_function(each - baseline.cost, log_chance)
    order = negative_entropy(states.looked.where(counted[:, None, None], 0.0))
    words = counts.sum()
    baseline.follow(cost.detach().sum() / words, settings.memory)
    return (
        cost.sum() + settings.reinforce * states.glances.hard * estimate + settings.entropy * order
    )


def captions_sums(x: Float[Tensor, " words"], captions: Rows) -> Float[Tensor, " R"]:
    """Sum what is known of each word over each caption."""
    rows = torch.arange(len(captions.lengths)).repeat_interleave(captions.lengths)
    zeros = x.new_zeros(len(captions.lengths))
    return zeros.index_add(0, rows.to(x.device, non_blocking=True), x)


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
