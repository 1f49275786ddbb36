"""The last layer of every model that writes: hidden states to logits."""

from typing import NamedTuple

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from saccade.attention.parameters import TABLE, Role


class Readout(nn.Linear):
    """An output layer of its own. Its rows are words, which should not become alike."""

    def roles(self) -> dict[str, Role]:
        return {"weight": TABLE}


class OutputLayer(NamedTuple):
    """A matrix, often that of the embedding, and perhaps a bias. It is no module, for a loss that
    never holds all scores needs the weights themselves.

    z = W x + b
    """

    weight: Float[Tensor, "V D"]
    bias: Float[Tensor, " V"] | None = None

    def __call__(self, features: Float[Tensor, "*batch D"]) -> Float[Tensor, "*batch V"]:
        return F.linear(features, self.weight, self.bias)
