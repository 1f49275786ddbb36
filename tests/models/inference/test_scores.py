"""What `predict` scores with: the model's own scores, whatever form computes them."""

import pytest
import torch

from saccade.attention.look.looking import looking
from saccade.models.inference.scores import KeptScores
from tests.models.inference.test_encoder import FAMILIES, trained


@pytest.mark.parametrize("name", FAMILIES)
def test_scores_are_the_models(name: str) -> None:
    model, image = trained(FAMILIES[name]), torch.randn(2, 3, 32, 32)
    expected = model(image).detach()
    torch.testing.assert_close(KeptScores(model)(image), expected, rtol=1e-4, atol=1e-5)


def test_a_batch_is_as_its_images_are_one_by_one() -> None:
    scores, image = KeptScores(trained(FAMILIES["vit"])), torch.randn(3, 3, 32, 32)
    one_by_one = torch.cat([scores(one[None]) for one in image])
    torch.testing.assert_close(scores(image), one_by_one)


def test_weights_that_have_changed_are_packed_anew() -> None:
    model, image = trained(FAMILIES["vit"]), torch.randn(2, 3, 32, 32)
    scores = KeptScores(model)
    before = scores(image)
    with torch.no_grad():
        model.get_parameter("head.weight").mul_(2)
    torch.testing.assert_close(scores(image), model(image).detach())
    assert not torch.equal(scores(image), before)


def test_halves_are_told_in_float32_and_near() -> None:
    model, image = trained(FAMILIES["vit"]), torch.randn(2, 3, 32, 32)
    half, whole = (KeptScores(model)(image, one) for one in ("bfloat16", "float32"))
    assert half.dtype == torch.float32
    assert 0 < (half - whole).abs().max() < 0.05 * whole.abs().max()


def test_who_watches_is_shown_the_model_itself() -> None:
    model, image = trained(FAMILIES["vit"]), torch.randn(2, 3, 32, 32)
    with looking(model) as trace:
        KeptScores(model)(image)
    assert list(trace)
