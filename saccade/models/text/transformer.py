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
from saccade.attention.segments import Segments
from saccade.blocks.decoder import DecoderLayer
from saccade.blocks.dropout import Dropout
from saccade.blocks.encoder import EncoderLayer
from saccade.blocks.output import OutputLayer
from saccade.blocks.positions import Added, PositionKind, make_positions
from saccade.blocks.residual import NormKind, ResidualKind
from saccade.config import ModelConfig, check_fraction, check_positive
from saccade.data.rows import Rows
from saccade.errors import ConfigError
from saccade.models.text.word_decoder import TransformerState, WordDecoder


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
        words = self.words
        return words.decode(target, words.remember(*self._read(source, lengths)))

    @property
    def packs(self) -> bool:
        """Whether sentences may lie end to end: not when a position depends on the length, nor
        when a norm looks at all of a batch, where what only fills it up would count.
        """
        return self.config.positions != "fraction" and self.config.norm == "layer"

    def packed(self, source: Rows, target: Rows) -> Float[Tensor, "words D"]:
        """What `forward` gives, for sentences end to end: no padding is computed."""
        x, itself = self.words.embed_rows(source), Segments.among(source.starts, source.longest)
        for layer in self.encoder:
            x = layer(x, mask=itself)
        across = Segments(target.starts, source.starts, target.longest, source.longest)
        return self.words.packed(target, self.encoder_norm(x), across)

    @property
    def words(self) -> WordDecoder:
        """The half that writes."""
        layers: Any = list(self.decoder)
        return WordDecoder(self.embedding, self.positions, self.dropout, layers, self.decoder_norm)

    @property
    def output(self) -> OutputLayer:
        """The embedding read the other way round."""
        return self.words.output

    def start(self, source: Int[Tensor, "B S"], lengths: Int[Tensor, " B"]) -> TransformerState:
        """Read the source once; nothing decoded yet."""
        return self.words.start(*self._read(source, lengths))

    def step(
        self, tokens: Int[Tensor, " R"], state: TransformerState
    ) -> tuple[Float[Tensor, "R V"], TransformerState]:
        return self.words.step(tokens, state)

    def _read(
        self, source: Int[Tensor, "B S"], lengths: Int[Tensor, " B"]
    ) -> tuple[Float[Tensor, "B S D"], Bool[Tensor, "B 1 1 S"] | None]:
        """The source as a memory, and what of it is no padding."""
        ragged = int(lengths.min()) < source.shape[1]
        mask = masks.padding(lengths.to(source.device), source.shape[1]) if ragged else None
        x = self.words.embed(source)
        for layer in self.encoder:
            x = layer(x, mask=mask)
        return self.encoder_norm(x), mask


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
