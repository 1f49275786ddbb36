"""Cosines with a temperature: how alike texts and images are."""

import math

import pytest
import torch
import torch.nn.functional as F

from saccade.models.joint.contrast import first_log_scale, scale_of, scaled_cosines, unit


def randn(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def test_it_is_the_scale_times_the_cosine_of_every_text_and_image() -> None:
    texts, images = randn(3, 5, seed=0), randn(4, 5, seed=1)
    found = scaled_cosines(unit(texts), unit(images), torch.tensor(7.0))
    expected = 7 * F.cosine_similarity(texts[:, None], images[None], dim=2)
    torch.testing.assert_close(found, expected)


def test_the_scale_starts_at_a_fourteenth_and_never_passes_a_hundred() -> None:
    log_scale = first_log_scale()
    assert scale_of(log_scale).item() == pytest.approx(1 / 0.07)
    assert float(scale_of(torch.tensor(math.log(99.0)))) == pytest.approx(99)
    assert float(scale_of(torch.tensor(8.0))) == pytest.approx(100, abs=1e-4)
    scale_of(log_scale).backward()
    assert log_scale.grad is not None
    assert float(log_scale.grad) == pytest.approx(1 / 0.07)  # it is learnt


def test_autocast_takes_no_digits_from_logits() -> None:
    texts, images = unit(randn(3, 64, seed=0)), unit(randn(4, 64, seed=1))
    exact = scaled_cosines(texts, images, torch.tensor(100.0))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = scaled_cosines(texts, images, torch.tensor(100.0))
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, exact, rtol=0, atol=0)


def test_a_vector_of_half_precision_has_length_one_in_single() -> None:
    found = unit(randn(2, 9, seed=0).bfloat16())
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.norm(dim=1), torch.ones(2))
