"""Losses as their formulas say: against integrals, and against sums over all that can be drawn."""

import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from saccade.models.image_tokens.dvae import Laplace
from saccade.tasks.reconstruction.losses import (
    LEAST_LOG_SCALE,
    diversity_loss,
    gumbel_softmax,
    kl_to_uniform,
    laplace_loss,
)

CELLS, CODES, DRAWS = 2, 3, 40_000
seed = st.integers(0, 999)


def randn(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@given(mean=st.floats(-2, 2), log_scale=st.floats(-2.5, 0.5))
def test_the_density_of_pixels_integrates_to_one(mean: float, log_scale: float) -> None:
    """Over x = σ(y), of which dx = x (1 − x) dy."""
    y = torch.arange(-30, 30, 0.01, dtype=torch.float64)
    x = y.sigmoid().view(-1, 1, 1, 1).expand(-1, 3, -1, -1)
    raw = LEAST_LOG_SCALE + math.log(math.expm1(log_scale - LEAST_LOG_SCALE))  # of softplus
    found = Laplace(torch.full_like(x, mean), torch.full_like(x, raw))
    density = (-laplace_loss(x, found)).exp()
    whole = (density * x[:, 0, 0, 0] * (1 - x[:, 0, 0, 0])).sum() * 0.01
    assert whole.item() == pytest.approx(1, abs=2e-3)


def test_the_likeliest_mean_is_the_logit_of_the_pixel() -> None:
    x = torch.full((1, 3, 2, 2), 0.3, dtype=torch.float64)
    means = torch.linspace(-2, 2, 401, dtype=torch.float64)
    losses = [
        laplace_loss(x, Laplace(torch.full_like(x, float(m)), torch.zeros_like(x))).item()
        for m in means
    ]
    assert means[torch.tensor(losses).argmin()] == pytest.approx(math.log(0.3 / 0.7), abs=0.01)


def test_the_loss_is_a_mean_over_pixels_and_channels_of_each_image() -> None:
    x = 0.1 + 0.8 * torch.rand(2, 3, 4, 5, dtype=torch.float64)
    mean, b = randn(2, 3, 4, 5, seed=1), randn(2, 3, 4, 5, seed=2).exp()
    raw = LEAST_LOG_SCALE + (b.log() - LEAST_LOG_SCALE).expm1().log()
    each = (2 * b * x * (1 - x)).log() + (x.logit() - mean).abs() / b
    torch.testing.assert_close(laplace_loss(x, Laplace(mean, raw)), each.flatten(1).mean(dim=1))


def test_flat_colours_have_no_infinite_likelihood() -> None:
    x = torch.full((1, 3, 2, 2), 0.5)
    sure = laplace_loss(x, Laplace(torch.zeros_like(x), torch.full_like(x, -1e4)))
    assert sure.item() == pytest.approx(math.log(2) + LEAST_LOG_SCALE + math.log(0.25))


@given(seed=seed, codes=st.integers(1, 5))
def test_the_kl_is_what_its_sum_over_all_codes_says(seed: int, codes: int) -> None:
    logits = randn(2, codes, 2, 3, seed=seed)
    expected = torch.zeros(2, dtype=torch.float64)
    for image, row, column in itertools.product(range(2), range(2), range(3)):
        q = logits[image, :, row, column].softmax(dim=0).tolist()
        expected[image] += sum(p * math.log(p * codes) for p in q)
    torch.testing.assert_close(kl_to_uniform(logits), expected)


def test_the_kl_is_nought_for_chance_and_largest_for_one_code() -> None:
    assert kl_to_uniform(torch.zeros(1, 7, 2, 2)).item() == pytest.approx(0, abs=1e-5)
    sure = F.one_hot(torch.zeros(1, 2, 2, dtype=torch.long), 7).permute(0, 3, 1, 2) * 1e3
    assert kl_to_uniform(sure).item() == pytest.approx(4 * math.log(7), rel=1e-5)


@given(seed=seed, codes=st.integers(1, 5))
def test_diversity_is_the_kl_of_the_mean_over_the_images_that_count(seed: int, codes: int) -> None:
    logits, counts = randn(3, codes, 2, 3, seed=seed), torch.tensor([1.0, 0.0, 1.0])
    q = torch.stack([logits[0].softmax(dim=0), logits[2].softmax(dim=0)]).mean(dim=(0, 2, 3))
    expected = sum(p * math.log(p * codes) for p in q.tolist())
    found = diversity_loss(logits, counts.double())
    assert found.item() == pytest.approx(expected, abs=1e-12)


def test_codes_that_each_one_cell_is_sure_of_are_as_diverse_as_can_be() -> None:
    sure = 1e3 * torch.eye(6).view(1, 6, 2, 3)
    assert diversity_loss(sure, torch.ones(1)).item() == pytest.approx(0, abs=1e-6)
    assert kl_to_uniform(sure).item() == pytest.approx(6 * math.log(6), rel=1e-5)
    one = torch.zeros_like(sure)
    one[:, 2] = 1e3
    one.requires_grad_()
    loss = diversity_loss(one, torch.ones(1))
    assert loss.item() == pytest.approx(math.log(6), rel=1e-5)
    loss.backward()
    assert one.grad is not None
    assert one.grad.isfinite().all()


# A decoder of two cells with three codes whose loss can be summed over all nine pairs of codes.
LOGITS = torch.tensor([[0.3, -0.8, 0.9], [-0.2, 0.6, 0.1]], dtype=torch.float64)
TABLE = torch.tensor([[1.0, -0.5], [-1.2, 0.4], [0.2, 1.5]], dtype=torch.float64)
PAIRED = torch.tensor([[0.7, -0.3], [0.4, 0.9]], dtype=torch.float64)
AIM = torch.tensor([0.4, -0.1], dtype=torch.float64)


def decoder_loss(weights: Tensor) -> Tensor:
    """Of weights (n, cells, codes): cells meet in it, and it is not linear in either."""
    vectors = weights @ TABLE  # (n, cells, 2)
    told = torch.tanh(vectors[:, 0]) + vectors[:, 1] * (vectors[:, 0] @ PAIRED)
    return (told - AIM).square().sum(dim=-1)


def exact_loss(logits: Tensor) -> Tensor:
    """Σ over all codes of all cells of their probability times their loss."""
    q, total = logits.softmax(dim=-1), logits.new_zeros(())
    for first, second in itertools.product(range(CODES), repeat=CELLS):
        hard = F.one_hot(torch.tensor([[first, second]]), CODES).double()
        total = total + q[0, first] * q[1, second] * decoder_loss(hard)[0]
    return total


def draws(logits: Tensor, temperature: float, seed: int) -> Tensor:
    torch.manual_seed(seed)
    grid = logits.mT.expand(DRAWS, CODES, CELLS).unsqueeze(2)  # (n, codes, 1, cells)
    drawn = gumbel_softmax(grid, torch.tensor(temperature, dtype=torch.float64))
    return drawn.squeeze(2).mT


@pytest.mark.parametrize("seed", range(3))
def test_draws_of_small_temperature_have_the_expectation_over_all_codes(seed: int) -> None:
    """Within four standard errors, and what a temperature above nought adds."""
    losses = decoder_loss(draws(LOGITS, 0.01, seed))
    error = losses.std() / DRAWS**0.5
    assert error < 0.02
    assert abs(losses.mean() - exact_loss(LOGITS)) < 4 * error + 0.01


def gradient_of_draws(temperature: float, count: int = 100_000) -> tuple[Tensor, Tensor]:
    """With respect to the logits: its mean, and the standard error of that."""
    each = LOGITS.expand(count, CELLS, CODES).clone().requires_grad_()
    torch.manual_seed(5)
    drawn = gumbel_softmax(each.mT.unsqueeze(2), torch.tensor(temperature, dtype=torch.float64))
    (found,) = torch.autograd.grad(decoder_loss(drawn.squeeze(2).mT).sum(), each)
    return found.mean(dim=0), found.std(dim=0) / count**0.5


def test_the_gradient_of_draws_is_that_of_the_expectation_as_the_temperature_falls() -> None:
    """It is biased by about 0.7 τ here: within four standard errors and τ."""
    exact = LOGITS.clone().requires_grad_()
    (true,) = torch.autograd.grad(exact_loss(exact), exact)
    assert true.abs().max() > 0.9
    for temperature in (0.05, 0.1):
        found, error = gradient_of_draws(temperature)
        assert ((found - true).abs() < 4 * error + temperature).all()
    hot, _ = gradient_of_draws(1.0)
    assert (hot - true).abs().max() > 0.3


@given(seed=seed, temperature=st.sampled_from([1 / 16, 0.3, 1.0]))
def test_weights_of_a_cell_sum_to_one_and_a_lower_temperature_sharpens_the_same_draw(
    seed: int, temperature: float
) -> None:
    logits = randn(2, 5, 3, 4, seed=seed)
    torch.manual_seed(seed)
    soft = gumbel_softmax(logits, torch.tensor(temperature))
    torch.manual_seed(seed)
    sharp = gumbel_softmax(logits, torch.tensor(temperature / 4))
    torch.testing.assert_close(soft.sum(dim=1), torch.ones(2, 3, 4, dtype=torch.float64))
    assert torch.equal(soft.argmax(dim=1), sharp.argmax(dim=1))
    assert (sharp.amax(dim=1) >= soft.amax(dim=1)).all()


def test_codes_are_drawn_as_often_as_they_are_likely() -> None:
    drawn = draws(LOGITS, 1.0, seed=3).argmax(dim=-1)  # (n, cells)
    for cell in range(CELLS):
        shares = drawn[:, cell].bincount(minlength=CODES).double() / DRAWS
        torch.testing.assert_close(shares, LOGITS[cell].softmax(dim=0), atol=0.012, rtol=0)
