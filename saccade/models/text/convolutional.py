"""Convolutional sequence to sequence (Gehring et al. 2017, arXiv:1705.03122).

Gated convolutions in place of recurrence, and attention in every layer of the decoder.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from saccade.attention import masks
from saccade.attention.attend import fused
from saccade.attention.axes import SOURCE, TARGET
from saccade.attention.site import Site
from saccade.blocks.conv import HALF, GatedConv, pad_around
from saccade.blocks.dropout import Dropout
from saccade.blocks.output import Readout
from saccade.blocks.positions import LearnedPositions
from saccade.config import ModelConfig, WordModelConfig, check_fraction, check_positive
from saccade.errors import ConfigError
from saccade.models.text.stepwise import StepState, StepwiseTranslator


@dataclass(frozen=True, kw_only=True)
class ConvSeq2SeqConfig(WordModelConfig):
    """Sizes of a convolutional translator; it sees depth · (kernel − 1) words around each.

    Args:
        width: of a hidden state.
        depth: layers of either half.
        kernel: words that one convolution sees.
        dropout: share of a layer's output that is dropped in training.
        longest: how many tokens a sentence may have.
    """

    width: int = 256
    depth: int = 4
    kernel: int = 3
    dropout: float = 0.1
    longest: int = 256

    def __post_init__(self) -> None:
        check_positive(self, "vocabulary", "width", "depth", "kernel", "longest")
        check_fraction(self, "dropout")
        if self.kernel < 2:
            raise ConfigError(f"kernel={self.kernel} sees no neighbour; use 2 or more")

    @property
    def most_words(self) -> int | None:
        return self.longest

    def build(self) -> "ConvSeq2Seq":
        return ConvSeq2Seq(self)


@dataclass
class ConvState(StepState):
    """The source's keys and values, and the last words that each layer's kernel still needs."""

    keys: Float[Tensor, "R S D"]
    values: Float[Tensor, "R S D"]
    mask: Bool[Tensor, "R 1 S"] | None
    recent: list[Float[Tensor, "R past D"]]
    position: int = 0

    def select(self, rows: Int[Tensor, " R2"]) -> "ConvState":
        mask = None if self.mask is None else self.mask[rows]
        recent = [words[rows] for words in self.recent]
        keys, values = self.keys[rows], self.values[rows]
        return ConvState(keys, values, mask, recent, self.position, output=self.output)


class ConvAttention(Site):
    """A look at the source that knows both the context and the last word.

    q = (W z + y) √½        c = softmax(q kᵀ) v
    """

    def __init__(self, width: int) -> None:
        super().__init__(TARGET, SOURCE)
        self.to_query = nn.Linear(width, width)
        self.to_output = nn.Linear(width, width)

    def forward(
        self, z: Float[Tensor, "R T D"], y: Float[Tensor, "R T D"], state: ConvState
    ) -> Float[Tensor, "R T D"]:
        q = (self.to_query(z) + y) * HALF
        read = fused(
            q[:, None],
            state.keys[:, None],
            state.values[:, None],
            mask=None if state.mask is None else state.mask[:, None],
            scale=1.0,  # a plain dot product, as published
            watcher=self.watcher,
        )
        return self.to_output(read[:, 0])


class ConvDecoderLayer(nn.Module):
    """A causal gated convolution, a look at the source, and a residual.

    z = gate(conv(x))        output = ((z + c(z, y)) √½ + x) √½
    """

    def __init__(self, width: int, *, kernel: int, dropout: float) -> None:
        super().__init__()
        self.conv = GatedConv(width, kernel=kernel, dropout=dropout)
        self.cross_attention = ConvAttention(width)

    def forward(
        self,
        x: Float[Tensor, "R T D"],
        recent: Float[Tensor, "R before D"],
        y: Float[Tensor, "R T D"],
        state: ConvState,
    ) -> Float[Tensor, "R T D"]:
        z = self.conv(torch.cat([recent, x], dim=1))  # (R, T, D)
        return ((z + self.cross_attention(z, y, state)) * HALF + x) * HALF


class ConvSeq2Seq(StepwiseTranslator[ConvState]):
    """Words + positions → gated convolutions → memory; a causal stack of the same decodes it."""

    def __init__(self, config: ConvSeq2SeqConfig) -> None:
        super().__init__()
        self.config, self.longest = config, config.longest
        width, kernel, dropout = config.width, config.kernel, config.dropout
        self.source_embedding = nn.Embedding(config.vocabulary, width)
        self.target_embedding = nn.Embedding(config.vocabulary, width)
        self.source_positions = LearnedPositions(config.longest, width)
        self.target_positions = LearnedPositions(config.longest, width)
        self.encoder = nn.ModuleList(
            GatedConv(width, kernel=kernel, dropout=dropout) for _ in range(config.depth)
        )
        self.decoder = nn.ModuleList(
            ConvDecoderLayer(width, kernel=kernel, dropout=dropout) for _ in range(config.depth)
        )
        self.dropout = Dropout(config.dropout)
        self.readout = Readout(width, config.vocabulary)
        for embedding in (self.source_embedding, self.target_embedding):
            nn.init.normal_(embedding.weight, std=0.1)

    def start(self, source: Int[Tensor, "B S"], lengths: Int[Tensor, " B"]) -> ConvState:
        """Read the source; before the first word every kernel sees zeros."""
        embedded = self.dropout(
            self.source_embedding(source) + self.source_positions(0, source.shape[1])
        )
        real = masks.padding(lengths.to(source.device), source.shape[1])[:, 0]  # (B, 1, S)
        x = embedded
        for conv in self.encoder:
            # Padding is zeroed before every layer, or it would leak into its neighbours.
            x = x.masked_fill(~real.mT, 0.0)
            x = (conv(pad_around(x, self.config.kernel)) + x) * HALF
        before = x.new_zeros(x.shape[0], self.config.kernel - 1, self.config.width)
        return ConvState(x, (x + embedded) * HALF, real, [before] * self.config.depth)

    def decode(
        self, target: Int[Tensor, "R T"], state: ConvState
    ) -> tuple[Float[Tensor, "R T D"], ConvState]:
        positions = self.target_positions(state.position, target.shape[1])
        x = y = self.dropout(self.target_embedding(target) + positions)
        recent: list[Tensor] = []
        for layer, before in zip(self.decoder, state.recent):
            recent.append(torch.cat([before, x], dim=1)[:, 1 - self.config.kernel :])
            x = layer(x, before, y, state)
        position = state.position + target.shape[1]
        state = ConvState(state.keys, state.values, state.mask, recent, position)
        return self.dropout(x), state


PRESETS: dict[str, ModelConfig] = {
    "conv-seq2seq-small": ConvSeq2SeqConfig(width=192, dropout=0.0),
    "conv-seq2seq-published": ConvSeq2SeqConfig(
        vocabulary=40000, width=512, depth=15, dropout=0.2, longest=1024
    ),
}
