"""The Transformer's decoder block: look back, look across, think alone."""

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor

from saccade.attention.axes import SOURCE, TARGET, Axis
from saccade.attention.multihead import MultiHeadAttention
from saccade.blocks.mlp import FeedForward
from saccade.blocks.residual import RESIDUALS, NormKind, ResidualKind
from saccade.blocks.stack import Attending, Block, LookAcross, LookBack, Sublayer, Thinking


class DecoderLayer(Block):
    """Masked self-attention, cross-attention to the source, and an MLP, each with its residual.

    x ← residual(x, attention(x, x, causal))
    x ← residual(x, attention(x, source))
    x ← residual(x, MLP(x))
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
        source: Axis = SOURCE,
    ) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(width, heads=heads, rows=TARGET, columns=TARGET)
        self.cross_attention = MultiHeadAttention(width, heads=heads, rows=TARGET, columns=source)
        self.mlp = FeedForward(width, hidden=hidden, dropout=dropout, activation=activation)
        self.around_self = RESIDUALS[residual](width, dropout=dropout, norm=norm)
        self.around_cross = RESIDUALS[residual](width, dropout=dropout, norm=norm)
        self.around_mlp = RESIDUALS[residual](width, dropout=dropout, norm=norm)

    def sublayers(self, layer: int) -> list[Sublayer]:
        return [
            Attending(self.around_self, self.self_attention, LookBack, layer),
            Attending(self.around_cross, self.cross_attention, LookAcross, layer),
            Thinking(self.around_mlp, self.mlp),
        ]
