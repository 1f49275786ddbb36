"""Recurrent networks as the lectures use them: vanilla, GRU, LSTM; stacked; ragged batches.

    vanilla   hₜ = tanh(W xₜ + U hₜ₋₁ + b)

GRU and LSTM add gates. torch's own kernels run them; here are their states, put rows first.
"""

from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from saccade.blocks.dropout import Dropout
from saccade.blocks.recurrent.gates import GATES, State

CellKind = Literal["vanilla", "gru", "lstm"]
CELLS: dict[CellKind, type[nn.RNN] | type[nn.GRU] | type[nn.LSTM]] = {
    "vanilla": nn.RNN,
    "gru": nn.GRU,
    "lstm": nn.LSTM,
}


class RnnState(NamedTuple):
    """Hidden state of each layer; an LSTM has a cell state besides. Rows first, to be selected."""

    hidden: Float[Tensor, "R layers H"]
    cell: Float[Tensor, "R layers H"] | None

    def select(self, rows: Int[Tensor, " R2"]) -> "RnnState":
        cell = None if self.cell is None else self.cell.index_select(0, rows)
        return RnnState(self.hidden.index_select(0, rows), cell)

    def to(self, dtype: torch.dtype) -> "RnnState":
        return RnnState(self.hidden.to(dtype), None if self.cell is None else self.cell.to(dtype))

    def of_layer(self, number: int) -> State:
        return self.hidden[:, number], None if self.cell is None else self.cell[:, number]

    def layers(self, which: slice) -> "RnnState":
        """The states of some of the layers."""
        return RnnState(self.hidden[:, which], None if self.cell is None else self.cell[:, which])

    @staticmethod
    def stack(states: list["RnnState"]) -> "RnnState":
        """Put states of layers on top of each other, the first at the bottom."""
        if len(states) == 1:
            return states[0]
        hidden = torch.cat([state.hidden for state in states], dim=1)
        cells = [state.cell for state in states if state.cell is not None]
        return RnnState(hidden, torch.cat(cells, dim=1) if cells else None)


class Rnn(nn.Module):
    """A stack of recurrent layers over a batch of sequences.

    hₜˡ = f(hₜˡ⁻¹, hₜ₋₁ˡ)        hₜ⁰ = xₜ
    """

    def __init__(
        self, input_width: int, width: int, *, cell: CellKind, depth: int = 1, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.cell: CellKind = cell
        self.width, self.depth, self.has_cell = width, depth, cell == "lstm"
        widths = [input_width] + [width] * (depth - 1)
        self.layers = nn.ModuleList(CELLS[cell](w, width, batch_first=True) for w in widths)
        remember_at_first(self)
        self.between = Dropout(dropout)

    def weights(self, number: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """W, U and their biases of a layer, gate below gate."""
        layer = self.layers[number]
        names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
        w, u, b, d = (layer.get_parameter(name) for name in names)
        return w, u, b, d

    def start(self, like: Float[Tensor, "R D"]) -> RnnState:
        """The state before the first word: zero."""
        zero = like.new_zeros(like.shape[0], self.depth, self.width)
        return RnnState(zero, zero if self.has_cell else None)

    def forward(
        self, x: Float[Tensor, "B T D"], state: RnnState | None = None
    ) -> tuple[Float[Tensor, "B T H"], RnnState]:
        state = state or self.start(x[:, 0])
        last: list[RnnState] = []
        for number, layer in enumerate(self.layers):
            x = self.between(x) if number else x
            below = state.layers(slice(number, number + 1))
            if x.shape[1] == 1:
                x, ended = self._step(number, x, below)
            else:
                x, last_state = layer(x, _layers_first(below))
                ended = _rows_first(last_state)
            last.append(ended)
        return x, RnnState.stack(last)

    def _step(
        self, number: int, x: Float[Tensor, "R 1 D"], state: RnnState
    ) -> tuple[Float[Tensor, "R 1 H"], RnnState]:
        """A single word: torch's kernels for sequences first put all weights in another order."""
        w, u, b, d = self.weights(number)
        h, c = state.of_layer(0)
        from_x, from_h = F.linear(x[:, 0], w, b), F.linear(h, u, d)
        before = h.to(from_x.dtype), None if c is None else c.to(from_x.dtype)  # half, by autocast
        (h, c), _ = GATES[self.cell].step(from_x, from_h, before)
        after = RnnState(h[:, None], None if c is None else c[:, None])
        return after.hidden, after


class SourceReader(nn.Module):
    """An encoder that reads ragged sequences and stops each at its own end.

    hₜ = f(xₜ, hₜ₋₁), one way or both ways; both ways are concatenated to the same width.
    """

    def __init__(
        self,
        input_width: int,
        width: int,
        *,
        cell: CellKind,
        depth: int = 1,
        dropout: float = 0.0,
        ways: Literal[1, 2] = 1,
    ) -> None:
        super().__init__()
        self.ways, self.width = ways, width
        between = dropout if depth > 1 else 0.0
        self.layers = CELLS[cell](
            input_width,
            width // ways,
            depth,
            batch_first=True,
            dropout=between,
            bidirectional=ways == 2,
        )
        remember_at_first(self)

    def forward(
        self, x: Float[Tensor, "B S D"], lengths: Int[Tensor, " B"]
    ) -> tuple[Float[Tensor, "B S H"], RnnState]:
        packing = Packing.of(lengths.cpu(), x.shape[1]).to(x.device)
        words = x.flatten(0, 1).index_select(0, packing.places)
        output, last = self.layers(
            PackedSequence(words, packing.sizes, packing.order, packing.order_back)
        )
        every = output.data.new_zeros(x.shape[0] * x.shape[1], self.width)  # half under autocast
        every = every.index_copy(0, packing.places, output.data)
        return every.view(*x.shape[:2], -1), self._join(_rows_first(last))

    def _join(self, state: RnnState) -> RnnState:
        """Put the two ways of a layer side by side: (B, layers·ways, H/ways) → (B, layers, H)."""

        def joined(x: Tensor) -> Tensor:
            return x.unflatten(1, (-1, self.ways)).flatten(2)

        return RnnState(joined(state.hidden), None if state.cell is None else joined(state.cell))


class Packing(NamedTuple):
    """Where the positions of ragged rows lie, step by step and the longest row first."""

    places: Int[Tensor, " N"]  # in rows one after another
    sizes: Int[Tensor, " S"]  # how many rows each step has; always on the CPU
    order: Int[Tensor, " B"]
    order_back: Int[Tensor, " B"]

    @classmethod
    def of(cls, lengths: Int[Tensor, " B"], longest: int) -> "Packing":
        falling, order = lengths.sort(descending=True)
        real = torch.arange(int(falling[0]))[:, None] < falling  # (S, B)
        time, row = real.nonzero(as_tuple=True)
        return cls(order[row] * longest + time, real.sum(dim=1), order, order.argsort())

    def to(self, device: torch.device) -> "Packing":
        """All that a device reads, in one transfer."""
        parts = (self.places, self.order, self.order_back)
        places, order, back = torch.cat(parts).to(device).split([len(part) for part in parts])
        return Packing(places, self.sizes, order, back)


def remember_at_first(module: nn.Module) -> None:
    """Fresh recurrent weights that keep what they hold.

    Orthogonal recurrence neither swells nor shrinks a state; a forget gate that starts open lets
    an LSTM carry words across a sentence from the first update on (Jozefowicz et al. 2015).
    """
    for rnn in module.modules():
        if not isinstance(rnn, nn.RNN | nn.GRU | nn.LSTM):
            continue
        for name, parameter in rnn.named_parameters():
            if name.startswith("weight_hh"):
                for gate in parameter.data.split(rnn.hidden_size):
                    nn.init.orthogonal_(gate)
            elif name.startswith("bias"):
                nn.init.zeros_(parameter)
                if isinstance(rnn, nn.LSTM) and name.startswith("bias_ih"):
                    parameter.data[rnn.hidden_size : 2 * rnn.hidden_size] = 1.0


def reverse(tokens: Int[Tensor, "B S"], lengths: Int[Tensor, " B"]) -> Int[Tensor, "B S"]:
    """Each sequence back to front, its padding left where it is (Sutskever et al. 2014)."""
    lengths = lengths.to(tokens.device)
    i = torch.arange(tokens.shape[1], device=tokens.device)
    back = torch.where(i < lengths[:, None], lengths[:, None] - 1 - i, i)  # (B, S)
    return tokens.gather(1, back)


def _rows_first(state: Tensor | tuple[Tensor, Tensor]) -> RnnState:
    if isinstance(state, tuple):
        return RnnState(state[0].transpose(0, 1), state[1].transpose(0, 1))
    return RnnState(state.transpose(0, 1), None)


def _layers_first(state: RnnState) -> Tensor | tuple[Tensor, Tensor]:
    hidden = state.hidden.transpose(0, 1).contiguous()
    return hidden if state.cell is None else (hidden, state.cell.transpose(0, 1).contiguous())
