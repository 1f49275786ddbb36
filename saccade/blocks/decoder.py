"""The Transformer's decoder block: look back, look across, think alone."""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor, nn

from saccade.attention.attend import Mask
from saccade.attention.axes import SOURCE, TARGET, Axis
from saccade.attention.cache import KeyValues, Lineage
from saccade.attention.multihead import MultiHeadAttention
from saccade.blocks.mlp import FeedForward
from saccade.blocks.residual import RESIDUALS, NormKind, ResidualKind


@dataclass
class LayerMemory:
    """What one decoder layer looks at: its own past, and the source, projected once.

    The source is there once for each sentence, however many beams look at it.
    """

    source_keys: Float[Tensor, "B N S K"]
    source_values: Float[Tensor, "B N S K"]
    past: KeyValues | None = None

    def select(self, sentences: Int[Tensor, " B2"]) -> "LayerMemory":
        past = None if self.past is None else self.past.select(sentences)
        return LayerMemory(self.source_keys[sentences], self.source_values[sentences], past)

    def led_by(self, lineage: Lineage, kept: Int[Tensor, "B E2"] | None = None) -> "LayerMemory":
        """The same memory, seen by beams with this past."""
        past = None if self.past is None else self.past.led_by(lineage, kept)
        return LayerMemory(self.source_keys, self.source_values, past)


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
        source: Axis = SOURCE,
    ) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(width, heads=heads, rows=TARGET, columns=TARGET)
        self.cross_attention = MultiHeadAttention(width, heads=heads, rows=TARGET, columns=source)
        self.mlp = FeedForward(width, hidden=hidden, dropout=dropout)
        self.around_self = RESIDUALS[residual](width, dropout=dropout, norm=norm)
        self.around_cross = RESIDUALS[residual](width, dropout=dropout, norm=norm)
        self.around_mlp = RESIDUALS[residual](width, dropout=dropout, norm=norm)

    def remember(self, source: Float[Tensor, "B S D"]) -> LayerMemory:
        """Project the source's keys and values, which no step changes."""
        return LayerMemory(*self.cross_attention.memory(source))

    def forward(
        self,
        x: Float[Tensor, "R T D"],
        memory: LayerMemory | Float[Tensor, "B S D"],
        *,
        mask: Mask = None,
        source_mask: Mask = None,
    ) -> Float[Tensor, "R T D"]:
        """Without a past, all of the target is there; with one, `x` is what comes next.

        Where nothing is to be remembered, the memory may be the source itself.
        """
        past = None if isinstance(memory, Tensor) else memory.past

        def look_back(x: Tensor) -> Tensor:
            return self.self_attention(x, x, mask=mask, causal=True, cache=past)

        def look_across(x: Tensor) -> Tensor:
            if isinstance(memory, Tensor):
                return self.cross_attention(x, memory, mask=source_mask)
            return self._across(x, memory, source_mask)

        x = self.around_cross(self.around_self(x, look_back), look_across)
        return self.around_mlp(x, self.mlp)

    def _across(
        self, x: Float[Tensor, "R T D"], memory: LayerMemory, mask: Mask
    ) -> Float[Tensor, "R T D"]:
        keys, values = memory.source_keys, memory.source_values
        beams = len(x) // len(keys)
        if beams == 1:
            return self.cross_attention.read(x, keys, values, mask=mask)
        if self.cross_attention.watcher is None:  # the beams of a sentence are its queries
            queries = x.view(len(keys), beams, -1)
            return self.cross_attention.read(queries, keys, values, mask=mask).view_as(x)
        keys, values = (y.repeat_interleave(beams, dim=0) for y in (keys, values))
        if isinstance(mask, Tensor):
            mask = mask.repeat_interleave(beams, dim=0)
        return self.cross_attention.read(x, keys, values, mask=mask)
