"""Decoder-only Transformer language model (GPT-2: Radford et al. 2019).

Pre-norm blocks, learned positions, GELU, tied input and output embeddings.
"""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor, nn

from saccade.attention.cache import KeyValues, Lineage, followed
from saccade.attention.segments import Segments
from saccade.blocks.dropout import Dropout
from saccade.blocks.encoder import EncoderLayer, through
from saccade.blocks.mlp import gelu_tanh
from saccade.blocks.output import OutputLayer
from saccade.blocks.positions import Added, LearnedPositions
from saccade.config import ModelConfig, check_fraction, check_positive
from saccade.data.rows import Rows
from saccade.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class GptConfig(ModelConfig):
    """Sizes of a decoder-only Transformer; `longest` is how far back it can see."""

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

    def build(self) -> "Gpt":
        return Gpt(self)


@dataclass
class GptState:
    """Keys and values of every layer for what has been read; beams share them."""

    layers: list[KeyValues]
    position: int = 0
    lineage: Lineage | None = None

    def select(self, rows: Int[Tensor, " B2"]) -> "GptState":
        lineage = None if self.lineage is None else self.lineage.select(rows)
        return GptState([layer.select(rows) for layer in self.layers], self.position, lineage)

    def spread(self, beams: int) -> "GptState":
        past = self.layers[0]
        lineage = Lineage.parting(len(past.keys), beams, past.length, past.keys.device)
        return self._led_by(lineage)

    def follow(self, parents: Int[Tensor, "B k"]) -> "GptState":
        assert self.lineage is not None
        length, step = self.layers[0].length, self.position
        return self._led_by(*followed(self.lineage, parents, length, step))

    def _led_by(self, lineage: Lineage, kept: Int[Tensor, "B E2"] | None = None) -> "GptState":
        layers = [layer.led_by(lineage, kept) for layer in self.layers]
        return GptState(layers, self.position, lineage)


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
        self._initialise()

    def _initialise(self) -> None:
        """N(0, 0.02); what writes into the residual stream smaller, so that depth adds up to 1."""
        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(parameter)
            elif parameter.dim() == 2:
                writes = name.endswith(("to_output.weight", "narrow.weight"))
                scale = (2 * self.config.depth) ** -0.5 if writes else 1.0
                nn.init.normal_(parameter, std=0.02 * scale)

    @property
    def reach(self) -> int | None:
        """How many words back it can see."""
        return self.config.longest

    def forward(self, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        """What is known after each word; `output` turns it into scores of the next."""
        x = self.dropout(self.positions(self.embedding(tokens)))
        return through(self.decoder, x, self.norm, causal=True)

    packs = True

    def packed(self, rows: Rows) -> Float[Tensor, "words D"]:
        """What `forward` gives, for texts end to end: no padding is computed."""
        x = self.positions.at(self.embedding(rows.tokens[None]), rows.places[None], rows.longest)
        x, itself = self.dropout(x), Segments.among(rows.starts, rows.longest)
        return through(self.decoder, x, self.norm, mask=itself, causal=True)[0]

    @property
    def output(self) -> OutputLayer:
        """The embedding read the other way round."""
        return OutputLayer(self.embedding.weight)

    def read(
        self, tokens: Int[Tensor, "R T"], state: GptState | None
    ) -> tuple[Float[Tensor, "R T D"], GptState]:
        """Go on from a state, which is changed."""
        state = state or self.start(len(tokens))
        x = self.positions(self.embedding(tokens), start=state.position)
        for layer, cache in zip(self.decoder, state.layers):
            x = layer(x, causal=True, cache=cache)
        state.position += tokens.shape[1]
        return self.norm(x), state

    def start(self, rows: int) -> GptState:
        """Nothing read yet."""
        config = self.config
        like = self.embedding.weight.new_empty(rows, 0)
        width = config.width // config.heads
        return GptState(
            [KeyValues.empty(like, heads=config.heads, width=width) for _ in range(config.depth)]
        )

    def step(
        self, tokens: Int[Tensor, " R"], state: GptState
    ) -> tuple[Float[Tensor, "R V"], GptState]:
        features, state = self.read(tokens[:, None], state)
        return self.output(features[:, 0]), state


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
