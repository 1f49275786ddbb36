"""Bidirectional encoder of texts (BERT: Devlin et al. 2019, arXiv:1810.04805), and its relatives.

Post-norm blocks, learned positions, exact GELU, words tied to the output layer. RoBERTa (Liu et al.
2019, arXiv:1907.11692), DistilBERT (Sanh et al. 2019, arXiv:1910.01108), MiniLM (Wang et al. 2020,
arXiv:2002.10957) and the discriminator of ELECTRA (Clark et al. 2020, arXiv:2003.10555) are other
sizes of it. Departs from the published code in having no dropout on the attention weights, and
none before the pooler of a RoBERTa or an ELECTRA.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from saccade.attention.kernels.train.linear import Linear
from saccade.attention.segments import Segments
from saccade.blocks.dropout import Dropout
from saccade.blocks.encoder import EncoderLayer
from saccade.blocks.output import OutputLayer
from saccade.blocks.positions import LearnedPositions
from saccade.blocks.stack import WholeSequences, run_blocks
from saccade.config import ModelConfig, check_fraction, check_positive
from saccade.data.batching.rows import Rows
from saccade.errors import ConfigError
from saccade.models.text.text_encoder import (
    ReadingPlace,
    TextEncoderConfig,
    place_read,
    state_read,
)

PoolingKind = Literal["tanh", "relu", "gelu"]
POOLING: dict[PoolingKind, Callable[[Tensor], Tensor]] = {
    "tanh": torch.tanh,
    "relu": F.relu,
    "gelu": F.gelu,
}


@dataclass(frozen=True, kw_only=True)
class BertConfig(TextEncoderConfig):
    """Sizes of a BERT.

    Args:
        width: of a hidden state.
        depth: layers.
        heads: of attention in a layer.
        hidden: width inside the MLP of a layer.
        longest: how many tokens a text may have.
        types: of tokens that it tells apart: 2 for pairs of texts; with fewer it does not.
        first_position: of the learnt positions, which is a text's first (RoBERTa begins at 2).
        epsilon: of the norms.
        dropout: share of a sublayer's output that is dropped in training.
        reads: at which token a text's class is read, the first as published, or from the mean of
            all, as encoders of sentences are trained.
        pooling: what bends that state before the class is read from it.
        embedding_width: of a word's vector, where it is not the width; a projection follows.
    """

    vocabulary: int = 30522
    width: int = 768
    depth: int = 12
    heads: int = 12
    hidden: int = 3072
    longest: int = 512
    types: int = 2
    first_position: int = 0
    epsilon: float = 1e-12
    dropout: float = 0.1
    reads: ReadingPlace = "first"
    pooling: PoolingKind = "tanh"
    embedding_width: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self, "width", "depth", "heads", "hidden", "longest")
        check_fraction(self, "dropout")
        if self.width % self.heads:
            raise ConfigError(f"width={self.width} does not divide into heads={self.heads}")
        if self.types < 0 or self.first_position < 0:
            found = f"types={self.types}, first_position={self.first_position}"
            raise ConfigError(f"{found} must be 0 or more")
        if self.embedding_width is not None and self.embedding_width < 1:
            raise ConfigError(f"embedding_width={self.embedding_width} must be at least 1, or None")

    @property
    def most_words(self) -> int | None:
        return self.longest

    @property
    def word_width(self) -> int:
        """Of a word's vector."""
        return self.embedding_width or self.width

    def build(self) -> "Bert":
        return Bert(self)


class TextEmbeddings(nn.Module):
    """Words, told their place and which text they are of.

    x = dropout(norm(E[word] + P[place] + T[type]))
    """

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.first = config.first_position
        self.words = nn.Embedding(config.vocabulary, config.word_width)
        self.positions = LearnedPositions(self.first + config.longest, config.word_width)
        self.types = nn.Embedding(config.types, config.word_width) if config.types else None
        self.norm = nn.LayerNorm(config.word_width, config.epsilon)
        self.dropout = Dropout(config.dropout)

    def forward(self, rows: Rows, types: Int[Tensor, " words"]) -> Float[Tensor, "1 words E"]:
        places = rows.places + self.first
        x = self.words(rows.tokens) + self.positions.at(places, rows.longest + self.first)
        if self.types is not None:
            one = self.types.num_embeddings == 1
            x = x + (self.types.weight[0] if one else self.types(types))
        return self.dropout(self.norm(x))[None]


class WordFiller(nn.Module):
    """Hidden states → what the output layer takes; and that layer's bias.

    y = norm(gelu(W x + b))
    """

    def __init__(self, width: int, config: BertConfig) -> None:
        super().__init__()
        self.dense = Linear(width, config.word_width)
        self.norm = nn.LayerNorm(config.word_width, config.epsilon)
        self.bias = nn.Parameter(torch.zeros(config.vocabulary))

    def forward(self, hidden: Float[Tensor, "n D"]) -> Float[Tensor, "n E"]:
        return self.norm(F.gelu(self.dense(hidden)))


class ReplacedDetector(nn.Module):
    """Whether a token is not the author's.

    z = w · gelu(W x + b) + c
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.dense = Linear(width, width)
        self.score = Linear(width, 1)

    def forward(self, hidden: Float[Tensor, "n D"]) -> Float[Tensor, "n 1"]:
        return self.score(F.gelu(self.dense(hidden)))


class Bert(nn.Module):
    """Words + positions + types → blocks that look both ways → one head.

    Only the parts of the head that its config names are there; the others are None.
    """

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.config = config
        width, head = config.width, config.head
        follows = head == "words" and config.next_sentence
        self.embeddings = TextEmbeddings(config)
        projects = config.word_width != width
        self.project = Linear(config.word_width, width) if projects else None
        self.encoder = encoder_layers(config, width, config.heads, config.hidden)
        self.dropout = Dropout(config.dropout)
        self.pooler = Linear(width, width) if head == "text" or follows else None
        self.words = WordFiller(width, config) if head == "words" else None
        self.follow = Linear(width, 2) if follows else None
        self.classifier = Linear(width, config.labels) if head == "text" else None
        self.tagger = Linear(width, config.labels) if head == "tokens" else None
        self.replaced = ReplacedDetector(width) if head == "replaced" else None
        initialise(self)

    packs, capturable = True, True

    @property
    def longest(self) -> int | None:
        return self.config.longest

    def layers_upwards(self) -> list[nn.Module]:
        return list(self.encoder)

    def forward(self, rows: Rows, types: Int[Tensor, " words"]) -> Float[Tensor, "words D"]:
        """The hidden state of every token, of texts end to end: no padding is computed."""
        return encoded(self.embeddings(rows, types), self.project, self.encoder, rows)

    @property
    def output(self) -> OutputLayer:
        """The embedding read the other way round, and a bias."""
        assert self.words is not None, f"a head for {self.config.head} fills no words"
        return OutputLayer(self.embeddings.words.weight, self.words.bias)

    def transformed(self, hidden: Float[Tensor, "n D"]) -> Float[Tensor, "n E"]:
        assert self.words is not None, f"a head for {self.config.head} fills no words"
        return self.words(hidden)

    def follows(self, hidden: Float[Tensor, "words D"], rows: Rows) -> Float[Tensor, "B 2"]:
        """Logits of: the second text follows the first (0), or is any other (1)."""
        assert self.follow is not None, "it was built without next_sentence"
        return self.follow(self.pooled(hidden, rows))

    def pooled(self, hidden: Float[Tensor, "words D"], rows: Rows) -> Float[Tensor, "B D"]:
        """One vector for each sequence; an empty one gets any."""
        assert self.pooler is not None, f"a head for {self.config.head} pools nothing"
        state = state_read(hidden, rows, self.config.reads)
        return POOLING[self.config.pooling](self.pooler(state))

    def read_at(self, tokens: int, /) -> int | None:
        """At which of so many tokens a text is read; None: from the mean of all."""
        return place_read(self.config.reads, tokens)

    def scores(self, hidden: Float[Tensor, "words D"], rows: Rows) -> Float[Tensor, "n labels"]:
        """Logits of each sequence, those that only fill a shape as well, or of each token."""
        if self.classifier is not None:
            return self.classifier(self.dropout(self.pooled(hidden, rows)))
        if self.tagger is not None:
            return self.tagger(self.dropout(hidden))
        assert self.replaced is not None, f"a head for {self.config.head} scores no texts"
        return self.replaced(hidden)


def encoder_layers(config: BertConfig, width: int, heads: int, hidden: int) -> nn.ModuleList:
    """Blocks as published: dropout on what a sublayer adds, and nowhere else."""
    return nn.ModuleList(
        EncoderLayer(
            width,
            heads=heads,
            hidden=hidden,
            dropout=config.dropout,
            inner_dropout=0.0,
            epsilon=config.epsilon,
            activation=F.gelu,
        )
        for _ in range(config.depth)
    )


def encoded(
    x: Float[Tensor, "1 words E"], project: nn.Module | None, layers: nn.ModuleList, rows: Rows
) -> Float[Tensor, "words D"]:
    """Through the blocks, each text by itself."""
    x = x if project is None else project(x)
    itself = Segments.among(rows.starts, rows.longest)
    return run_blocks(layers, nn.Identity(), x, WholeSequences(itself))[0]


def initialise(model: nn.Module) -> None:
    """N(0, 0.02), as published; biases zero."""
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
        elif parameter.dim() == 2:
            nn.init.normal_(parameter, std=0.02)


PRESETS: dict[str, ModelConfig] = {
    "bert-nano": BertConfig(
        vocabulary=2000, width=96, depth=2, heads=4, hidden=384, longest=128, dropout=0.0
    ),
    "bert-mini": BertConfig(vocabulary=8000, width=256, depth=4, heads=4, hidden=1024, longest=256),
    "bert-base": BertConfig(next_sentence=True),
    "bert-large": BertConfig(width=1024, depth=24, heads=16, hidden=4096, next_sentence=True),
    "roberta-base": BertConfig(vocabulary=50265, types=1, first_position=2, epsilon=1e-5),
    "distilbert-base": BertConfig(depth=6, types=0, pooling="relu"),
    "minilm-l6": BertConfig(width=384, depth=6, hidden=1536),
    "electra-small": BertConfig(
        width=256, heads=4, hidden=1024, embedding_width=128, pooling="gelu", head="replaced"
    ),
    "electra-base": BertConfig(pooling="gelu", head="replaced"),
}
