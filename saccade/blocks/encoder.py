"""The Transformer's encoder block: look at one another, then think alone."""

from collections.abc import Callable

import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from saccade.attention.axes import TEXT, Axis
from saccade.attention.cache import KeyValues
from saccade.attention.multihead import MultiHeadAttention
from saccade.blocks.mlp import FeedForward
from saccade.blocks.residual import RESIDUALS, NormKind, ResidualKind


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
        activation: Callable[[Tensor], Tensor] = F.relu,
        axis: Axis = TEXT,
    ) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(width, heads=heads, rows=axis, columns=axis)
        self.mlp = FeedForward(width, hidden=hidden, dropout=dropout, activation=activation)
        self.around_attention = RESIDUALS[residual](width, dropout=dropout, norm=norm)
        self.around_mlp = RESIDUALS[residual](width, dropout=dropout, norm=norm)

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        *,
        mask: Bool[Tensor, "#B #N #T S"] | None = None,
        causal: bool = False,
        cache: KeyValues | None = None,
    ) -> Float[Tensor, "B T D"]:

        def look(x: Tensor) -> Tensor:
            return self.self_attention(x, x, mask=mask, causal=causal, cache=cache)

        return self.around_mlp(self.around_attention(x, look), self.mlp)
