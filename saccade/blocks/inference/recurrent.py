"""Recurrent layers one word at a time, as decoding runs them: weights joined and packed once.

    hₜ = cell(W xₜ + b, U hₜ₋₁ + d)

What does not wait for a step's result is joined into one product with what does not either, and
layers of a word are looked up.
"""

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from saccade.attention.scores import Additive, Score
from saccade.blocks.inference.affine import Affine, Precision, affine
from saccade.blocks.kernels import runs_kernels
from saccade.blocks.recurrent.gates import GATES, State
from saccade.blocks.recurrent.memory import AttentionMemory, look
from saccade.blocks.recurrent.rnn import Rnn, RnnState

Linear = tuple[Tensor, Tensor]  # weight and bias
Beside = Callable[[Float[Tensor, "R D"]], tuple[Float[Tensor, "R out"], Float[Tensor, "R F"]]]
LARGEST_TABLE = 1 << 25  # numbers


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


def joined(*layers: Linear) -> Linear:
    """Layers of one input as one, their outputs side by side."""
    weights, biases = zip(*layers)
    return torch.cat(weights), torch.cat(biases)


class WordTable:
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


class PackedRnn:
    """A stack of recurrent layers; what goes into the lowest and comes from the past is given."""

    def __init__(self, rnn: Rnn, precision: Precision, *, past: int | None = None) -> None:
        self.cell = rnn.cell
        weights = [rnn.weights(number) for number in range(rnn.depth)]
        self._past = [affine(u, d, precision=precision) for _, u, _, d in weights[:past]]
        self._above = [affine(w, b, precision=precision) for w, _, b, _ in weights[1:]]

    def past(self, before: RnnState) -> list[Float[Tensor, "R G"]]:
        """U hₜ₋₁ + d of the layers asked for, from the lowest."""
        return [layer(h) for layer, h in zip(self._past, before.hidden.unbind(1))]

    def __call__(
        self,
        x: Float[Tensor, "R G"],
        past: Sequence[Float[Tensor, "R G"]],
        before: RnnState,
        into: RnnState | None = None,
    ) -> tuple[Float[Tensor, "R H"], RnnState]:
        """The highest state and all of them, which take the places of `into` where given."""
        after: list[RnnState] = []
        for number, u in enumerate(past):
            x = self._above[number - 1](x) if number else x
            places = None if into is None else into.of_layer(number)
            x, c = cell_step(self.cell, x, u, before.of_layer(number), places)
            after.append(RnnState(x[:, None], None if c is None else c[:, None]))
        return x, into or RnnState.stack(after)


class PackedLook:
    """What states read of a memory, by any score and any query made of a state, wide as words.

    q = q(s)        e = f_att(q, k)        c = Σᵢ softmax(e)ᵢ vᵢ
    """

    def __init__(
        self, query: nn.Module, score: Score, words: Float[Tensor, "V D"], precision: Precision
    ) -> None:
        self.weight, last = None, None
        self.precision: Precision = precision
        units = torch.eye(words.shape[1]).to(words)
        if isinstance(score, Additive):
            last = 2 * score.of_query.weight, 2 * score.of_query.bias
            dtype = torch.bfloat16 if precision == "bfloat16" else score.weight.dtype
            self.weight = (2 * score.weight.detach()).to(dtype)
        linears = [(x.weight, x.bias) for x in query.modules() if isinstance(x, nn.Linear)]
        self.then: list[Affine] = []
        if any(isinstance(x, nn.Sigmoid) for x in query.modules()):
            after = [] if last is None else [affine(*last, precision=precision)]
            self.then = [torch.sigmoid, *after]
        elif last is not None:  # two linear layers are one
            linears = [(last[0] @ w, last[0] @ b + last[1]) for w, b in linears] or [last]
        self.query = linears
        self.form = score(units, units).detach() if self.weight is None else None

    def prepared(self, memory: AttentionMemory) -> AttentionMemory:
        """With keys as queries meet them: doubled to be added to, or to be multiplied with.

        A bilinear score is a product with what unit vectors score.
        """
        keys = 2 * memory.keys if self.form is None else F.linear(memory.keys, self.form)
        return memory._replace(keys=keys)

    def beside(self, layer: Linear) -> Beside:
        """A linear layer of a state together with the state's query, by one product."""
        width, whole = len(layer[0]), not self.query
        product = affine(*joined(layer, *self.query), precision=self.precision)

        def both(s: Float[Tensor, "R D"]) -> tuple[Float[Tensor, "R out"], Float[Tensor, "R F"]]:
            y = product(s)
            q = s if whole else y[:, width:]
            for bend in self.then:
                q = bend(q)
            return y[:, :width], q

        return both

    def __call__(
        self, q: Float[Tensor, "R F"], memory: AttentionMemory, onto: Tensor | None = None
    ) -> Float[Tensor, "R D"]:
        return look(q, memory, self.weight, onto)[1]
