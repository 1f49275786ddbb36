"""What claims measure, against independent computations."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from saccade.app.figures.claims import c04_order, c06_linear, c08_growth
from saccade.app.figures.claims.c02_alignment import diagonal, error_rate
from saccade.app.figures.claims.c03_scaling import entropy, gradient_norm
from saccade.app.figures.claims.c05_encodings import properties
from saccade.app.figures.claims.c07_leakage import SmallDecoder, next_word_loss, seen_pairs
from saccade.app.figures.claims.c09_norms import padding_changes
from saccade.app.figures.claims.c11_compute import between
from saccade.app.figures.finding import over_seeds
from saccade.blocks.conv import GatedConv, pad_around
from saccade.blocks.positions import ENCODINGS
from saccade.data.lingua import AlignedPair

seed = st.integers(0, 999)


@given(seed=seed, size=st.integers(2, 8))
def test_the_gradient_of_a_softmax_is_that_of_autograd(seed: int, size: int) -> None:
    rng = torch.Generator().manual_seed(seed)
    scores = 3 * torch.randn(size, generator=rng, dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(lambda e: e.softmax(-1), scores)
    torch.testing.assert_close(gradient_norm(scores.softmax(-1)), jacobian.norm())
    categorical = torch.distributions.Categorical(logits=scores)
    torch.testing.assert_close(entropy(scores.softmax(-1)), categorical.entropy())


def test_a_sum_over_words_does_not_see_order_and_a_running_sum_does() -> None:
    x = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(0))
    order = torch.tensor([4, 2, 0, 1, 3])
    assert c04_order.unequal(lambda x: x + x.sum(dim=1, keepdim=True), x, order) < 1e-6
    assert c04_order.unequal(lambda x: x.cumsum(dim=1), x, order) > 0.1


def test_what_encodings_are_asked_for() -> None:
    sines = properties(ENCODINGS["sinusoids"])
    step = sum((2 - 2 * math.cos(10000 ** (-2 * k / 16))) for k in range(8)) ** 0.5
    table = ENCODINGS["sinusoids"](torch.arange(2).double(), 16)
    assert (table[1] - table[0]).norm().item() == pytest.approx(step)
    assert sines["of even steps"] == pytest.approx(1)
    assert properties(ENCODINGS["raw-index"])["bounded"] == 511
    moved = 4 * abs(5 / 512 - 5 / 10)  # 16 equal features
    assert properties(ENCODINGS["fraction"])["same in any sentence"] == pytest.approx(moved)


def test_a_stack_of_attention_is_one_matrix() -> None:
    stack = c06_linear.fixed_stack(3, thinks=False, seed=0)
    zero = torch.zeros_like(stack.reference)
    with torch.no_grad():
        constant = stack(zero)
        u = torch.randn(zero.shape, generator=torch.Generator().manual_seed(1))
        torch.testing.assert_close(stack(3 * u) - constant, 3 * (stack(u) - constant))
    v = u.flip(1)
    assert c06_linear.superposition_error(stack, u, v) < 1e-5
    bent = c06_linear.fixed_stack(3, thinks=True, seed=0)
    assert c06_linear.superposition_error(bent, u, v) > 1e-2


@pytest.mark.parametrize("length", [2, 5, 8, 11])
def test_so_many_convolutions_join_the_first_word_to_the_last(length: int) -> None:
    def reaches(layers: int) -> bool:
        x = torch.randn(1, length, 4, requires_grad=True)
        y = x
        for _ in range(layers):
            conv = GatedConv(4, kernel=c08_growth.KERNEL, dropout=0.0)
            y = conv(pad_around(y, c08_growth.KERNEL))
        y[0, -1].sum().backward()
        assert x.grad is not None
        return bool(x.grad[0, 0].abs().sum() > 0)

    needed = c08_growth.PATHS[c08_growth.CONV](length)
    assert reaches(needed)
    assert not reaches(needed - 1)


def test_memory_is_that_of_what_backward_needs() -> None:
    x = torch.randn(2, 8, 16, requires_grad=True)
    assert c08_growth.kept_bytes(lambda x: x + 1, x) == 0
    assert c08_growth.kept_bytes(lambda x: x.exp(), x) == x.numel() * 4
    assert c08_growth.power((10, 20), (3.0, 12.0)) == pytest.approx(2)


def test_zeros_in_a_batch_change_its_norm_as_reckoned() -> None:
    rng = torch.Generator().manual_seed(0)
    bare = 1 + torch.randn(8, 8, 64, generator=rng)
    flat, padded = bare.flatten(0, 1), torch.cat([bare, torch.zeros(8, 8, 64)], 1).flatten(0, 1)

    def normed(by: torch.Tensor) -> torch.Tensor:
        return (flat - by.mean(0)) / (by.var(0, unbiased=False) + 1e-5).sqrt()

    expected = (normed(padded) - normed(flat)).norm() / normed(flat).norm()
    assert padding_changes("batch", 16, 0) == pytest.approx(expected.item(), rel=1e-4)
    assert padding_changes("layer", 16, 0) == 0


def test_the_masked_decoder_cannot_see_the_future_and_the_other_can() -> None:
    tokens = torch.randint(9, (2, 7), generator=torch.Generator().manual_seed(0))
    other = tokens.clone()
    other[:, -1] = (other[:, -1] + 1) % 9
    for causal in (True, False):
        torch.manual_seed(0)
        model = SmallDecoder(9, causal=causal).eval()
        same = torch.equal(model(tokens)[:, :-1], model(other)[:, :-1])
        assert same == causal
    torch.manual_seed(0)
    model = SmallDecoder(9, causal=True).eval()
    at_once = torch.nn.functional.cross_entropy(
        model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten()
    )
    assert next_word_loss(model, tokens) == pytest.approx(at_once.item(), rel=1e-5)


def test_pairs_of_words_that_were_read() -> None:
    assert seen_pairs([("a", "b", "c"), ("b", "a")], {("a", "b"), ("b", "c")}) == pytest.approx(
        2 / 3
    )


def test_between_two_points_a_line_is_straight_over_the_logarithm() -> None:
    line = tuple(over_seeds(x, [y]) for x, y in ((1e3, 10.0), (1e5, 30.0), (1e6, 50.0)))
    assert between(line, 1e4) == pytest.approx(20)
    assert between(line, 1e5) == pytest.approx(30)
    assert between(line, 10**5.5) == pytest.approx(40)
    assert (between(line, 1.0), between(line, 1e9)) == (10.0, 50.0)


def test_the_diagonal_goes_from_the_first_word_to_the_last() -> None:
    pair = AlignedPair("a b c d", "x y", ((0, 0),), ((0, 0),))
    assert diagonal(pair) == {(0, 0), (2, 1)}
    longer = AlignedPair("a b", "w x y z", ((0, 0),), ((0, 0),))
    assert diagonal(longer) == {(0, 0), (0, 1), (1, 2), (1, 3)}
    assert error_rate([{(0, 0)}], [pair]) == 0
