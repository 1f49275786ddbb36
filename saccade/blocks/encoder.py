"""The Transformer's encoder block: look at one another, then think alone."""

from collections.abc import Callable
from functools import partial

import torch.nn.functional as F
from torch import Tensor

from saccade.attention.axes import TEXT, Axis
from saccade.attention.multihead import MultiHeadAttention
from saccade.blocks.mlp import FeedForward
from saccade.blocks.residual import EPSILON, RESIDUALS, NormKind, ResidualKind
from saccade.blocks.stack import Attending, Block, LookBack, Sublayer, Thinking


class EncoderLayer(Block):
    """Self-attention and an MLP, each with its residual.

        x ← residual(x, attention(x, x))        x ← residual(x, MLP(x))

    Where its memory is causal it is the block of a decoder-only language model. `inner_dropout` is
    for what is inside the MLP, where that is not to be as its output.
    """

    def __init__(
        self,
        width: int,
        *,
        heads: int,
        hidden: int,
        dropout: float = 0.0,
        inner_dropout: float | None = None,
        residual: ResidualKind = "post",
        norm: NormKind = "layer",
        epsilon: float = EPSILON,
        activation: Callable[[Tensor], Tensor] = F.relu,
        axis: Axis = TEXT,
        attention: MultiHeadAttention | None = None,
        layer_scale: float = 0.0,
        drop_path: float = 0.0,
    ) -> None:
        super().__init__()
        self.self_attention = attention or MultiHeadAttention(
            width, heads=heads, rows=axis, columns=axis
        )
        inner = dropout if inner_dropout is None else inner_dropout
        self.mlp = FeedForward(width, hidden=hidden, dropout=inner, activation=activation)
        around = partial(
            RESIDUALS[residual],
            width,
            dropout=dropout,
            norm=norm,
            epsilon=epsilon,
            layer_scale=layer_scale,
            drop_path=drop_path,
        )
        self.around_attention, self.around_mlp = around(), around()

    def sublayers(self, layer: int) -> list[Sublayer]:
        return [
            Attending(self.around_attention, self.self_attention, LookBack, layer),
            Thinking(self.around_mlp, self.mlp),
        ]
