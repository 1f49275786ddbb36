"""The RNN language model: probability of text, one word after another.

Input is the sequence, target the same sequence shifted by one; at generation the sampled word is
the next input. Mikolov et al. 2010; dropout as in Zaremba et al. 2014, arXiv:1409.2329; input and
output embeddings may be tied (Press & Wolf 2017, arXiv:1608.05859).
"""

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from saccade.blocks.dropout import Dropout
from saccade.blocks.output import OutputLayer, Readout
from saccade.blocks.recurrent.rnn import CellKind, Rnn, RnnState
from saccade.config import ModelConfig, WordModelConfig, check_fraction, check_positive
from saccade.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class RnnLanguageConfig(WordModelConfig):
    """Sizes of an RNN language model.

    Args:
        cell: what recurs.
        words: read through an embedding, or as they are: a one in a row of zeros.
        width: of a state.
        depth: layers on each other.
        dropout: share of a layer's output that is dropped in training.
        tied: the embedding is also the output layer.
    """

    cell: CellKind = "lstm"
    words: Literal["embedded", "one-hot"] = "embedded"
    width: int = 256
    depth: int = 1
    dropout: float = 0.0
    tied: bool = False

    def __post_init__(self) -> None:
        check_positive(self, "vocabulary", "width", "depth")
        check_fraction(self, "dropout")
        if self.tied and self.words == "one-hot":
            raise ConfigError("tied=True needs words='embedded': one-hot words have no weights")

    def build(self) -> "RnnLanguageModel":
        return RnnLanguageModel(self)


class OneHot(nn.Module):
    """A word as a vector with a single one."""

    rows: Float[Tensor, "V V"]

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.register_buffer("rows", torch.eye(vocabulary), persistent=False)

    def forward(self, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T V"]:
        return F.embedding(tokens, self.rows)


class RnnLanguageModel(nn.Module):
    """Words → RNN → the next word.

    hₜ = f(xₜ, hₜ₋₁)        p(xₜ₊₁ | x₁ … xₜ) = softmax(W hₜ)
    """

    def __init__(self, config: RnnLanguageConfig) -> None:
        super().__init__()
        self.config = config
        embedded = config.words == "embedded"
        self.embedding = (
            nn.Embedding(config.vocabulary, config.width) if embedded else OneHot(config.vocabulary)
        )
        self.rnn = Rnn(
            config.width if embedded else config.vocabulary,
            config.width,
            cell=config.cell,
            depth=config.depth,
            dropout=config.dropout,
        )
        self.dropout = Dropout(config.dropout)
        self.readout = None if config.tied else Readout(config.width, config.vocabulary)
        self.bias = nn.Parameter(torch.zeros(config.vocabulary)) if config.tied else None
        if isinstance(self.embedding, nn.Embedding):
            nn.init.uniform_(self.embedding.weight, -0.1, 0.1)

    @property
    def reach(self) -> int | None:
        """How many words back it can see: its state carries on without end."""
        return None

    def forward(self, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        """The hidden state after each word; `output` turns it into logits of the next."""
        return self.read(tokens, None)[0]

    @property
    def output(self) -> OutputLayer:
        if self.readout is not None:
            return OutputLayer(self.readout.weight, self.readout.bias)
        assert isinstance(self.embedding, nn.Embedding)
        return OutputLayer(self.embedding.weight, self.bias)

    def read(
        self, tokens: Int[Tensor, "R T"], state: RnnState | None
    ) -> tuple[Float[Tensor, "R T D"], RnnState]:
        """Go on from a state."""
        hidden, after = self.rnn(self.dropout(self.embedding(tokens)), state)
        return self.dropout(hidden), after

    def start(self, rows: int) -> RnnState:
        """The state before any word."""
        return self.rnn.start(next(self.rnn.parameters()).new_empty(rows, 0))

    def step(
        self, tokens: Int[Tensor, " R"], state: RnnState
    ) -> tuple[Float[Tensor, "R V"], RnnState]:
        features, state = self.read(tokens[:, None], state)
        return self.output(features[:, 0]), state


PRESETS: dict[str, ModelConfig] = {
    "rnn-lm-nano": RnnLanguageConfig(width=64),
    "rnn-lm-vanilla": RnnLanguageConfig(cell="vanilla", words="one-hot", width=64),
    "rnn-lm-gru": RnnLanguageConfig(cell="gru", width=64),
    "rnn-lm-medium": RnnLanguageConfig(width=650, depth=2, dropout=0.5, tied=True),
}
