"""Sequence to sequence with RNNs (Sutskever et al. 2014, arXiv:1409.3215).

The whole source passes through one vector: the bottleneck. Departs from the paper in giving that
vector to the decoder at every step, as the lectures write it, and not only as its first state.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from saccade.blocks.dropout import Dropout
from saccade.blocks.output import Readout
from saccade.blocks.recurrent.rnn import CellKind, Rnn, RnnState, SourceReader, reverse
from saccade.config import ModelConfig, WordModelConfig, check_fraction, check_positive
from saccade.models.text.stepwise import StepState, StepwiseTranslator


@dataclass(frozen=True, kw_only=True)
class Seq2SeqConfig(WordModelConfig):
    """Sizes of an RNN encoder–decoder.

    Args:
        cell: what recurs.
        width: of a state.
        depth: layers on each other, in either half.
        dropout: share of a layer's output that is dropped in training.
        reverse: read the source back to front.
    """

    cell: CellKind = "lstm"
    width: int = 512
    depth: int = 2
    dropout: float = 0.1
    reverse: bool = True

    def __post_init__(self) -> None:
        check_positive(self, "vocabulary", "width", "depth")
        check_fraction(self, "dropout")

    def build(self) -> "Seq2Seq":
        return Seq2Seq(self)


@dataclass
class Seq2SeqState(StepState):
    """All that is kept of the source, and the decoder's own state."""

    context: Float[Tensor, "R D"]
    rnn: RnnState

    def select(self, rows: Int[Tensor, " R2"]) -> "Seq2SeqState":
        return Seq2SeqState(self.context[rows], self.rnn.select(rows), output=self.output)


class Seq2Seq(StepwiseTranslator[Seq2SeqState]):
    """Two RNNs with their own weights, joined by a single vector.

    hₜ = f(xₜ, hₜ₋₁)        s₀ = c = h_T        sₜ = g(yₜ₋₁, sₜ₋₁, c)
    """

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__()
        self.config = config
        width = config.width
        rest = {"cell": config.cell, "depth": config.depth, "dropout": config.dropout}
        self.source_embedding = nn.Embedding(config.vocabulary, width)
        self.target_embedding = nn.Embedding(config.vocabulary, width)
        self.encoder = SourceReader(width, width, **rest)  # type: ignore[arg-type]
        self.decoder = Rnn(2 * width, width, **rest)  # type: ignore[arg-type]
        self.dropout = Dropout(config.dropout)
        self.readout = Readout(width, config.vocabulary)
        for embedding in (self.source_embedding, self.target_embedding):
            nn.init.uniform_(embedding.weight, -0.1, 0.1)

    def start(self, source: Int[Tensor, "B S"], lengths: Int[Tensor, " B"]) -> Seq2SeqState:
        """Read the source into one vector."""
        if self.config.reverse:
            source = reverse(source, lengths)
        _, last = self.encoder(self.dropout(self.source_embedding(source)), lengths)
        return Seq2SeqState(last.hidden[:, -1], last)

    def decode(
        self, target: Int[Tensor, "R T"], state: Seq2SeqState
    ) -> tuple[Float[Tensor, "R T D"], Seq2SeqState]:
        y = self.dropout(self.target_embedding(target))
        c = state.context[:, None].expand(-1, y.shape[1], -1)  # (R, T, D)
        s, rnn = self.decoder(torch.cat([y, c], dim=-1), state.rnn)
        return self.dropout(s), Seq2SeqState(state.context, rnn)


PRESETS: dict[str, ModelConfig] = {
    "rnn-seq2seq-small": Seq2SeqConfig(cell="gru", width=256, depth=1, dropout=0.0),
    "rnn-seq2seq-sutskever": Seq2SeqConfig(vocabulary=80000, width=1000, depth=4),
}
