"""The Transformer (Vaswani et al. 2017, arXiv:1706.03762).

Departs from the paper's code in having no dropout on the attention weights. One vocabulary serves
both languages, and its embedding is also the output layer, as published.
"""

from dataclasses import dataclass
from typing import Any

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from saccade.attention import masks
from saccade.attention.axes import SOURCE
from saccade.attention.cache import KeyValues, Lineage, followed
from saccade.attention.segments import Segments
from saccade.blocks.decoder import DecoderLayer, LayerMemory
from saccade.blocks.dropout import Dropout
from saccade.blocks.encoder import EncoderLayer
from saccade.blocks.output import OutputLayer
from saccade.blocks.positions import Added, PositionKind, make_positions
from saccade.blocks.residual import NormKind, ResidualKind
from saccade.config import ModelConfig, check_fraction, check_positive
from saccade.data.rows import Rows
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
    """What decoding needs of the source and of the words so far; beams share both."""

    layers: list[LayerMemory]
    source_mask: Bool[Tensor, "B 1 1 S"] | None
    position: int
    lineage: Lineage | None = None

    def select(self, rows: Int[Tensor, " B2"]) -> "TransformerState":
        mask = None if self.source_mask is None else self.source_mask[rows]
        layers = [layer.select(rows) for layer in self.layers]
        lineage = None if self.lineage is None else self.lineage.select(rows)
        return TransformerState(layers, mask, self.position, lineage)

    def spread(self, beams: int) -> "TransformerState":
        past = self._past
        lineage = Lineage.parting(len(past.keys), beams, past.length, past.keys.device)
        return self._led_by(lineage)

    def follow(self, parents: Int[Tensor, "B k"]) -> "TransformerState":
        assert self.lineage is not None
        length, step = self._past.length, self.position
        return self._led_by(*followed(self.lineage, parents, length, step))

    @property
    def _past(self) -> KeyValues:
        past = self.layers[0].past
        assert past is not None
        return past

    def _led_by(
        self, lineage: Lineage, kept: Int[Tensor, "B E2"] | None = None
    ) -> "TransformerState":
        layers = [layer.led_by(lineage, kept) for layer in self.layers]
        return TransformerState(layers, self.source_mask, self.position, lineage)


class Transformer(nn.Module):
    """Source → encoder → memory; target + memory → decoder → the next word."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        encoding = make_positions(config.positions, longest=config.longest, width=config.width)
        self.positions = None if encoding is None else Added(encoding)
        self.dropout = Dropout(config.dropout)
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

    @property
    def packs(self) -> bool:
        """Whether sentences may lie end to end: not when a position depends on the length, nor
        when a norm looks at all of a batch, where what only fills it up would count.
        """
        return self.config.positions != "fraction" and self.config.norm == "layer"

    def packed(self, source: Rows, target: Rows) -> Float[Tensor, "words D"]:
        """What `forward` gives, for sentences end to end: no padding is computed."""
        x, itself = self._embed_rows(source), Segments.among(source.starts, source.longest)
        for layer in self.encoder:
            x = layer(x, mask=itself)
        x = self.encoder_norm(x)
        y, itself = self._embed_rows(target), Segments.among(target.starts, target.longest)
        across = Segments(target.starts, source.starts, target.longest, source.longest)
        for layer in self._decoders():
            y = layer(y, x, mask=itself, source_mask=across)
        return self.decoder_norm(y)[0]

    @property
    def output(self) -> OutputLayer:
        """The embedding read the other way round."""
        return OutputLayer(self.embedding.weight)

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

    def _embed_rows(self, rows: Rows) -> Float[Tensor, "1 T D"]:
        x = self.embedding(rows.tokens[None]) * self.config.width**0.5
        if self.positions is not None:
            x = self.positions.at(x, rows.places[None], rows.longest)
        return self.dropout(x)

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
