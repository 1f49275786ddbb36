"""Decoder-only Transformer language model (GPT-2: Radford et al. 2019).

Pre-norm blocks, learned positions, GELU, tied input and output embeddings.
"""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor, nn

from saccade.blocks.dropout import Dropout
from saccade.blocks.encoder import EncoderLayer
from saccade.blocks.inference.affine import Precision
from saccade.blocks.inference.memories import Prefill
from saccade.blocks.initial import initialise_decoder
from saccade.blocks.mlp import gelu_tanh
from saccade.blocks.output import OutputLayer
from saccade.blocks.positions import Added, LearnedPositions
from saccade.config import ModelConfig, WordModelConfig, check_fraction, check_positive
from saccade.data.batching.rows import Rows
from saccade.errors import ConfigError
from saccade.models.inference.cached_decoder import CachedDecoder, Encoded
from saccade.models.text.word_decoder import DecoderState, WordDecoder


@dataclass(frozen=True, kw_only=True)
class GptConfig(WordModelConfig):
    """Sizes of a decoder-only Transformer.

    Args:
        width: of a hidden state.
        depth: layers.
        heads: of attention in a layer.
        longest: how many tokens back it can see.
        dropout: share of a layer's output that is dropped in training.
    """

    width: int = 384
    depth: int = 6
    heads: int = 6
    longest: int = 256
    dropout: float = 0.2

    def __post_init__(self) -> None:
        check_positive(self, "vocabulary", "width", "depth", "heads", "longest")
        check_fraction(self, "dropout")
        if self.width % self.heads:
            raise ConfigError(f"width={self.width} does not divide into heads={self.heads}")

    @property
    def most_words(self) -> int | None:
        return self.longest

    def build(self) -> "Gpt":
        return Gpt(self)


class Gpt(nn.Module):
    """Words + positions → causal blocks → the next word.

    p(xₜ₊₁ | x₁ … xₜ) = softmax(E · norm(blocks(E[x₁…ₜ] + P[1…t])))
    """

    def __init__(self, config: GptConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        self.positions = Added(LearnedPositions(config.longest, config.width))
        self.dropout = Dropout(config.dropout)
        self.decoder = nn.ModuleList(
            EncoderLayer(
                config.width,
                heads=config.heads,
                hidden=4 * config.width,
                dropout=config.dropout,
                residual="pre",
                activation=gelu_tanh,
            )
            for _ in range(config.depth)
        )
        self.norm = nn.LayerNorm(config.width)
        initialise_decoder(self, config.depth)

    @property
    def reach(self) -> int | None:
        """How many words back it can see."""
        return self.config.longest

    def forward(self, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        """The hidden state after each word; `output` turns it into scores of the next."""
        return self.words.decode(tokens)

    def layers_upwards(self) -> list[nn.Module]:
        return list(self.decoder)

    packs, capturable = True, True

    def packed(self, rows: Rows) -> Float[Tensor, "words D"]:
        """What `forward` gives, for texts end to end: no padding is computed."""
        return self.words.packed(rows)

    @property
    def words(self) -> WordDecoder:
        """All of it: nothing is read but words."""
        parts = self.embedding, self.positions, self.dropout, self.decoder, self.norm
        return WordDecoder(*parts, scale=1.0, longest=self.config.longest)

    @property
    def output(self) -> OutputLayer:
        """The embedding read the other way round."""
        return self.words.output

    def for_decoding(self, precision: Precision | None) -> CachedDecoder:
        """Packed once for many steps."""

        def encode(rows: int) -> Encoded:
            return Encoded(None, Prefill((rows, 0)))

        return CachedDecoder(self.words, precision, encode)

    def read(
        self, tokens: Int[Tensor, "R T"], state: DecoderState | None
    ) -> tuple[Float[Tensor, "R T D"], DecoderState]:
        """Go on from a state, which is changed."""
        return self.for_decoding(None).read(tokens, state)

    def start(self, rows: int) -> DecoderState:
        """Nothing read yet."""
        return self.for_decoding(None).start(rows)

    def step(
        self, tokens: Int[Tensor, " R"], state: DecoderState
    ) -> tuple[Float[Tensor, "R V"], DecoderState]:
        return self.for_decoding(None).step(tokens, state)


def _gpt2(width: int, depth: int, heads: int) -> GptConfig:
    return GptConfig(
        vocabulary=50257, width=width, depth=depth, heads=heads, longest=1024, dropout=0.1
    )


PRESETS: dict[str, ModelConfig] = {
    "gpt-nano": GptConfig(width=96, depth=2, heads=4, longest=128, dropout=0.0),
    "gpt-mini": GptConfig(),
    "gpt2": _gpt2(768, 12, 12),
    "gpt2-medium": _gpt2(1024, 24, 16),
    "gpt2-large": _gpt2(1280, 36, 20),
    "gpt2-xl": _gpt2(1600, 48, 25),
}
