"""The Transformer's encoder block: look at one another, then think alone."""

from collections.abc import Callable, Iterable
from functools import partial

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from saccade.attention.attend import Mask
from saccade.attention.axes import TEXT, Axis
from saccade.attention.cache import KeyValues
from saccade.attention.kernels.train.linear import sums_later
from saccade.attention.multihead import MultiHeadAttention
from saccade.blocks.kernels import runs_kernels
from saccade.blocks.mlp import FeedForward
from saccade.blocks.residual import (
    EPSILON,
    RESIDUALS,
    Change,
    NormKind,
    PreNorm,
    ResidualKind,
    added_norm,
)


class EncoderLayer(nn.Module):
    """Self-attention and an MLP, each with its residual.

        x ← residual(x, attention(x, x))        x ← residual(x, MLP(x))

    With `causal` it is the block of a decoder-only language model.
    """

    def __init__(
        self,
        width: int,
        *,
        heads: int,
        hidden: int,
        dropout: float = 0.0,
        residual: ResidualKind = "post",
        norm: NormKind = "layer",
        epsilon: float = EPSILON,
        activation: Callable[[Tensor], Tensor] = F.relu,
        axis: Axis = TEXT,
    ) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(width, heads=heads, rows=axis, columns=axis)
        self.mlp = FeedForward(width, hidden=hidden, dropout=dropout, activation=activation)
        around = partial(RESIDUALS[residual], width, dropout=dropout, norm=norm, epsilon=epsilon)
        self.around_attention, self.around_mlp = around(), around()

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        *,
        mask: Mask = None,
        causal: bool = False,
        cache: KeyValues | None = None,
    ) -> Float[Tensor, "B T D"]:

        def look(x: Tensor) -> Tensor:
            return self.self_attention(x, x, mask=mask, causal=causal, cache=cache)

        return self.around_mlp(self.around_attention(x, look), self.mlp)

    def carry(
        self,
        x: Float[Tensor, "B T D"],
        change: Change | None,
        *,
        mask: Mask = None,
        causal: bool = False,
    ) -> tuple[Float[Tensor, "B T D"], Change]:
        """The same of x + change, whose last sum is left to the next norm."""
        attention, mlp = self.self_attention, self.mlp

        def look(x: Tensor) -> Tensor:
            return attention(x, x, mask=mask, causal=causal, owed=True)

        assert isinstance(self.around_attention, PreNorm)
        assert isinstance(self.around_mlp, PreNorm)
        x, change = self.around_attention.carry(x, change, look, attention.to_output.bias)
        return self.around_mlp.carry(x, change, partial(mlp, owed=True), mlp.narrow.bias)

    @property
    def carries(self) -> bool:
        """Whether its norms are such that a kernel can add before them."""
        around = (self.around_attention, self.around_mlp)
        return all(isinstance(a, PreNorm) and isinstance(a.norm, nn.LayerNorm) for a in around)


def carried(
    layers: Iterable[nn.Module],
    x: Float[Tensor, "B T D"],
    *,
    mask: Mask = None,
    causal: bool = False,
) -> tuple[Float[Tensor, "B T D"], Change | None]:
    """Layers one after another; where kernels can, the last sum is left to the norm that follows.

    So each sum and the norm after it read and write the stream of vectors once, not twice.
    """
    change, stack = None, [layer for layer in layers if isinstance(layer, EncoderLayer)]
    if runs_kernels(x) and sums_later(x) and all(layer.carries for layer in stack):
        for layer in stack:
            x, change = layer.carry(x, change, mask=mask, causal=causal)
        return x, change
    for layer in stack:
        x = layer(x, mask=mask, causal=causal)
    return x, None


def through(
    layers: Iterable[nn.Module],
    x: Float[Tensor, "B T D"],
    norm: nn.LayerNorm,
    *,
    mask: Mask = None,
    causal: bool = False,
) -> Float[Tensor, "B T D"]:
    """Layers one after another, and the norm after the last."""
    x, change = carried(layers, x, mask=mask, causal=causal)
    return norm(x) if change is None else added_norm(x, change, norm)[0]
