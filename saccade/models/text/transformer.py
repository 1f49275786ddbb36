"""The Transformer (Vaswani et al. 2017, arXiv:1706.03762).

Departs from the paper's code in having no dropout on the attention weights. One vocabulary serves
both languages, and its embedding is also the output layer, as published. Marian's translators
(Junczys-Dowmunt et al. 2018, arXiv:1804.00344) have another activation, and a bias there.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from saccade.attention import masks
from saccade.attention.axes import SOURCE
from saccade.attention.segments import Segments
from saccade.blocks.decoder import DecoderLayer
from saccade.blocks.dropout import Dropout
from saccade.blocks.encoder import EncoderLayer
from saccade.blocks.inference.affine import Precision
from saccade.blocks.inference.memories import Prefill
from saccade.blocks.mlp import ACTIVATIONS, ActivationKind
from saccade.blocks.output import OutputLayer
from saccade.blocks.positions import Added, PositionKind, make_positions
from saccade.blocks.residual import NormKind, ResidualKind
from saccade.blocks.stack import WholeSequences, packable, run_blocks, stack_for, sublayers
from saccade.config import ModelConfig, WordModelConfig, check_fraction, check_positive
from saccade.data.batching.rows import Rows
from saccade.errors import ConfigError
from saccade.models.inference.cached_decoder import CachedDecoder, Encoded, decoding_dtype
from saccade.models.text.word_decoder import DecoderState, WordDecoder


@dataclass(frozen=True, kw_only=True)
class TransformerConfig(WordModelConfig):
    """Sizes of an encoder–decoder Transformer.

    Args:
        width: of a hidden state.
        depth: layers of either half.
        heads: of attention in a layer.
        hidden: width inside the MLP of a layer.
        dropout: share of a sublayer's output that is dropped in training.
        residual: normalise after each residual, as published, or before each sublayer.
        norm: LayerNorm, or BatchNorm over all words.
        positions: how a word knows its place.
        longest: how many tokens a sentence may have.
        activation: inside the MLP of a layer.
        output_bias: of the output layer, for how frequent each word is.
    """

    width: int = 512
    depth: int = 6
    heads: int = 8
    hidden: int = 2048
    dropout: float = 0.1
    residual: ResidualKind = "post"
    norm: NormKind = "layer"
    positions: PositionKind = "sinusoids"
    longest: int = 1024
    activation: ActivationKind = "relu"
    output_bias: bool = False

    def __post_init__(self) -> None:
        check_positive(self, "vocabulary", "width", "depth", "heads", "hidden", "longest")
        check_fraction(self, "dropout")
        if self.width % self.heads:
            raise ConfigError(f"width={self.width} does not divide into heads={self.heads}")

    @property
    def most_words(self) -> int | None:
        return self.longest if self.positions == "learned" else None

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
        bias = nn.Parameter(torch.zeros(config.vocabulary)) if config.output_bias else None
        self.register_parameter("output_bias", bias)
        self.output_bias: nn.Parameter | None
        self._initialise()

    def _sizes(self) -> dict[str, Any]:
        config = self.config
        names = ("width", "heads", "hidden", "dropout", "residual", "norm")
        sizes = {name: getattr(config, name) for name in names}
        return {**sizes, "activation": ACTIVATIONS[config.activation]}

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
        """The hidden state after each target word; `output` turns it into scores of the next."""
        words, mask = self.words, _padding(source, lengths)
        return words.decode(target, self._encode(words.embed(source), WholeSequences(mask)), mask)

    @property
    def longest(self) -> int | None:
        return self.config.longest

    @property
    def capturable(self) -> bool:
        return self.packs

    @property
    def packs(self) -> bool:
        """Whether sentences may lie end to end: not when a position depends on the length, nor
        when a norm looks at all of a batch, where what only fills it up would count.
        """
        return self.config.positions != "fraction" and self.config.norm == "layer"

    def packed(self, source: Rows, target: Rows) -> Float[Tensor, "words D"]:
        """What `forward` gives, for sentences end to end: no padding is computed."""
        words, itself = self.words, Segments.among(source.starts, source.longest)
        memory = self._encode(words.embed_rows(source), WholeSequences(itself))
        across = Segments(target.starts, source.starts, target.longest, source.longest)
        return words.packed(target, memory, across)

    def _encode(self, x: Float[Tensor, "B S D"], memory: WholeSequences) -> Float[Tensor, "B S D"]:
        return run_blocks(self.encoder, self.encoder_norm, x, memory)

    @property
    def words(self) -> WordDecoder:
        """The half that writes."""
        parts = self.embedding, self.positions, self.dropout, self.decoder, self.decoder_norm
        scale, longest = self.config.width**0.5, self.config.longest
        return WordDecoder(*parts, scale=scale, longest=longest, output_bias=self.output_bias)

    @property
    def output(self) -> OutputLayer:
        """The embedding read the other way round."""
        return self.words.output

    def for_decoding(self, precision: Precision) -> CachedDecoder | None:
        """Packed once for many steps; only LayerNorm can be."""
        parts = sublayers([*self.encoder, *self.decoder])
        return self._cached(precision) if packable(parts) else None

    def _cached(self, precision: Precision | None) -> CachedDecoder:
        words, parts = self.words, sublayers(self.encoder)
        dtype = decoding_dtype(words, precision)
        encoder = stack_for(parts, self.encoder_norm, precision, self.embedding.weight)

        def encode(source: Int[Tensor, "B S"], lengths: Int[Tensor, " B"]) -> Encoded:
            prefill = Prefill((source.shape[0], source.shape[1]), mask=_padding(source, lengths))
            x = words.at_positions(source).to(dtype).flatten(0, 1)
            return Encoded(encoder(prefill.without_padding(x), prefill), prefill)

        return CachedDecoder(words, precision, encode)

    def start(self, source: Int[Tensor, "B S"], lengths: Int[Tensor, " B"]) -> DecoderState:
        """Read the source once; nothing decoded yet."""
        return self._cached(None).start(source, lengths)

    def step(
        self, tokens: Int[Tensor, " R"], state: DecoderState
    ) -> tuple[Float[Tensor, "R V"], DecoderState]:
        return self._cached(None).step(tokens, state)


def _padding(
    source: Int[Tensor, "B S"], lengths: Int[Tensor, " B"]
) -> Bool[Tensor, "B 1 1 S"] | None:
    """What of a source is no padding, if there is any."""
    ragged = torch.compiler.is_exporting() or int(lengths.min()) < source.shape[1]
    return masks.padding(lengths.to(source.device), source.shape[1]) if ragged else None


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
