"""Sequence to sequence with RNNs and attention (Bahdanau et al. 2015, arXiv:1409.0473).

A new context at each step of the decoder removes the bottleneck. The lectures name three uses of
the context; with two of them the whole target is decoded in parallel while training.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from saccade.attention import masks
from saccade.attention.axes import SOURCE, TARGET
from saccade.attention.scores import Additive, Multiplicative, dot, scaled_dot
from saccade.attention.site import Site
from saccade.blocks.dropout import Dropout
from saccade.blocks.inference.affine import Precision, affine
from saccade.blocks.inference.recurrent import PackedLook, PackedRnn, WordTable, joined
from saccade.blocks.output import Readout
from saccade.blocks.recurrent.attending_rnn import LoopWeights, attending_rnn
from saccade.blocks.recurrent.memory import AttentionMemory
from saccade.blocks.recurrent.rnn import CellKind, Rnn, RnnState, SourceReader
from saccade.config import ModelConfig, WordModelConfig, check_fraction, check_positive
from saccade.errors import ConfigError
from saccade.models.inference.recurrent import PackedStep, RecurrentDecoding, StateSizes, Stepped
from saccade.models.text.stepwise import StepState, StepwiseTranslator

ScoreKind = Literal["mlp", "dot", "scaled-dot", "multiplicative"]
ProjectionKind = Literal["identity", "linear", "sigmoid"]
ContextKind = Literal["readout", "input", "layer"]


@dataclass(frozen=True, kw_only=True)
class RnnAttentionConfig(WordModelConfig):
    """Sizes and choices of an RNN translator with attention.

    Args:
        cell: what recurs.
        width: of a state.
        depth: layers on each other, in either half.
        dropout: share of a layer's output that is dropped in training.
        score: how a state is compared with the source.
        keys: how keys and queries are made of the states.
        values: how what is read is made of the states.
        context: where the context goes: beside the state when a word is read out, into the next
            step's input, or into the next recurrent layer.
        directions: the source is read forwards, or forwards and backwards.
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

    def remember(self, h: Float[Tensor, "B S D"], lengths: Int[Tensor, " B"]) -> AttentionMemory:
        """Keys and values, computed once for all steps."""
        ragged = torch.compiler.is_exporting() or int(lengths.min()) < h.shape[1]
        mask = masks.padding(lengths.to(h.device), h.shape[1])[:, 0] if ragged else None
        keys = self.key(h)
        if isinstance(self.score, Additive):
            keys = self.score.of_key(keys)
        return AttentionMemory.masked(keys, self.value(h), mask)

    def forward(self, s: Float[Tensor, "R T D"], memory: AttentionMemory) -> Float[Tensor, "R T D"]:
        compare = self.score.compare if isinstance(self.score, Additive) else self.score
        e = compare(self.query(s), memory.keys)
        weights = (e if memory.bias is None else e + memory.bias).softmax(dim=-1)  # (R, T, S)
        if self.watcher is not None:
            self.watcher(weights[:, None])
        return weights @ memory.values

    def packed(self, words: Float[Tensor, "V D"], how: Precision) -> PackedLook:
        return PackedLook(self.query, self.score, words, how)


class Context(nn.Module, ABC):
    """A use of what was read: the decoder of all words at once, and its step packed."""

    cross_attention: Reader

    @abstractmethod
    def forward(
        self, y: Float[Tensor, "R T D"], memory: AttentionMemory, state: RnnState
    ) -> tuple[Float[Tensor, "R T D"], RnnState]: ...

    @abstractmethod
    def packed(self, words: Float[Tensor, "V D"], sizes: StateSizes, how: Precision) -> PackedStep:
        """The same one word at a time, given the embedding of all words."""


class ContextInReadout(Context):
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
        self, y: Float[Tensor, "R T D"], memory: AttentionMemory, state: RnnState
    ) -> tuple[Float[Tensor, "R T D"], RnnState]:
        s, state = self.rnn(y, state)
        c = self.cross_attention(s, memory)
        return self.mix(torch.cat([s, c], dim=-1)).tanh(), state

    def packed(self, words: Float[Tensor, "V D"], sizes: StateSizes, how: Precision) -> PackedStep:
        """The values are those of the mixing layer, made once for all steps.

        W [s; Σᵢ aᵢ vᵢ] = Wₛ s + Σᵢ aᵢ (W_c vᵢ)
        """
        reader, rnn = self.cross_attention.packed(words, how), PackedRnn(self.rnn, how)
        w, _, b, _ = self.rnn.weights(0)
        table = WordTable(words, w, b, how)
        of_state, of_context = self.mix.weight.chunk(2, dim=1)
        ask = reader.beside((of_state, self.mix.bias))

        def step(
            y: Tensor, memory: AttentionMemory, before: RnnState, into: RnnState | None
        ) -> Stepped:
            s, after = rnn(table(y), rnn.past(before), before, into)
            mixed, q = ask(s)
            return reader(q, memory, onto=mixed), after

        def prepare(memory: AttentionMemory) -> AttentionMemory:
            return reader.prepared(memory)._replace(values=F.linear(memory.values, of_context))

        return PackedStep(step, table, prepare, sizes)


class ContextInLayer(Context):
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
        self, y: Float[Tensor, "R T D"], memory: AttentionMemory, state: RnnState
    ) -> tuple[Float[Tensor, "R T D"], RnnState]:
        below, above = state.layers(FIRST), state.layers(REST)
        s, below = self.first(y, below)
        c = self.cross_attention(s, memory)
        features, above = self.rest(torch.cat([s, c], dim=-1), above)
        return features, RnnState.stack([below, above])

    def packed(self, words: Float[Tensor, "V D"], sizes: StateSizes, how: Precision) -> PackedStep:
        reader = self.cross_attention.packed(words, how)
        first, rest = PackedRnn(self.first, how), PackedRnn(self.rest, how)
        (w, _, b, _), (above, _, above_bias, _) = self.first.weights(0), self.rest.weights(0)
        table = WordTable(words, w, b, how)
        of_state, of_context = above.chunk(2, dim=1)
        ask = reader.beside((of_state, above_bias))
        read = affine(of_context, None, precision=how)

        def step(
            y: Tensor, memory: AttentionMemory, before: RnnState, into: RnnState | None
        ) -> Stepped:
            below, above = before.layers(FIRST), before.layers(REST)
            to_below, to_above = (into and into.layers(which) for which in (FIRST, REST))
            s, below = first(table(y), first.past(below), below, to_below)
            x, q = ask(s)
            x = read(reader(q, memory)).add_(x)
            features, above = rest(x, rest.past(above), above, to_above)
            return features, into or RnnState.stack([below, above])

        return PackedStep(step, table, reader.prepared, sizes)


class ContextInInput(Context):
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
        self, y: Float[Tensor, "R T D"], memory: AttentionMemory, state: RnnState
    ) -> tuple[Float[Tensor, "R T D"], RnnState]:
        run = self._loop if self._is_published() else self._word_by_word
        s, c, state = run(y, memory, state)
        return self.mix(torch.cat([s, y, c], dim=-1)).tanh(), state

    def _is_published(self) -> bool:
        """One layer, an additive score of the states themselves, and nobody tracing."""
        reader = self.cross_attention
        states = isinstance(reader.query, nn.Identity) and isinstance(reader.score, Additive)
        return states and self.rnn.depth == 1 and not torch.compiler.is_compiling()

    def _loop(
        self, y: Tensor, memory: AttentionMemory, state: RnnState
    ) -> tuple[Tensor, Tensor, RnnState]:
        """All that does not wait for the state is taken out of the loop."""
        score, (w, u, b, d) = self.cross_attention.score, self.rnn.weights(0)
        assert isinstance(score, Additive)
        of_word, of_context = w[:, : y.shape[-1]], w[:, y.shape[-1] :]
        x = F.linear(y.transpose(0, 1), of_word, b)  # (T, R, gates)
        of_state = joined((score.of_query.weight, score.of_query.bias), (u, d))
        weights = LoopWeights(of_context, *of_state, score.weight)
        going = [len(y)] * len(x)
        run = attending_rnn(
            self.rnn.cell, x.flatten(0, 1), going, state.of_layer(0), memory, weights
        )
        states, reads, seen = (
            part.unflatten(0, x.shape[:2]).transpose(0, 1)
            for part in (run.states, run.reads, run.weights.detach())
        )
        if self.cross_attention.watcher is not None:
            self.cross_attention.watcher(seen[:, None])
        return (
            states,
            reads,
            RnnState(states[:, -1:], None if run.cell is None else run.cell[:, None]),
        )

    def _word_by_word(
        self, y: Tensor, memory: AttentionMemory, state: RnnState
    ) -> tuple[Tensor, Tensor, RnnState]:
        states, contexts = [], []
        for word in y.split(1, dim=1):
            c = self.cross_attention(state.hidden[:, -1:], memory)
            s, state = self.rnn(torch.cat([word, c], dim=-1), state)
            states.append(s)
            contexts.append(c)
        return torch.cat(states, dim=1), torch.cat(contexts, dim=1), state

    def packed(self, words: Float[Tensor, "V D"], sizes: StateSizes, how: Precision) -> PackedStep:
        """The highest state looks, so its query goes with its part of the gates."""
        reader, last = self.cross_attention.packed(words, how), self.rnn.depth - 1
        rnn, (w, _, b, _) = PackedRnn(self.rnn, how, past=last), self.rnn.weights(0)
        of_word, of_context = w.chunk(2, dim=1)
        of_state, mix_word, mix_context = self.mix.weight.chunk(3, dim=1)
        table = WordTable(words, *joined((of_word, b), (mix_word, self.mix.bias)), how)
        read = affine(torch.cat([of_context, mix_context]), None, precision=how)
        mix, gates = affine(of_state, None, precision=how), len(w)
        _, u, _, d = self.rnn.weights(last)
        ask = reader.beside((u, d))

        def step(
            y: Tensor, memory: AttentionMemory, before: RnnState, into: RnnState | None
        ) -> Stepped:
            u, q = ask(before.hidden[:, -1])
            x = read(reader(q, memory)).add_(table(y))
            s, after = rnn(x[:, :gates], [*rnn.past(before), u], before, into)
            return mix(s).add_(x[:, gates:]).tanh_(), after

        return PackedStep(step, table, reader.prepared, sizes)


FIRST, REST = slice(None, 1), slice(1, None)  # layers
CONTEXTS: dict[ContextKind, type[ContextInReadout | ContextInLayer | ContextInInput]] = {
    "readout": ContextInReadout,
    "layer": ContextInLayer,
    "input": ContextInInput,
}


@dataclass
class RnnAttentionState(StepState):
    """The source in full, and the decoder's own state."""

    memory: AttentionMemory
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
        self.readout = Readout(width, config.vocabulary)
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

    def for_decoding(self, precision: Precision) -> RecurrentDecoding | None:
        """The same packed, for decoding only."""
        return None if precision == "int8" else RecurrentDecoding(self, precision)

    def packed(self, precision: Precision) -> PackedStep:
        width, depth = self.config.width, self.config.depth + (self.config.context == "layer")
        sizes = StateSizes(width, width, width, depth, self.config.cell == "lstm")
        return self.decoder.packed(self.target_embedding.weight, sizes, precision)


PRESETS: dict[str, ModelConfig] = {
    "rnn-attention-small": RnnAttentionConfig(dropout=0.0),
    "rnn-attention-medium": RnnAttentionConfig(width=512, dropout=0.5),
    "rnn-attention-bahdanau": RnnAttentionConfig(cell="gru", width=1000, context="input"),
    "rnn-attention-luong": RnnAttentionConfig(width=1000, depth=4, score="multiplicative"),
}
