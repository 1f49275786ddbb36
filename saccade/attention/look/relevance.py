"""Relevance: attention weighed by how it raises a score, through all layers of a text.

Chefer et al. 2021 (arXiv:2103.15679), for self-attention over one sequence. On images, whose layers
pool and cut into windows, `on_image.py` follows a single row of the same back.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor


def raising(
    weights: Float[Tensor, "B N T S"], slopes: Float[Tensor, "B N T S"]
) -> Float[Tensor, "B T S"]:
    """What of a layer's attention raises a score y.

    Ā = meanₙ relu(∂y/∂Aₙ ⊙ Aₙ)
    """
    return (slopes * weights).relu().mean(dim=1)


def relevance_through(layers: Sequence[Float[Tensor, "B T T"]]) -> Float[Tensor, "B T T"]:
    """How much of each input is in each position after the last layer.

    R ← R + Ā R, from the first layer to the last, from R = I
    """
    first = layers[0]
    mixture = torch.eye(first.shape[-1], dtype=first.dtype, device=first.device).expand_as(first)
    for layer in layers:
        mixture = mixture + layer @ mixture
    return mixture
