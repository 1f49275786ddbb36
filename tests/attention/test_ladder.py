"""Each rung of the ladder against the rung before."""

import torch
from torch import Tensor, nn

from saccade.attention import masks
from saccade.attention.attend import attend
from saccade.attention.ladder import (
    KeysAndValues,
    MaskedSelfAttention,
    SelfAttention,
    many_queries,
    one_query,
    with_dot,
    with_mlp,
    with_scaled_dot,
)
from saccade.attention.scores import Additive


def randn(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


H, X = randn(4, seed=0), randn(5, 4, seed=1)
Q, BATCH = randn(2, 3, 4, seed=2), randn(2, 5, 4, seed=3)


def test_one_query_reads_the_weighted_sum_of_what_it_sees() -> None:
    c, a = one_query(H, X, score=lambda q, k: (q @ k.mT) ** 3)
    e = [sum(h * x for h, x in zip(H.tolist(), row)) ** 3 for row in X.tolist()]
    expected = torch.tensor(e, dtype=torch.float64).softmax(dim=0)
    torch.testing.assert_close(a, expected)
    torch.testing.assert_close(c, sum(expected[i] * X[i] for i in range(5)))


def test_rung_1_scores_by_an_mlp() -> None:
    torch.manual_seed(0)
    mlp = Additive(4, 4, hidden=6).double()
    c, a = with_mlp(H, X, mlp=mlp)
    torch.testing.assert_close(a, mlp(H[None], X)[0].softmax(dim=0))
    torch.testing.assert_close(c, a @ X)


def test_rung_2_is_one_query_with_the_dot_product() -> None:
    c, a = with_dot(H, X)
    torch.testing.assert_close(a, (X @ H).softmax(dim=0))
    torch.testing.assert_close(c, a @ X)


def test_rung_3_is_rung_2_with_the_query_divided_by_the_root_of_its_width() -> None:
    for ours, theirs in zip(with_scaled_dot(H, X), with_dot(H / 4**0.5, X)):
        torch.testing.assert_close(ours, theirs)


def test_rung_4_is_rung_3_for_every_query() -> None:
    output, weights = many_queries(Q[0], X)
    for t, query in enumerate(Q[0]):
        c, a = with_scaled_dot(query, X)
        torch.testing.assert_close(output[t], c)
        torch.testing.assert_close(weights[t], a)


def as_identity(*layers: nn.Linear) -> None:
    for layer in layers:
        with torch.no_grad():
            layer.weight.copy_(torch.eye(*layer.weight.shape))


def test_rung_5_with_identity_weights_is_rung_4() -> None:
    layer = KeysAndValues(4, key_width=4, value_width=4).double()
    as_identity(layer.to_k, layer.to_v)
    output, weights = layer(Q, BATCH)
    for row in range(2):
        expected = many_queries(Q[row], BATCH[row])
        torch.testing.assert_close(output[row], expected.output)
        torch.testing.assert_close(weights[row], expected.weights)


def test_rung_5_finds_by_keys_and_reads_values_of_another_width() -> None:
    layer = KeysAndValues(4, key_width=3, value_width=6).double()
    q = randn(2, 3, 3, seed=4)
    expected = attend(q, BATCH @ layer.to_k.weight.T, BATCH @ layer.to_v.weight.T)
    torch.testing.assert_close(layer(q, BATCH), expected)
    assert expected.output.shape == (2, 3, 6)


def test_rung_6_is_rung_5_asked_by_its_own_input() -> None:
    layer = SelfAttention(4, key_width=3, value_width=6).double()
    before = KeysAndValues(4, key_width=3, value_width=6).double()
    before.load_state_dict({"to_k.weight": layer.to_k.weight, "to_v.weight": layer.to_v.weight})
    torch.testing.assert_close(layer(BATCH), before(layer.to_q(BATCH), BATCH))


def test_rung_6_is_equivariant() -> None:
    layer, order = SelfAttention(4, key_width=3, value_width=6).double(), [3, 0, 4, 1, 2]
    torch.testing.assert_close(layer(BATCH[:, order]).output, layer(BATCH).output[:, order])


def test_rung_7_is_rung_6_with_the_future_masked() -> None:
    layer = MaskedSelfAttention(4, key_width=3, value_width=6).double()
    torch.testing.assert_close(layer(BATCH), layer.attention(BATCH, mask=masks.causal(5, 5)[0]))


def test_rung_7_never_lets_the_future_leak() -> None:
    layer = MaskedSelfAttention(4, key_width=3, value_width=6).double()
    y = layer(BATCH).output
    for t in range(4):
        changed = BATCH.clone()
        changed[:, t + 1 :] += 1
        z = layer(changed).output
        assert torch.equal(z[:, : t + 1], y[:, : t + 1])
        assert not torch.allclose(z[:, t + 1 :], y[:, t + 1 :])


def test_without_the_mask_the_future_does_leak() -> None:
    layer = SelfAttention(4, key_width=3, value_width=6).double()
    changed = BATCH.clone()
    changed[:, -1] += 1
    assert not torch.allclose(layer(changed).output[:, 0], layer(BATCH).output[:, 0])
