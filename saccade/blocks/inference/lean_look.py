"""A recurrent decoder's look at a memory, as decoding runs it: weights packed once, beams shared.

    e = f_att(q(s), k)        a = softmax(e)        c = Σᵢ aᵢ vᵢ

Keys and values are there once for each sentence; its beams are rows of queries. All that is the
same at every step is put into the keys beforehand.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from saccade.attention.kernels.train.additive import doubled_score
from saccade.attention.scores import Additive, Multiplicative, scaled_dot
from saccade.blocks.inference.affine import Affine, Precision, affine
from saccade.blocks.kernels import runs_kernels
from saccade.blocks.recurrent.attending_rnn import Looked

Linear = tuple[Tensor, Tensor]  # weight and bias
MOST_PLACES = 512  # that the kernel holds at once


class Look:
    """What states read of a memory, by any score."""

    def __init__(self, score: Any, dtype: torch.dtype) -> None:
        self.score, self.w = score, None
        if isinstance(score, Additive):
            self.w = (2 * score.weight.detach()).to(dtype)

    def keys(self, keys: Float[Tensor, "B S F"]) -> Float[Tensor, "B S F2"]:
        """Keys for a query to be multiplied with, or, doubled, to be added to."""
        if isinstance(self.score, Additive):
            return 2 * keys
        if isinstance(self.score, Multiplicative):
            return F.linear(keys, self.score.weight)
        return keys / keys.shape[-1] ** 0.5 if self.score is scaled_dot else keys

    def __call__(
        self,
        q: Float[Tensor, "R F"],
        memory: Looked,
        onto: Float[Tensor, "R D"] | None = None,
    ) -> Float[Tensor, "R D"]:
        """What is read; given something to add it `onto`, tanh(onto + c)."""
        if self.w is not None and _takes_kernel(memory):
            from saccade.attention.kernels.decode.additive_beams import read

            return read(q, *memory, self.w, onto)
        by_sentence = q.view(len(memory.keys), -1, q.shape[-1])  # (B, k, F)
        if self.w is None:
            e = by_sentence @ memory.keys.mT  # (B, k, S)
        else:
            e = doubled_score(by_sentence, memory.keys, self.w)
        a = (e if memory.hide is None else e.add_(memory.hide)).softmax(dim=-1)
        c = (a @ memory.values).flatten(0, 1)
        return c if onto is None else c.add_(onto).tanh_()


def _takes_kernel(memory: Looked) -> bool:
    return runs_kernels(memory.keys) and 0 < memory.keys.shape[1] <= MOST_PLACES


class Asking:
    """A linear layer of a state together with the state's query: one product where it can be.

    y = W s + b        q = U q(s)
    """

    def __init__(
        self, weight: Tensor, bias: Tensor, query: nn.Module, score: Any, how: Precision
    ) -> None:
        self.width, self.query = len(weight), None
        linear = _as_one(query, score)
        if linear is None:
            self.query = _one_after_another(query, score, how)
        else:
            weight, bias = joined((weight, bias), linear)
        self.product = affine(weight, bias, precision=how)

    def __call__(
        self, s: Float[Tensor, "R D"]
    ) -> tuple[Float[Tensor, "R out"], Float[Tensor, "R F"]]:
        y = self.product(s)
        if self.query is not None:
            return y, self.query(s)
        return y[:, : self.width], y[:, self.width :]


def joined(*layers: Linear) -> Linear:
    """Layers of one input as one, their outputs side by side."""
    weights, biases = zip(*layers)
    return torch.cat(weights), torch.cat(biases)


def _doubled(score: Additive) -> Linear:
    return 2 * score.of_query.weight, 2 * score.of_query.bias


def _as_one(query: nn.Module, score: Any) -> Linear | None:
    """Query and score's layer as a single linear one, if they are."""
    if isinstance(query, nn.Identity):
        return _doubled(score) if isinstance(score, Additive) else None
    if not isinstance(query, nn.Linear):
        return None
    if not isinstance(score, Additive):
        return query.weight, query.bias
    weight, bias = _doubled(score)
    return weight @ query.weight, weight @ query.bias + bias


def _one_after_another(
    query: nn.Module, score: Any, how: Precision
) -> Callable[[Float[Tensor, "R D"]], Float[Tensor, "R F"]]:
    steps: list[Affine] = []
    for layer in query.modules():
        if isinstance(layer, nn.Linear):
            steps.append(affine(layer.weight, layer.bias, precision=how))
        elif isinstance(layer, nn.Sigmoid):
            steps.append(torch.sigmoid)
    if isinstance(score, Additive):
        steps.append(affine(*_doubled(score), precision=how))

    def ask(s: Float[Tensor, "R D"]) -> Float[Tensor, "R F"]:
        for step in steps:
            s = step(s)
        return s

    return ask
