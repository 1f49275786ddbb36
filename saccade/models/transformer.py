"""The Transformer (Vaswani et al. 2017, arXiv:1706.03762).

Departs from the paper's code in having no dropout on the attention weights. One vocabulary serves
both languages, and its embedding is also the output layer, as published.
"""

from dataclasses import dataclass
from typing import Any

import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from saccade.attention import masks
from saccade.attention.axes import SOURCE
from saccade.attention.cache import KeyValues
from saccade.blocks.decoder import DecoderLayer, LayerMemory
from saccade.blocks.encoder import EncoderLayer
from saccade.blocks.positions import Added, PositionKind, make_positions
from saccade.blocks.residual import NormKind, ResidualKind
from saccade.config import ModelConfig, check_fraction, check_positive
from saccade.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class TransformerConfig(ModelConfig):
    """Sizes of an encoder–decoder Transformer; `depth` counts the layers of either half."""

    width: int = 512
    depth: int = 6
    heads: int = 8
    hidden: int = 2048
    dropout: float = 0.1
    residual: ResidualKind = "post"
    norm: NormKind = "layer"
    positions: PositionKind = "sinusoids"
    longest: int = 1024

    def __post_init__(self) -> None:
        check_positive(self, "vocabulary", "width", "depth", "heads", "hidden", "longest")
        check_fraction(self, "dropout")
        if self.width % self.heads:
            raise ConfigError(f"width={self.width} does not divide into heads={self.heads}")

    def build(self) -> "Transformer":
        return Transformer(self)


@dataclass
class TransformerState:
    """What decoding needs of the source and of the words so far."""

    layers: list[LayerMemory]
    source_mask: Bool[Tensor, "R 1 1 S"] | None
    position: int

    def select(self, rows: Int[Tensor, " R2"]) -> "TransformerState":
        mask = None if self.source_mask is None else self.source_mask[rows]
        return TransformerState([layer.select(rows) for layer in self.layers], mask, self.position)


class Transformer(nn.Module):
    """Source → encoder → memory; target + memory → decoder → the next word."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        encoding = make_positions(config.positions, longest=config.longest, width=config.width)
        self.positions = None if encoding is None else Added(encoding)
        self.dropout = nn.Dropout(config.dropout)
        self.encoder = nn.ModuleList(
            EncoderLayer(**self._sizes(), axis=SOURCE) for _ in range(config.depth)
        )
        self.decoder = nn.ModuleList(DecoderLayer(**self._sizes()) for _ in range(config.depth))
        # Pre-norm never normalises the sum of its residuals, so the stack ends with a norm.
        last = nn.LayerNorm if config.residual == "pre" else nn.Identity
        self.encoder_norm, self.decoder_norm = last(config.width), last(config.width)
        self._initialise()

    def _sizes(self) -> dict[str, Any]:
        config = self.config
        names = ("width", "heads", "hidden", "dropout", "residual", "norm")
        return {name: getattr(config, name) for name in names}

    def _initialise(self) -> None:
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)
        nn.init.normal_(self.embedding.weight, std=self.config.width**-0.5)

    def forward(
        self,
        source: Int[Tensor, "B S"],
        lengths: Int[Tensor, " B"],
        target: Int[Tensor, "B T"],
    ) -> Float[Tensor, "B T D"]:
        """What is known after each target word; `output` turns it into scores of the next."""
        state = self._remember(source, lengths)
        return self._decode(target, state)

    def output(self, features: Float[Tensor, "*batch D"]) -> Float[Tensor, "*batch V"]:
        return F.linear(features, self.embedding.weight)

    def start(self, source: Int[Tensor, "B S"], lengths: Int[Tensor, " B"]) -> TransformerState:
        """Read the source once; nothing decoded yet."""
        state = self._remember(source, lengths)
        heads, width = self.config.heads, self.config.width // self.config.heads
        for layer in state.layers:
            like = layer.source_keys[:, 0, 0]
            layer.past = KeyValues.empty(like, heads=heads, width=width)
        return state

    def step(
        self, tokens: Int[Tensor, " R"], state: TransformerState
    ) -> tuple[Float[Tensor, "R V"], TransformerState]:
        features = self._decode(tokens[:, None], state)
        state.position += 1
        return self.output(features[:, 0]), state

    def _remember(self, source: Int[Tensor, "B S"], lengths: Int[Tensor, " B"]) -> TransformerState:
        ragged = int(lengths.min()) < source.shape[1]
        mask = masks.padding(lengths.to(source.device), source.shape[1]) if ragged else None
        x = self._embed(source, start=0)
        for layer in self.encoder:
            x = layer(x, mask=mask)
        x = self.encoder_norm(x)
        return TransformerState([layer.remember(x) for layer in self._decoders()], mask, 0)

    def _decode(self, target: Int[Tensor, "R T"], state: TransformerState) -> Tensor:
        x = self._embed(target, start=state.position)
        for layer, memory in zip(self._decoders(), state.layers):
            x = layer(x, memory, source_mask=state.source_mask)
        return self.decoder_norm(x)

    def _embed(self, tokens: Int[Tensor, "B T"], *, start: int) -> Float[Tensor, "B T D"]:
        x = self.embedding(tokens) * self.config.width**0.5
        return self.dropout(x if self.positions is None else self.positions(x, start=start))

    def _decoders(self) -> list[DecoderLayer]:
        return list(self.decoder)  # type: ignore[arg-type]


PRESETS: dict[str, ModelConfig] = {
    "transformer-nano": TransformerConfig(
        width=192, depth=2, heads=4, hidden=512, dropout=0.0, residual="pre"
    ),
    "transformer-small": TransformerConfig(
        width=256, depth=3, heads=4, hidden=1024, dropout=0.3, residual="pre"
    ),
    "transformer-base": TransformerConfig(vocabulary=37000),
    "transformer-big": TransformerConfig(
        vocabulary=37000, width=1024, heads=16, hidden=4096, dropout=0.3
    ),
}
