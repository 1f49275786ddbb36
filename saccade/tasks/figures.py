"""Figures that several kinds of work report."""

import torch

from saccade.tasks.base import Deciding

PER_TOKEN = Deciding("loss", label="loss per token")


def loss_figures(loss: float) -> dict[str, float]:
    """A mean loss, and how many words it is as if one had to choose among.

    perplexity = exp(loss)
    """
    return {"loss": loss, "perplexity": float(torch.tensor(loss).exp())}
