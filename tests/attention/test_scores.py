"""Every score against its formula, written with loops."""

import math

import torch
from torch import Tensor

from saccade.attention.scores import Additive, Multiplicative, dot, scaled_dot


def randn(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


Q, K, NARROW = randn(2, 3, 4, seed=0), randn(2, 5, 4, seed=1), randn(2, 5, 6, seed=2)


def sums(one: Tensor, other: Tensor) -> float:
    return sum(a * b for a, b in zip(one.tolist(), other.tolist()))


def loops(q: Tensor, k: Tensor, formula: object) -> Tensor:
    assert callable(formula)
    rows = [[[formula(a, b) for b in keys] for a in queries] for queries, keys in zip(q, k)]
    return torch.tensor(rows, dtype=torch.float64)


def test_dot_is_the_sum_of_products() -> None:
    torch.testing.assert_close(dot(Q, K), loops(Q, K, sums))


def test_scaled_dot_divides_by_the_root_of_the_width() -> None:
    expected = loops(Q, K, lambda q, k: sums(q, k) / math.sqrt(4))
    torch.testing.assert_close(scaled_dot(Q, K), expected)


def test_multiplicative_is_a_bilinear_form_between_different_widths() -> None:
    score = Multiplicative(4, 6).double()
    w = score.weight.tolist()
    expected = loops(
        Q,
        NARROW,
        lambda q, k: sum(q[i].item() * w[i][j] * k[j].item() for i in range(4) for j in range(6)),
    )
    torch.testing.assert_close(score(Q, NARROW), expected)


def test_additive_is_an_mlp_over_query_and_key() -> None:
    score = Additive(4, 6, hidden=3).double()
    u, b, v, w = score.of_query.weight, score.of_query.bias, score.of_key.weight, score.weight

    def formula(q: Tensor, k: Tensor) -> float:
        bent = [math.tanh(sums(u[f], q) + b[f].item() + sums(v[f], k)) for f in range(3)]
        return sum(w[f].item() * bent[f] for f in range(3))

    torch.testing.assert_close(score(Q, NARROW), loops(Q, NARROW, formula))


def test_additive_with_precomputed_keys_is_the_same_score() -> None:
    score = Additive(4, 6, hidden=3).double()
    assert torch.equal(score.compare(Q, score.of_key(NARROW)), score(Q, NARROW))


def test_variance_of_the_dot_grows_with_the_width_and_its_softmax_peaks() -> None:
    variance, entropy = {}, {}
    for width in (4, 64, 1024):
        scores = dot(randn(1000, 1, width, seed=0), randn(1000, 8, width, seed=1))
        a = scores.softmax(dim=-1)
        variance[width] = scores.var().item() / width
        entropy[width] = -(a * a.clamp(min=1e-30).log()).sum(dim=-1).mean().item()
    assert all(abs(ratio - 1) < 0.1 for ratio in variance.values())
    assert entropy[4] > 2 * entropy[64] > 4 * entropy[1024]


def test_scaling_keeps_variance_and_entropy_at_any_width() -> None:
    entropies = []
    for width in (4, 64, 1024):
        scores = scaled_dot(randn(1000, 1, width, seed=0), randn(1000, 8, width, seed=1))
        a = scores.softmax(dim=-1)
        assert abs(scores.var().item() - 1) < 0.1
        entropies.append(-(a * a.log()).sum(dim=-1).mean().item())
    assert max(entropies) - min(entropies) < 0.05
