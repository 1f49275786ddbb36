"""A running average of the weights, which is validated and kept instead of them."""

import copy
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from saccade.train.statistics import Statistics


class Average:
    """It follows faster at first.

    w̄ ← w̄ + f (w − w̄)        f = 1 − min(decay, (1 + n) / (10 + n))        n updates so far
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.model, self.decay = copy.deepcopy(model).requires_grad_(False), decay
        for part in self.model.modules():
            if isinstance(part, nn.RNNBase):  # whose copied weights lie apart
                part.flatten_parameters()

    def pace(self, updates: int) -> float:
        """How far one update goes towards the weights."""
        return 1 - min(self.decay, (1 + updates) / (10 + updates))

    @torch.no_grad()
    def follow(self, model: nn.Module, pace: Float[Tensor, ""]) -> None:
        """The pace is a tensor so that a captured step can be given another one each time."""
        each: Any = torch  # its functions over many tensors at once have no public name
        pairs = zip(self.model.parameters(), model.parameters())
        ours, theirs = zip(*((own, other) for own, other in pairs if other.requires_grad))
        apart = each._foreach_sub(theirs, ours)
        each._foreach_mul_(apart, pace)
        each._foreach_add_(ours, apart)
        Statistics(self.model).follow(Statistics(model))
