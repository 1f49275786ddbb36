"""Recurrent layers one word at a time, as decoding runs them: weights joined and packed once.

    hₜ = cell(W xₜ + b, U hₜ₋₁ + d)

Words are looked up with W applied already. States are a tuple of tensors, layer by layer.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from saccade.blocks.inference.affine import Precision, affine
from saccade.blocks.kernels import runs_kernels
from saccade.blocks.recurrent.gates import GATES, State
from saccade.blocks.recurrent.rnn import Rnn, RnnState

LARGEST_TABLE = 1 << 25  # numbers


class Carried(NamedTuple):
    """What goes from step to step: every layer's state, and an LSTM's cells."""

    hidden: tuple[Float[Tensor, "R H"], ...]
    cells: tuple[Float[Tensor, "R H"], ...]

    @classmethod
    def of(cls, state: RnnState, dtype: torch.dtype) -> "Carried":
        """A model's own state, layer by layer."""
        cells = () if state.cell is None else state.cell.to(dtype).unbind(1)
        return cls(state.hidden.to(dtype).unbind(1), cells)

    @classmethod
    def at(cls, places: Float[Tensor, "parts R H"], depth: int) -> "Carried":
        """What `parts` stacked."""
        parts = places.unbind()
        return cls(parts[:depth], parts[depth:])

    @property
    def parts(self) -> tuple[Tensor, ...]:
        return self.hidden + self.cells

    def select(self, rows: Int[Tensor, " R2"]) -> "Carried":
        """These rows in this order."""
        hidden, cells = (tuple(x.index_select(0, rows) for x in part) for part in self)
        return Carried(hidden, cells)

    def of_layer(self, number: int) -> State:
        return self.hidden[number], self.cells[number] if self.cells else None

    def layers(self, which: slice) -> "Carried":
        """The states of some of the layers."""
        return Carried(self.hidden[which], self.cells[which])


def cell_step(
    kind: str,
    x: Float[Tensor, "R G"],
    u: Float[Tensor, "R G"],
    state: State,
    into: State | None,
) -> State:
    """One step of a cell of `GATES`, without a gradient, put `into` places where given."""
    if runs_kernels(x):
        from saccade.blocks.kernels.cell import cell

        return cell(kind, x, u, state, into)
    after, _ = GATES[kind].step(x, u, state)
    for place, new in zip(into or (), after):
        if place is not None and new is not None:
            place.copy_(new)
    return after


class Words:
    """A linear layer of words, looked up where all words together are not too many.

    y = W E[word] + b
    """

    def __init__(
        self,
        embedding: Float[Tensor, "V D"],
        weight: Float[Tensor, "out D"],
        bias: Float[Tensor, " out"],
        precision: Precision,
    ) -> None:
        dtype = torch.bfloat16 if precision == "bfloat16" else embedding.dtype
        self.product, table = None, embedding
        if len(embedding) * len(weight) <= LARGEST_TABLE:
            table = F.linear(embedding, weight, bias)
        else:
            self.product = affine(weight, bias, precision=precision)
        self.table = table.detach().to(dtype)

    def __call__(self, words: Int[Tensor, " R"]) -> Float[Tensor, "R out"]:
        y = self.table.index_select(0, words)
        return y if self.product is None else self.product(y)


class LeanRnn:
    """A stack of recurrent layers; what goes into the lowest and comes from the past is given."""

    def __init__(self, rnn: Rnn, precision: Precision, *, past: int) -> None:
        self.cell = rnn.cell
        weights = [rnn.weights(number) for number in range(rnn.depth)]
        self._past = [affine(u, d, precision=precision) for _, u, _, d in weights[:past]]
        self._above = [affine(w, b, precision=precision) for w, _, b, _ in weights[1:]]

    def past(self, before: Carried) -> list[Float[Tensor, "R G"]]:
        """U hₜ₋₁ + d of the layers asked for, from the lowest."""
        return [layer(h) for layer, h in zip(self._past, before.hidden)]

    def __call__(
        self,
        x: Float[Tensor, "R G"],
        past: Sequence[Float[Tensor, "R G"]],
        before: Carried,
        into: Carried | None = None,
    ) -> tuple[Float[Tensor, "R H"], Carried]:
        """The highest state and all of them, which take the places of `into` where given."""
        hidden, cells = list[Tensor](), list[Tensor]()
        for number, u in enumerate(past):
            x = self._above[number - 1](hidden[-1]) if number else x
            places = None if into is None else into.of_layer(number)
            h, c = cell_step(self.cell, x, u, before.of_layer(number), places)
            hidden.append(h)
            cells.extend([] if c is None else [c])
        return hidden[-1], Carried(tuple(hidden), tuple(cells))
