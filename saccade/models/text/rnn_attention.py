"""Sequence to sequence with RNNs and attention (Bahdanau et al. 2015, arXiv:1409.0473).

A new context at each step of the decoder removes the bottleneck. The lectures name three uses of
the context; with two of them the whole target is decoded in parallel while training.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from saccade.attention import masks
from saccade.attention.attend import weigh
from saccade.attention.axes import SOURCE, TARGET
from saccade.attention.scores import Additive, Multiplicative, dot, scaled_dot
from saccade.attention.site import Site
from saccade.blocks.dropout import Dropout
from saccade.blocks.recurrent.attending_rnn import Looked, LoopWeights, attending_rnn, look_once
from saccade.blocks.recurrent.rnn import CellKind, Rnn, RnnState, SourceReader
from saccade.config import ModelConfig, check_fraction, check_positive
from saccade.errors import ConfigError
from saccade.models.text.stepwise import StepState, StepwiseTranslator

ScoreKind = Literal["mlp", "dot", "scaled-dot", "multiplicative"]
ProjectionKind = Literal["identity", "linear", "sigmoid"]
ContextKind = Literal["readout", "input", "layer"]


@dataclass(frozen=True, kw_only=True)
class RnnAttentionConfig(ModelConfig):
    """Sizes and choices of an RNN translator with attention.

    `keys` is how keys and queries are made of the states, `values` how what is read is made.
    `context` is where the context goes: beside the state when a word is read out, into the next
    step's input, or into the next recurrent layer.
    """

    cell: CellKind = "lstm"
    width: int = 256
    depth: int = 1
    dropout: float = 0.1
    score: ScoreKind = "mlp"
    keys: ProjectionKind = "identity"
    values: ProjectionKind = "identity"
    context: ContextKind = "readout"
    directions: Literal[1, 2] = 2

    def __post_init__(self) -> None:
        check_positive(self, "vocabulary", "width", "depth")
        check_fraction(self, "dropout")
        if self.width % self.directions:
            raise ConfigError(f"width={self.width} does not divide into two directions")

    def build(self) -> "RnnAttention":
        return RnnAttention(self)


class Memory(NamedTuple):
    """The source as the decoder sees it: how it is found, what is read, which of it is real."""

    keys: Float[Tensor, "R S F"]
    values: Float[Tensor, "R S D"]
    mask: Bool[Tensor, "R 1 S"] | None
    hide: Float[Tensor, "R 1 S"] | None = None  # the mask as something to add to scores

    def select(self, rows: Int[Tensor, " R2"]) -> "Memory":
        return Memory(*(None if part is None else part[rows] for part in self))  # type: ignore[arg-type]

    def looked(self) -> Looked:
        """What a lean step takes."""
        if self.mask is None or self.hide is not None:
            return Looked(self.keys, self.values, self.hide)
        return Looked.at(self.keys, self.values, self.mask)


def _projection(kind: ProjectionKind, width: int) -> nn.Module:
    if kind == "identity":
        return nn.Identity()
    linear = nn.Linear(width, width)
    return linear if kind == "linear" else nn.Sequential(linear, nn.Sigmoid())


class Reader(Site):
    """A decoder state looks at the source.

    eₜᵢ = f_att(q(sₜ), k(hᵢ))        aₜ = softmax(eₜ)        cₜ = Σᵢ aₜᵢ v(hᵢ)
    """

    def __init__(self, config: RnnAttentionConfig) -> None:
        super().__init__(TARGET, SOURCE)
        width = config.width
        self.query, self.key = _projection(config.keys, width), _projection(config.keys, width)
        self.value = _projection(config.values, width)
        scores = {
            "mlp": lambda: Additive(width, width, hidden=width),
            "multiplicative": lambda: Multiplicative(width, width),
            "dot": lambda: dot,
            "scaled-dot": lambda: scaled_dot,
        }
        self.score = scores[config.score]()

    def remember(self, h: Float[Tensor, "B S D"], lengths: Int[Tensor, " B"]) -> Memory:
        """Keys and values, computed once for all steps."""
        ragged = int(lengths.min()) < h.shape[1]
        mask = masks.padding(lengths.to(h.device), h.shape[1])[:, 0] if ragged else None
        keys = self.key(h)
        if isinstance(self.score, Additive):
            keys = self.score.of_key(keys)
        values = self.value(h)
        return Memory(keys, values, mask, Looked.at(keys, values, mask).hide)

    def forward(self, s: Float[Tensor, "R T D"], memory: Memory) -> Float[Tensor, "R T D"]:
        if s.shape[1] == 1 and self._looks_by_itself():
            return self._look_once(s, memory)
        weights = self.weights(s, memory)
        if self.watcher is not None:
            self.watcher(weights[:, None])
        return weights @ memory.values

    def weights(self, s: Float[Tensor, "R T D"], memory: Memory) -> Float[Tensor, "R T S"]:
        """Where each state looks."""
        compare = self.score.compare if isinstance(self.score, Additive) else self.score
        return weigh(compare(self.query(s), memory.keys), mask=memory.mask)

    def _looks_by_itself(self) -> bool:
        """No gradient is wanted, and nobody traces."""
        plain = torch.is_grad_enabled() or torch.compiler.is_compiling()
        return isinstance(self.score, Additive) and not plain

    def _look_once(self, s: Float[Tensor, "R 1 D"], memory: Memory) -> Float[Tensor, "R 1 D"]:
        assert isinstance(self.score, Additive)
        q = self.score.of_query(self.query(s[:, 0]))
        weights, read = look_once(q, memory.looked(), self.score.weight)
        if self.watcher is not None:
            self.watcher(weights[:, None])
        return read[:, None]


class ContextInReadout(nn.Module):
    """The state looks, and the word is read out of both.

    sₜ = g(yₜ₋₁, sₜ₋₁)        ŷₜ = f(sₜ, cₜ)
    """

    def __init__(self, config: RnnAttentionConfig) -> None:
        super().__init__()
        width = config.width
        sizes = {"cell": config.cell, "depth": config.depth, "dropout": config.dropout}
        self.rnn = Rnn(width, width, **sizes)  # type: ignore[arg-type]
        self.cross_attention = Reader(config)
        self.mix = nn.Linear(2 * width, width)

    def forward(
        self, y: Float[Tensor, "R T D"], memory: Memory, state: RnnState
    ) -> tuple[Float[Tensor, "R T D"], RnnState]:
        s, state = self.rnn(y, state)
        c = self.cross_attention(s, memory)
        return self.mix(torch.cat([s, c], dim=-1)).tanh(), state


class ContextInLayer(nn.Module):
    """The first layer's state looks; the next layer gets both.

    s¹ₜ = g₁(yₜ₋₁, s¹ₜ₋₁)        s²ₜ = g₂([s¹ₜ; cₜ], s²ₜ₋₁)
    """

    def __init__(self, config: RnnAttentionConfig) -> None:
        super().__init__()
        width = config.width
        sizes = {"cell": config.cell, "dropout": config.dropout}
        self.first = Rnn(width, width, **sizes)  # type: ignore[arg-type]
        self.cross_attention = Reader(config)
        self.rest = Rnn(2 * width, width, depth=config.depth, **sizes)  # type: ignore[arg-type]

    def forward(
        self, y: Float[Tensor, "R T D"], memory: Memory, state: RnnState
    ) -> tuple[Float[Tensor, "R T D"], RnnState]:
        below, above = state.layers(slice(None, 1)), state.layers(slice(1, None))
        s, below = self.first(y, below)
        c = self.cross_attention(s, memory)
        features, above = self.rest(torch.cat([s, c], dim=-1), above)
        return features, RnnState.stack([below, above])


class ContextInInput(nn.Module):
    """The previous state looks, and the context is part of the next input: Bahdanau's model.

        cₜ = attend(sₜ₋₁, h)        sₜ = g([yₜ₋₁; cₜ], sₜ₋₁)        ŷₜ = f(sₜ, yₜ₋₁, cₜ)

    Each step waits for the one before, also in training; the published form has a loop that waits
    for no more than it must.
    """

    def __init__(self, config: RnnAttentionConfig) -> None:
        super().__init__()
        width = config.width
        sizes = {"cell": config.cell, "depth": config.depth, "dropout": config.dropout}
        self.rnn = Rnn(2 * width, width, **sizes)  # type: ignore[arg-type]
        self.cross_attention = Reader(config)
        self.mix = nn.Linear(3 * width, width)

    def forward(
        self, y: Float[Tensor, "R T D"], memory: Memory, state: RnnState
    ) -> tuple[Float[Tensor, "R T D"], RnnState]:
        if self._is_published():
            s, c, state = self._lean(y, memory, state)
        else:
            s, c, state = self._word_by_word(y, memory, state)
        return self.mix(torch.cat([s, y, c], dim=-1)).tanh(), state

    def _is_published(self) -> bool:
        """One layer, an additive score of the states themselves, and nobody tracing."""
        reader = self.cross_attention
        states = isinstance(reader.query, nn.Identity) and isinstance(reader.score, Additive)
        return states and self.rnn.depth == 1 and not torch.compiler.is_compiling()

    def _lean(self, y: Tensor, memory: Memory, state: RnnState) -> tuple[Tensor, Tensor, RnnState]:
        """The loop with all that does not wait for the state taken out of it."""
        score, (w, u, b, d) = self.cross_attention.score, self.rnn.weights(0)
        assert isinstance(score, Additive)
        query = score.of_query
        of_word, of_context = w[:, : y.shape[-1]], w[:, y.shape[-1] :]
        x = F.linear(y.transpose(0, 1), of_word, b)  # (T, R, gates)
        first = state.hidden[:, 0], None if state.cell is None else state.cell[:, 0]
        run = attending_rnn(
            self.rnn.cell,
            x,
            first,
            memory.looked(),
            LoopWeights(of_context, u, d, query.weight, query.bias, score.weight),
        )
        states = run.states.transpose(0, 1)  # (R, T, D)
        if self.cross_attention.watcher is not None:
            self._show(torch.cat([state.hidden, states[:, :-1]], dim=1), memory)
        last = RnnState(states[:, -1:], None if run.cell is None else run.cell[:, None])
        return states, run.contexts.transpose(0, 1), last

    @torch.no_grad()
    def _show(self, before: Float[Tensor, "R T D"], memory: Memory) -> None:
        """Where the loop looked, computed beside it: the state before each word looks for it."""
        reader = self.cross_attention
        assert reader.watcher is not None
        reader.watcher(reader.weights(before, memory)[:, None])

    def _word_by_word(
        self, y: Tensor, memory: Memory, state: RnnState
    ) -> tuple[Tensor, Tensor, RnnState]:
        states, contexts = [], []
        for word in y.split(1, dim=1):
            c = self.cross_attention(state.hidden[:, -1:], memory)
            s, state = self.rnn(torch.cat([word, c], dim=-1), state)
            states.append(s)
            contexts.append(c)
        return torch.cat(states, dim=1), torch.cat(contexts, dim=1), state


CONTEXTS: dict[ContextKind, type[ContextInReadout | ContextInLayer | ContextInInput]] = {
    "readout": ContextInReadout,
    "layer": ContextInLayer,
    "input": ContextInInput,
}


@dataclass
class RnnAttentionState(StepState):
    """The source in full, and the decoder's own state."""

    memory: Memory
    rnn: RnnState

    def select(self, rows: Int[Tensor, " R2"]) -> "RnnAttentionState":
        memory, rnn = self.memory.select(rows), self.rnn.select(rows)
        return RnnAttentionState(memory, rnn, output=self.output)


class RnnAttention(StepwiseTranslator[RnnAttentionState]):
    """Source → RNN states → read again at every step of the decoder."""

    def __init__(self, config: RnnAttentionConfig) -> None:
        super().__init__()
        self.config = config
        width = config.width
        self.source_embedding = nn.Embedding(config.vocabulary, width)
        self.target_embedding = nn.Embedding(config.vocabulary, width)
        self.encoder = SourceReader(
            width,
            width,
            cell=config.cell,
            depth=config.depth,
            dropout=config.dropout,
            ways=config.directions,
        )
        self.bridge = nn.Linear(width, width)
        self.decoder = CONTEXTS[config.context](config)
        self.dropout = Dropout(config.dropout)
        self.readout = nn.Linear(width, config.vocabulary)
        for embedding in (self.source_embedding, self.target_embedding):
            nn.init.uniform_(embedding.weight, -0.1, 0.1)

    def start(self, source: Int[Tensor, "B S"], lengths: Int[Tensor, " B"]) -> RnnAttentionState:
        """Read the source; the decoder starts from its last state.

        s₀ = tanh(W h_T)
        """
        h, last = self.encoder(self.dropout(self.source_embedding(source)), lengths)
        memory = self.decoder.cross_attention.remember(self.dropout(h), lengths)
        first = self.bridge(last.hidden).tanh()
        state = RnnState(first, None if last.cell is None else torch.zeros_like(first))
        if self.config.context == "layer":  # it has one layer more than the encoder
            state = RnnState.stack([state.layers(slice(None, 1)), state])
        return RnnAttentionState(memory, state)

    def decode(
        self, target: Int[Tensor, "R T"], state: RnnAttentionState
    ) -> tuple[Float[Tensor, "R T D"], RnnAttentionState]:
        y = self.dropout(self.target_embedding(target))
        features, rnn = self.decoder(y, state.memory, state.rnn)
        return self.dropout(features), RnnAttentionState(state.memory, rnn)


PRESETS: dict[str, ModelConfig] = {
    "rnn-attention-small": RnnAttentionConfig(dropout=0.0),
    "rnn-attention-medium": RnnAttentionConfig(width=512, dropout=0.5),
    "rnn-attention-bahdanau": RnnAttentionConfig(cell="gru", width=1000, context="input"),
    "rnn-attention-luong": RnnAttentionConfig(width=1000, depth=4, score="multiplicative"),
}
