"""Held-out figures of models that fill hidden words: the same words are hidden for all."""

from collections import defaultdict

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from saccade.models.protocol import FillsWords, ReplacesWords
from saccade.tasks.base import Deciding, Progress, each_told, silent
from saccade.tasks.cross_entropy import IGNORED
from saccade.tasks.figures import loss_figures
from saccade.tasks.masked.batch import MaskedBatch, MaskedBatches
from saccade.tasks.masked.losses import (
    REPLACED_WEIGHT,
    exact,
    features_at,
    replace_words,
    replaced_scores,
)

PER_MASKED = Deciding("loss", label="loss per masked word")


@torch.no_grad()
def masked_figures(
    model: FillsWords | ReplacesWords,
    batches: MaskedBatches,
    device: torch.device,
    progress: Progress = silent,
) -> dict[str, float]:
    """Loss, perplexity and accuracy at hidden words; of pairs how often the next is told.

    Of a model that replaces words: the loss that training follows, perplexity and accuracy of its
    generator, the loss of each word's being replaced or not, and the share of replaced ones found.
    """
    mask = batches.texts.masking.mask
    draws = torch.Generator(device).manual_seed(0)
    sums = defaultdict[str, float](float)
    for position in each_told(range(len(batches)), progress):
        batch = batches.at(position).to(device)
        if isinstance(model, ReplacesWords):
            found = _replaced_sums(model, batch, mask, draws)
        else:
            found = _word_sums(model, batch)
        for name, value in found.items():
            sums[name] += value
    words, told = sums["hidden"], loss_figures(sums["loss"] / sums["hidden"])
    told |= {"accuracy": sums["right"] / words}
    if sums["texts"]:
        told |= {"next_accuracy": sums["next"] / sums["texts"]}
    if sums["words"]:
        each = sums["replaced"] / sums["words"]
        loss = told["loss"] + REPLACED_WEIGHT * each
        told |= {"loss": loss, "replaced": each, "recall": sums["found"] / max(1, sums["wrong"])}
    return told


def _word_sums(model: FillsWords, batch: MaskedBatch) -> dict[str, float]:
    hidden = model(batch.rows, batch.types)
    found = _label_sums(model, features_at(model, hidden, batch.at), batch.labels)
    if batch.follows is None:
        return found
    said = model.follows(hidden, batch.rows).argmax(dim=-1)
    told = batch.follows != IGNORED
    right = (said == batch.follows)[told].sum()
    return found | {"texts": float(told.sum()), "next": float(right)}


def _label_sums(
    model: FillsWords, features: Float[Tensor, "n E"], labels: Int[Tensor, " n"]
) -> dict[str, float]:
    logits = exact(model.output(features))
    return {
        "hidden": float(len(labels)),
        "loss": F.cross_entropy(logits, labels, reduction="sum").item(),
        "right": float((logits.argmax(dim=-1) == labels).sum()),
    }


def _replaced_sums(
    model: ReplacesWords, batch: MaskedBatch, mask: int, draws: torch.Generator
) -> dict[str, float]:
    seen = replace_words(model.generator, batch, mask, draws)
    z, wrong = replaced_scores(model, seen.rows, batch), seen.wrong
    loss = F.binary_cross_entropy_with_logits(z, wrong.to(z.dtype), reduction="sum")
    return {
        **_label_sums(model.generator, seen.features, batch.labels),
        "words": float(len(z)),
        "replaced": loss.item(),
        "wrong": float(wrong.sum()),
        "found": float((wrong & (z > 0)).sum()),
    }
