"""The MLP that a Transformer block applies to each position by itself."""

from collections.abc import Callable

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from saccade.attention.kernels.train.linear import Linear, sums_later, together
from saccade.blocks.dropout import Dropout


def gelu_tanh(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """GELU as GPT-2 has it.

    x · (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2
    """
    return F.gelu(x, approximate="tanh")


GELUS: tuple[Callable[[Tensor], Tensor], ...] = (F.gelu, gelu_tanh)


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

    def forward(
        self, x: Float[Tensor, "*batch D"], *, owed: bool = False
    ) -> Float[Tensor, "*batch D"]:
        """With `owed`, the caller gives the gradient of the last bias."""
        if self.activation in GELUS and sums_later(x):
            from saccade.blocks.kernels.gelu import gelu_dropped

            tanh, rate = self.activation is gelu_tanh, self.dropout.now
            wide = together(x, self.widen, owed=True)
            bent = gelu_dropped(wide, self.widen.bias, rate=rate, tanh=tanh)
        else:
            wide, relu = self.widen(x), self.activation is F.relu
            bent = self.dropout.after_relu(wide) if relu else self.dropout(self.activation(wide))
        return together(bent, self.narrow, owed=True) if owed else self.narrow(bent)
