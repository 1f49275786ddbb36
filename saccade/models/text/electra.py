"""Pre-training by words that somebody replaced (ELECTRA: Clark et al. 2020, arXiv:2003.10555).

A small generator fills hidden words; a discriminator tells which words are not the author's, and is
what one keeps: a `Bert`, whose classifiers start from a run of this. All embeddings are shared, as
published; the generator is narrower by a factor and as deep.
"""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor, nn

from saccade.attention.kernels.train.linear import Linear
from saccade.blocks.output import OutputLayer
from saccade.config import ModelConfig, check_positive
from saccade.data.batching.rows import Rows
from saccade.errors import ConfigError
from saccade.models.text.bert import (
    Bert,
    BertConfig,
    TextEmbeddings,
    WordFiller,
    encoded,
    encoder_layers,
    initialise,
)
from saccade.models.text.text_encoder import HeadKind, TextEncoderConfig


@dataclass(frozen=True, kw_only=True)
class ElectraConfig(TextEncoderConfig):
    """Sizes of an ELECTRA while it is pre-trained.

    Args:
        width: of a hidden state of the discriminator.
        depth: layers of either part.
        heads: of attention in a layer of the discriminator.
        hidden: width inside the MLP of a layer of the discriminator.
        longest: how many tokens a text may have.
        dropout: share of a sublayer's output that is dropped in training.
        embedding_width: of a word's vector.
        generator: its width, heads and hidden width, as shares of the discriminator's.
    """

    head: HeadKind = "replaced"
    width: int = 256
    depth: int = 12
    heads: int = 4
    hidden: int = 1024
    longest: int = 512
    dropout: float = 0.1
    embedding_width: int = 128
    generator: float = 0.25

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self, "embedding_width")
        if self.head != "replaced":
            raise ConfigError(
                f"head={self.head!r}: an electra is for pre-training alone; "
                "start a bert from its run (--init) for anything else"
            )
        if not 0 < self.generator <= 1:
            raise ConfigError(f"generator={self.generator} must be above 0 and at most 1")
        assert self.discriminator  # which checks the sizes
        width, heads, _ = self.generator_sizes
        if width % heads or not width:
            raise ConfigError(
                f"generator={self.generator} of width={self.width} is {width}, which does not "
                f"divide into {heads} heads"
            )

    @property
    def kept(self) -> BertConfig:
        return self.discriminator

    @property
    def discriminator(self) -> BertConfig:
        """The part that is kept."""
        return BertConfig(
            vocabulary=self.vocabulary,
            head="replaced",
            width=self.width,
            depth=self.depth,
            heads=self.heads,
            hidden=self.hidden,
            longest=self.longest,
            dropout=self.dropout,
            pooling="gelu",
            embedding_width=self.embedding_width,
        )

    @property
    def generator_sizes(self) -> tuple[int, int, int]:
        """Width, heads and hidden width."""
        share = self.generator
        return (
            int(self.width * share),
            max(1, int(self.heads * share)),
            max(1, int(self.hidden * share)),
        )

    @property
    def most_words(self) -> int | None:
        return self.longest

    def build(self) -> "Electra":
        return Electra(self)


class GeneratorLayers(nn.Module):
    """All of a generator but its embeddings."""

    def __init__(self, config: ElectraConfig) -> None:
        super().__init__()
        width, heads, hidden = config.generator_sizes
        projects = width != config.embedding_width
        self.project = Linear(config.embedding_width, width) if projects else None
        self.encoder = encoder_layers(config.discriminator, width, heads, hidden)
        self.words = WordFiller(width, config.discriminator)


@dataclass(frozen=True)
class Generator:
    """A small model that fills hidden words; implements `FillsWords`.

    It is no module: its embeddings are the discriminator's own.
    """

    embeddings: TextEmbeddings
    layers: GeneratorLayers
    longest: int | None

    packs, capturable = True, True

    def __call__(self, rows: Rows, types: Int[Tensor, " words"]) -> Float[Tensor, "words D"]:
        layers = self.layers
        return encoded(self.embeddings(rows, types), layers.project, layers.encoder, rows)

    @property
    def output(self) -> OutputLayer:
        return OutputLayer(self.embeddings.words.weight, self.layers.words.bias)

    def transformed(self, hidden: Float[Tensor, "n D"]) -> Float[Tensor, "n E"]:
        return self.layers.words(hidden)

    def follows(self, hidden: Float[Tensor, "words D"], rows: Rows) -> Float[Tensor, "B 2"]:
        raise AssertionError("ELECTRA has no next sentence")


class Electra(nn.Module):
    """Hidden words → generator → words of its choice → discriminator → which are the author's.

    Called, it gives the discriminator's hidden states.
    """

    def __init__(self, config: ElectraConfig) -> None:
        super().__init__()
        self.config = config
        self.discriminator = Bert(config.discriminator)
        self.generator_layers = GeneratorLayers(config)
        initialise(self.generator_layers)

    packs, capturable = True, True

    @property
    def longest(self) -> int | None:
        return self.config.longest

    @property
    def generator(self) -> Generator:
        """The part that is given up after training."""
        return Generator(self.discriminator.embeddings, self.generator_layers, self.longest)

    def layers_upwards(self) -> list[nn.Module]:
        return self.discriminator.layers_upwards()

    def forward(self, rows: Rows, types: Int[Tensor, " words"]) -> Float[Tensor, "words D"]:
        return self.discriminator(rows, types)

    def scores(self, hidden: Float[Tensor, "words D"], rows: Rows) -> Float[Tensor, "words 1"]:
        """Of each token, the logit of not being the author's."""
        return self.discriminator.scores(hidden, rows)


PRESETS: dict[str, ModelConfig] = {
    "electra-nano": ElectraConfig(
        vocabulary=2000,
        width=96,
        depth=2,
        heads=4,
        hidden=384,
        longest=128,
        dropout=0.0,
        embedding_width=64,
        generator=0.5,
    ),
    "electra-small-pretraining": ElectraConfig(vocabulary=30522),
    "electra-base-pretraining": ElectraConfig(
        vocabulary=30522,
        width=768,
        heads=12,
        hidden=3072,
        embedding_width=768,
        generator=1 / 3,
    ),
}
