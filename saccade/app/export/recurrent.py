"""Recurrent models as functions of tensors, with ONNX's own operators for the recurrence.

Those know ragged batches, so nothing has to be packed. Their gates stand in another order:

    LSTM   torch i f g o → ONNX i o f g        GRU   torch r z n → ONNX z r n
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from saccade.app.export.graphs import Graphs, Slot, linear, source_mask
from saccade.attention.scores import Additive
from saccade.blocks.recurrent.rnn import Rnn, RnnState, SourceReader, reverse
from saccade.models.text.rnn_attention import RnnAttention
from saccade.models.text.rnn_language import RnnLanguageModel
from saccade.models.text.seq2seq import Seq2Seq

Look = Callable[[Tensor], Tensor]
ORDERS: dict[type[nn.RNNBase], tuple[str, tuple[int, ...]]] = {
    nn.RNN: ("RNN", (0,)),
    nn.GRU: ("GRU", (1, 0, 2)),
    nn.LSTM: ("LSTM", (0, 3, 1, 2)),
}


class _Layer(nn.Module):
    """One recurrent layer, one way or both, as one ONNX operator."""

    weight_ih: Float[Tensor, "ways gates D"]
    weight_hh: Float[Tensor, "ways gates H"]
    bias: Float[Tensor, "ways biases"]

    def __init__(self, rnn: nn.RNNBase, number: int) -> None:
        super().__init__()
        self.kind, order = ORDERS[type(rnn)]
        self.hidden, self.ways = rnn.hidden_size, 2 if rnn.bidirectional else 1
        endings = [f"l{number}{way}" for way in ("", "_reverse")[: self.ways]]

        def gates(name: str, ending: str) -> Tensor:
            parts = getattr(rnn, f"{name}_{ending}").detach().split(self.hidden)
            return torch.cat([parts[gate] for gate in order])

        for name in ("weight_ih", "weight_hh"):
            self.register_buffer(name, torch.stack([gates(name, ending) for ending in endings]))
        both = [torch.cat([gates("bias_ih", e), gates("bias_hh", e)]) for e in endings]
        self.register_buffer("bias", torch.stack(both))

    def forward(
        self, x: Float[Tensor, "B T D"], state: RnnState, lengths: Int[Tensor, " B"]
    ) -> tuple[Float[Tensor, "B T H"], RnnState]:
        """`state` holds this layer alone; its ways stand side by side as layers would."""
        rows, words = x.shape[0], x.shape[1]
        kept = [part for part in state if part is not None]
        last = (self.ways, rows, self.hidden)
        attributes: dict[str, Any] = {"hidden_size": self.hidden}
        attributes["direction"] = "bidirectional" if self.ways == 2 else "forward"
        if self.kind == "GRU":
            attributes["linear_before_reset"] = 1
        inputs = x.transpose(0, 1), self.weight_ih, self.weight_hh, self.bias, lengths.int()
        y, *ended = torch.onnx.ops.symbolic_multi_out(
            self.kind,
            (*inputs, *(part.transpose(0, 1) for part in kept)),
            attributes,
            dtypes=[torch.float32] * (1 + len(kept)),
            shapes=[(words, self.ways, rows, self.hidden), *[last] * len(kept)],
            version=14,
        )
        joined = y.permute(2, 0, 1, 3).flatten(2)  # (T, ways, B, H) → (B, T, ways · H)
        hidden, *cell = (part.transpose(0, 1) for part in ended)
        return joined, RnnState(hidden, cell[0] if cell else None)


class _Rnn(nn.Module):
    """Stands in for `Rnn`."""

    def __init__(self, rnn: Rnn) -> None:
        super().__init__()
        self.layers = nn.ModuleList(_Layer(layer, 0) for layer in rnn.layers)  # type: ignore[arg-type]

    def forward(self, x: Float[Tensor, "B T D"], state: RnnState) -> tuple[Tensor, RnnState]:
        lengths = torch.full((x.shape[0],), x.shape[1])
        after: list[RnnState] = []
        for number, layer in enumerate(self.layers):
            x, ended = layer(x, state.layers(slice(number, number + 1)), lengths)
            after.append(ended)
        return x, RnnState.stack(after)


class _SourceReader(nn.Module):
    """Stands in for `SourceReader`."""

    def __init__(self, reader: SourceReader) -> None:
        super().__init__()
        rnn = reader.layers
        self.layers = nn.ModuleList(_Layer(rnn, number) for number in range(rnn.num_layers))
        self.shape = reader.ways, reader.width // reader.ways
        self.has_cell = isinstance(rnn, nn.LSTM)

    def forward(
        self, x: Float[Tensor, "B S D"], lengths: Int[Tensor, " B"]
    ) -> tuple[Float[Tensor, "B S H"], RnnState]:
        zero = x.new_zeros(x.shape[0], *self.shape)
        state = RnnState(zero, zero if self.has_cell else None)
        last: list[RnnState] = []
        for layer in self.layers:
            x, ended = layer(x, state, lengths)
            cell = None if ended.cell is None else ended.cell.flatten(1)[:, None]
            last.append(RnnState(ended.hidden.flatten(1)[:, None], cell))
        return x, RnnState.stack(last)


def _flat(state: RnnState) -> list[Tensor]:
    return [part for part in state if part is not None]


def _state(parts: list[Tensor]) -> RnnState:
    return RnnState(parts[0], parts[1] if len(parts) > 1 else None)


def _slots(layers: int, width: int, cell: str) -> list[Slot]:
    names = ("hidden", "cell") if cell == "lstm" else ("hidden",)
    return [Slot(name, ("rows", layers, width)) for name in names]


class Seq2SeqEncoder(nn.Module):
    """Source → one vector, and the decoder's first state."""

    def __init__(self, model: Seq2Seq) -> None:
        super().__init__()
        self.model = model
        self.encoder = _SourceReader(model.encoder)

    def forward(self, source: Int[Tensor, "B S"], lengths: Int[Tensor, " B"]) -> list[Tensor]:
        words = reverse(source, lengths) if self.model.config.reverse else source
        _, last = self.encoder(self.model.source_embedding(words), lengths)
        return [last.hidden[:, -1], *_flat(last)]


class Seq2SeqDecoder(nn.Module):
    """One word further."""

    def __init__(self, model: Seq2Seq) -> None:
        super().__init__()
        self.model = model
        self.decoder = _Rnn(model.decoder)

    def forward(self, tokens: Int[Tensor, "R 1"], *state: Tensor) -> list[Tensor]:
        context, *rnn = state
        y = torch.cat([self.model.target_embedding(tokens), context[:, None]], dim=-1)
        s, after = self.decoder(y, _state(rnn))
        return [linear(self.model.readout, s[:, -1]), *_flat(after)]


def seq2seq_graphs(model: Seq2Seq) -> Graphs:
    config = model.config
    context = Slot("context", ("rows", config.width), changes=False)
    state = [context, *_slots(config.depth, config.width, config.cell)]
    return Graphs(Seq2SeqEncoder(model), Seq2SeqDecoder(model), state)


class RnnAttentionEncoder(nn.Module):
    """Source → which words are real, keys and values, and the decoder's first state."""

    def __init__(self, model: RnnAttention) -> None:
        super().__init__()
        self.model = model
        self.encoder = _SourceReader(model.encoder)

    def forward(self, source: Int[Tensor, "B S"], lengths: Int[Tensor, " B"]) -> list[Tensor]:
        model, reader = self.model, self.model.decoder.cross_attention
        h, last = self.encoder(model.source_embedding(source), lengths)
        keys = reader.key(h)
        if isinstance(reader.score, Additive):
            keys = reader.score.of_key(keys)
        first = model.bridge(last.hidden).tanh()
        state = RnnState(first, None if last.cell is None else torch.zeros_like(first))
        if model.config.context == "layer":
            state = RnnState.stack([state.layers(slice(None, 1)), state])
        return [source_mask(lengths, source), keys, reader.value(h), *_flat(state)]


class RnnAttentionDecoder(nn.Module):
    """One word further, by any of the three uses of the context."""

    def __init__(self, model: RnnAttention) -> None:
        super().__init__()
        self.model, self.context = model, model.config.context
        self.step = getattr(self, f"_{self.context}")
        used: Any = model.decoder
        parts = [used.first, used.rest] if self.context == "layer" else [used.rnn]
        self.rnns = nn.ModuleList(map(_Rnn, parts))

    def forward(self, tokens: Int[Tensor, "R 1"], *state: Tensor) -> list[Tensor]:
        real, keys, values, *rnn = state
        reader: Any = self.model.decoder.cross_attention

        def look(s: Tensor) -> Tensor:
            q = reader.query(s)
            if isinstance(reader.score, Additive):
                mixed = linear(reader.score.of_query, q)[:, :, None] + keys[:, None]
                scores = mixed.tanh() @ reader.score.weight  # (R, 1, S)
            else:
                scores = reader.score(q, keys)
            return scores.masked_fill(~real[:, None], -torch.inf).softmax(dim=-1) @ values

        y = self.model.target_embedding(tokens)
        features, after = self.step(y, _state(rnn), look)
        return [linear(self.model.readout, features[:, -1]), *_flat(after)]

    def _readout(self, y: Tensor, state: RnnState, look: Look) -> tuple[Tensor, RnnState]:
        s, state = self.rnns[0](y, state)
        mix: Any = self.model.decoder.mix
        return linear(mix, torch.cat([s, look(s)], dim=-1)).tanh(), state

    def _input(self, y: Tensor, state: RnnState, look: Look) -> tuple[Tensor, RnnState]:
        c = look(state.hidden[:, -1:])
        s, state = self.rnns[0](torch.cat([y, c], dim=-1), state)
        mix: Any = self.model.decoder.mix
        return linear(mix, torch.cat([s, y, c], dim=-1)).tanh(), state

    def _layer(self, y: Tensor, state: RnnState, look: Look) -> tuple[Tensor, RnnState]:
        below, above = state.layers(slice(None, 1)), state.layers(slice(1, None))
        s, below = self.rnns[0](y, below)
        features, above = self.rnns[1](torch.cat([s, look(s)], dim=-1), above)
        return features, RnnState.stack([below, above])


def rnn_attention_graphs(model: RnnAttention) -> Graphs:
    config = model.config
    layers = config.depth + (config.context == "layer")
    state = [
        Slot("source_mask", ("rows", "source"), changes=False, dtype="bool"),
        Slot("source_keys", ("rows", "source", config.width), changes=False),
        Slot("source_values", ("rows", "source", config.width), changes=False),
        *_slots(layers, config.width, config.cell),
    ]
    return Graphs(RnnAttentionEncoder(model), RnnAttentionDecoder(model), state)


class RnnLanguageDecoder(nn.Module):
    """Some words further: a whole prompt, or one word."""

    def __init__(self, model: RnnLanguageModel) -> None:
        super().__init__()
        self.model = model
        self.rnn = _Rnn(model.rnn)

    def forward(self, tokens: Int[Tensor, "R T"], *state: Tensor) -> list[Tensor]:
        features, after = self.rnn(self.model.embedding(tokens), _state(list(state)))
        last, words = features[:, -1], self.model.embedding
        if self.model.readout is not None:
            return [linear(self.model.readout, last), *_flat(after)]
        assert isinstance(words, nn.Embedding)
        return [F.linear(last, words.weight, self.model.bias), *_flat(after)]


def rnn_language_graphs(model: RnnLanguageModel) -> Graphs:
    config = model.config
    state = _slots(config.depth, config.width, config.cell)
    return Graphs(None, RnnLanguageDecoder(model), state)
