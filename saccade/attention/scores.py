"""How well a query fits a key: the lectures' f_att, from the MLP to the scaled dot product.

A score is a function of queries and keys. Those without weights are plain functions, those with
weights are modules; `attend` and the recurrent models take either.
"""

from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from saccade.attention.kernels.train.additive import additive_score
from saccade.attention.parameters import MATRIX, Role


@runtime_checkable
class Score(Protocol):
    """Every query against every key."""

    def __call__(
        self, q: Float[Tensor, "*batch T Dq"], k: Float[Tensor, "*batch S Dk"], /
    ) -> Float[Tensor, "*batch T S"]: ...


def dot(
    q: Float[Tensor, "*batch T K"], k: Float[Tensor, "*batch S K"]
) -> Float[Tensor, "*batch T S"]:
    """The plain similarity.

    eₜᵢ = qₜ · kᵢ
    """
    return q @ k.mT


def scaled_dot(
    q: Float[Tensor, "*batch T K"], k: Float[Tensor, "*batch S K"]
) -> Float[Tensor, "*batch T S"]:
    """The similarity with its variance undone, so that wide vectors do not make softmax peak.

    eₜᵢ = qₜ · kᵢ / √K
    """
    return q @ k.mT / k.shape[-1] ** 0.5


class Multiplicative(nn.Module):
    """A learned bilinear form; queries and keys may differ in width (Luong's "general").

    eₜᵢ = qₜᵀ W kᵢ
    """

    def __init__(self, query_width: int, key_width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(query_width, key_width))
        nn.init.xavier_uniform_(self.weight)

    def roles(self) -> dict[str, Role]:
        return {"weight": MATRIX}

    def forward(
        self, q: Float[Tensor, "*batch T Dq"], k: Float[Tensor, "*batch S Dk"]
    ) -> Float[Tensor, "*batch T S"]:
        return (q @ self.weight) @ k.mT


class Additive(nn.Module):
    """A one-layer MLP over query and key (Bahdanau et al. 2015, arXiv:1409.0473).

    eₜᵢ = wᵀ tanh(U qₜ + V kᵢ)
    """

    def __init__(self, query_width: int, key_width: int, *, hidden: int) -> None:
        super().__init__()
        self.of_query = nn.Linear(query_width, hidden)
        self.of_key = nn.Linear(key_width, hidden, bias=False)
        self.weight = nn.Parameter(torch.empty(hidden))
        nn.init.normal_(self.weight, std=hidden**-0.5)

    def forward(
        self, q: Float[Tensor, "*batch T Dq"], k: Float[Tensor, "*batch S Dk"]
    ) -> Float[Tensor, "*batch T S"]:
        return self.compare(q, self.of_key(k))

    def compare(
        self, q: Float[Tensor, "*batch T Dq"], projected: Float[Tensor, "*batch S F"]
    ) -> Float[Tensor, "*batch T S"]:
        """The score with V kᵢ already computed: a decoder asks the same keys at every step."""
        q = self.of_query(q)
        a, b = (x.reshape(-1, *x.shape[-2:]) for x in (q, projected))  # any batch is rows
        return additive_score(a, b, self.weight).view(*q.shape[:-1], projected.shape[-2])
