"""The Transformer's decoder block: look back, look across, think alone."""

from dataclasses import dataclass

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from saccade.attention.axes import SOURCE, TARGET
from saccade.attention.cache import KeyValues
from saccade.attention.multihead import MultiHeadAttention
from saccade.blocks.mlp import FeedForward
from saccade.blocks.residual import RESIDUALS, NormKind, ResidualKind


@dataclass
class LayerMemory:
    """What one decoder layer looks at: its own past, and the source, projected once."""

    source_keys: Float[Tensor, "R N S K"]
    source_values: Float[Tensor, "R N S K"]
    past: KeyValues | None = None

    def select(self, rows: Int[Tensor, " R2"]) -> "LayerMemory":
        past = None if self.past is None else self.past.select(rows)
        return LayerMemory(self.source_keys[rows], self.source_values[rows], past)


class DecoderLayer(nn.Module):
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
    ) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(width, heads=heads, rows=TARGET, columns=TARGET)
        self.cross_attention = MultiHeadAttention(width, heads=heads, rows=TARGET, columns=SOURCE)
        self.mlp = FeedForward(width, hidden=hidden, dropout=dropout)
        self.around_self = RESIDUALS[residual](width, dropout=dropout, norm=norm)
        self.around_cross = RESIDUALS[residual](width, dropout=dropout, norm=norm)
        self.around_mlp = RESIDUALS[residual](width, dropout=dropout, norm=norm)

    def remember(self, source: Float[Tensor, "B S D"]) -> LayerMemory:
        """Project the source's keys and values, which no step changes."""
        return LayerMemory(*self.cross_attention.memory(source))

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        memory: LayerMemory,
        *,
        source_mask: Bool[Tensor, "#B #N #T S"] | None = None,
    ) -> Float[Tensor, "B T D"]:
        """Without a past, all of the target is there; with one, `x` is what comes next."""

        def look_back(x: Tensor) -> Tensor:
            return self.self_attention(x, x, causal=True, cache=memory.past)

        def look_across(x: Tensor) -> Tensor:
            keys, values = memory.source_keys, memory.source_values
            return self.cross_attention.read(x, keys, values, mask=source_mask)

        x = self.around_cross(self.around_self(x, look_back), look_across)
        return self.around_mlp(x, self.mlp)
