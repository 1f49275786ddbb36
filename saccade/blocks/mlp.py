"""The MLP that a Transformer block applies to each position by itself."""

from collections.abc import Callable

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from saccade.attention.kernels.linear import Linear
from saccade.blocks.dropout import Dropout


class FeedForward(nn.Module):
    """Widen, bend, narrow.

    y = W₂ σ(W₁ x + b₁) + b₂
    """

    def __init__(
        self,
        width: int,
        *,
        hidden: int,
        dropout: float = 0.0,
        activation: Callable[[Tensor], Tensor] = F.relu,
    ) -> None:
        super().__init__()
        self.widen = Linear(width, hidden)
        self.narrow = Linear(hidden, width)
        self.dropout = Dropout(dropout)
        self.activation = activation

    def forward(self, x: Float[Tensor, "*batch D"]) -> Float[Tensor, "*batch D"]:
        wide = self.widen(x)
        if self.activation is F.relu:
            return self.narrow(self.dropout.after_relu(wide))
        return self.narrow(self.dropout(self.activation(wide)))
