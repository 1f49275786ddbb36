"""The last layer of every model that writes: what is known, to a score for each word."""

from typing import NamedTuple

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor


class OutputLayer(NamedTuple):
    """A matrix, often that of the embedding, and perhaps a bias. It is no module, for a loss that
    never holds all scores needs the weights themselves.

    z = W x + b
    """

    weight: Float[Tensor, "V D"]
    bias: Float[Tensor, " V"] | None = None

    def __call__(self, features: Float[Tensor, "*batch D"]) -> Float[Tensor, "*batch V"]:
        return F.linear(features, self.weight, self.bias)
