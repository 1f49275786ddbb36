"""The MLP that a Transformer block applies to each position by itself."""

from collections.abc import Callable
from typing import Literal

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from saccade.attention.kernels.train.linear import Linear, defers_bias, together
from saccade.blocks.dropout import Dropout
from saccade.blocks.inference.affine import Affine, Precision, affine
from saccade.blocks.kernels import runs_kernels


def gelu_tanh(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """GELU as GPT-2 has it.

    x · (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2
    """
    return F.gelu(x, approximate="tanh")


def quick_gelu(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """GELU as CLIP has it.

    x · sigmoid(1.702 x)
    """
    return x * (1.702 * x).sigmoid()


ActivationKind = Literal["relu", "gelu", "swish"]
ACTIVATIONS: dict[ActivationKind, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "swish": F.silu,
}
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
        self, x: Float[Tensor, "*batch D"], *, defer_bias: bool = False
    ) -> Float[Tensor, "*batch D"]:
        """With `defer_bias`, the caller gives the gradient of the last bias."""
        if self.activation in GELUS and defers_bias(x):
            from saccade.blocks.kernels.gelu import gelu_dropped

            tanh, rate = self.activation is gelu_tanh, self.dropout.now
            wide = together(x, self.widen, defer_bias=True)
            bent = gelu_dropped(wide, self.widen.bias, rate=rate, tanh=tanh)
        else:
            wide, relu = self.widen(x), self.activation is F.relu
            bent = self.dropout.after_relu(wide) if relu else self.dropout(self.activation(wide))
        return together(bent, self.narrow, defer_bias=True) if defer_bias else self.narrow(bent)

    def packed(self, precision: Precision, scale: Float[Tensor, " D"] | None = None) -> Affine:
        """The same for inference, with its weights packed once, and `scale` times the result."""
        relu = self.activation is F.relu
        widen = affine(self.widen.weight, self.widen.bias, precision=precision, relu=relu)
        weight, bias = self.narrow.weight, self.narrow.bias
        if scale is not None:
            weight, bias = scale[:, None] * weight, scale * bias
        narrow = affine(weight, bias, precision=precision)
        if relu:
            return lambda x: narrow(widen(x))
        return lambda x: narrow(self._bent(widen(x)))

    def _bent(self, x: Float[Tensor, "R F"]) -> Float[Tensor, "R F"]:
        """The activation of what nobody else needs any more."""
        if self.activation in GELUS and runs_kernels(x):
            from saccade.blocks.kernels.gelu import gelu_

            return gelu_(x, tanh=self.activation is gelu_tanh)
        return self.activation(x)
