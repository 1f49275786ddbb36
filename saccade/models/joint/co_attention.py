"""Co-attention: two streams that look at one another (Lu et al. 2019, arXiv:1908.02265)."""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from saccade.attention.axes import Axis
from saccade.attention.multihead import MultiHeadAttention
from saccade.attention.segments import Segments
from saccade.blocks.mlp import FeedForward
from saccade.blocks.residual import RESIDUALS
from saccade.blocks.stack import Attending, Block, LookAcross, Sublayer, Thinking, WholeSequences
from saccade.models.joint.config import VilbertConfig

WORDS, REGIONS = Axis("words"), Axis("regions")


class Crossing(Block):
    """One stream looks at the other, then thinks alone.

    x ← norm(x + attention(x, y))        x ← norm(x + MLP(x))
    """

    def __init__(
        self,
        config: VilbertConfig,
        *,
        width: int,
        of: int,
        hidden: int,
        rows: Axis,
        columns: Axis,
    ) -> None:
        super().__init__()
        self.cross_attention = MultiHeadAttention(
            width,
            heads=config.join_heads,
            key_width=of,
            head_width=config.join_width // config.join_heads,
            rows=rows,
            columns=columns,
        )
        self.mlp = FeedForward(width, hidden=hidden, activation=F.gelu)
        self.around_cross, self.around_mlp = (
            RESIDUALS["post"](width, dropout=config.dropout, epsilon=config.text.epsilon)
            for _ in range(2)
        )

    def sublayers(self, layer: int) -> list[Sublayer]:
        return [
            Attending(self.around_cross, self.cross_attention, LookAcross, layer),
            Thinking(self.around_mlp, self.mlp),
        ]


class CoAttention(nn.Module):
    """Words look at regions while regions look at words, each as the other was before."""

    def __init__(self, config: VilbertConfig) -> None:
        super().__init__()
        self.words = Crossing(
            config,
            width=config.width,
            of=config.region_width,
            hidden=config.hidden,
            rows=WORDS,
            columns=REGIONS,
        )
        self.regions = Crossing(
            config,
            width=config.region_width,
            of=config.width,
            hidden=config.region_hidden,
            rows=REGIONS,
            columns=WORDS,
        )

    def forward(
        self, x: Float[Tensor, "1 words D"], y: Float[Tensor, "1 regions E"], at: Segments
    ) -> tuple[Float[Tensor, "1 words D"], Float[Tensor, "1 regions E"]]:
        back = Segments(at.key_starts, at.query_starts, at.longest_key, at.longest_query)
        return (
            self.words(x, WholeSequences(source=y, source_mask=at)),
            self.regions(y, WholeSequences(source=x, source_mask=back)),
        )
