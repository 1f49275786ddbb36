"""The lectures' ladder: from one query and an MLP to self-attention, one step at a time.

Each rung changes one thing about the rung before. The last rung, many heads, is
`saccade.attention.multihead`.
"""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from saccade.attention import masks
from saccade.attention.attend import Attended, attend
from saccade.attention.scores import Additive, Score, dot, scaled_dot


def one_query(
    h: Float[Tensor, " Dq"], x: Float[Tensor, "S Dk"], *, score: Score
) -> tuple[Float[Tensor, " Dk"], Float[Tensor, " S"]]:
    """One query reads a set of vectors, by any score.

    eᵢ = f_att(h, xᵢ)        a = softmax(e)        c = Σᵢ aᵢ xᵢ
    """
    attended = attend(h[None], x, x, score=score)
    return attended.output[0], attended.weights[0]


def with_mlp(
    h: Float[Tensor, " Dq"], x: Float[Tensor, "S Dk"], *, mlp: Additive
) -> tuple[Float[Tensor, " Dk"], Float[Tensor, " S"]]:
    """Rung 1: f_att is an MLP."""
    return one_query(h, x, score=mlp)


def with_dot(
    h: Float[Tensor, " D"], x: Float[Tensor, "S D"]
) -> tuple[Float[Tensor, " D"], Float[Tensor, " S"]]:
    """Rung 2: f_att is a dot product.

    eᵢ = h · xᵢ
    """
    return one_query(h, x, score=dot)


def with_scaled_dot(
    h: Float[Tensor, " D"], x: Float[Tensor, "S D"]
) -> tuple[Float[Tensor, " D"], Float[Tensor, " S"]]:
    """Rung 3: the dot product is scaled, or its variance grows with D and softmax peaks.

    eᵢ = h · xᵢ / √D
    """
    return one_query(h, x, score=scaled_dot)


def many_queries(q: Float[Tensor, "T D"], x: Float[Tensor, "S D"]) -> Attended:
    """Rung 4: every query makes its own output.

    eₜᵢ = qₜ · xᵢ / √D        yₜ = Σᵢ aₜᵢ xᵢ
    """
    return attend(q, x, x)


class KeysAndValues(nn.Module):
    """Rung 5: one projection of the input to be found by, another to be read.

    k = x W_K        v = x W_V        eₜᵢ = qₜ · kᵢ / √D_K        yₜ = Σᵢ aₜᵢ vᵢ
    """

    def __init__(self, input_width: int, *, key_width: int, value_width: int) -> None:
        super().__init__()
        self.to_k = nn.Linear(input_width, key_width, bias=False)
        self.to_v = nn.Linear(input_width, value_width, bias=False)

    def forward(self, q: Float[Tensor, "B T Dk"], x: Float[Tensor, "B S D"]) -> Attended:
        return attend(q, self.to_k(x), self.to_v(x))


class SelfAttention(nn.Module):
    """Rung 6: the queries come from the input as well.

    q = x W_Q        k = x W_K        v = x W_V        y = softmax(q kᵀ / √D_K) v
    """

    def __init__(self, input_width: int, *, key_width: int, value_width: int) -> None:
        super().__init__()
        self.to_q = nn.Linear(input_width, key_width, bias=False)
        self.to_k = nn.Linear(input_width, key_width, bias=False)
        self.to_v = nn.Linear(input_width, value_width, bias=False)

    def forward(
        self, x: Float[Tensor, "B S D"], *, mask: Bool[Tensor, "#B #S S"] | None = None
    ) -> Attended:
        return attend(self.to_q(x), self.to_k(x), self.to_v(x), mask=mask)


class MaskedSelfAttention(nn.Module):
    """Rung 7: no vector looks at the future: its scores are −∞.

    eₜᵢ = −∞ for i > t
    """

    def __init__(self, input_width: int, *, key_width: int, value_width: int) -> None:
        super().__init__()
        self.attention = SelfAttention(input_width, key_width=key_width, value_width=value_width)

    def forward(self, x: Float[Tensor, "B S D"]) -> Attended:
        past = masks.causal(x.shape[1], x.shape[1], device=x.device)[0]
        return self.attention(x, mask=past)
