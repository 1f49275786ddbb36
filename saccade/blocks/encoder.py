"""The Transformer's encoder block: look at one another, then think alone."""

from collections.abc import Callable
from functools import partial

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from saccade.attention.attend import Mask
from saccade.attention.axes import TEXT, Axis
from saccade.attention.cache import KeyValues
from saccade.attention.multihead import MultiHeadAttention
from saccade.blocks.mlp import FeedForward
from saccade.blocks.residual import EPSILON, RESIDUALS, NormKind, ResidualKind


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
