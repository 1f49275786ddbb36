"""Boxes: their two forms, and how much two of them have in common."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from saccade.data.boxes import area, generalised_iou, iou, to_centres, to_corners

seed = st.integers(0, 9999)


def boxes(count: int, seed: int) -> Tensor:
    """By corners, anywhere."""
    draws = torch.Generator().manual_seed(seed)
    first, size = torch.rand(2, count, 2, generator=draws, dtype=torch.float64)
    return torch.cat([first, first + size], dim=1)


MADE: dict[str, tuple[list[float], list[float], float, float]] = {
    "the same": ([0, 0, 2, 2], [0, 0, 2, 2], 1, 1),
    "a quarter each": ([0, 0, 2, 2], [1, 1, 3, 3], 1 / 7, 1 / 7 - 2 / 9),
    "one in the other": ([0, 0, 4, 4], [1, 1, 2, 2], 1 / 16, 1 / 16),
    "side by side": ([0, 0, 1, 1], [1, 0, 2, 1], 0, 0),
    "apart": ([0, 0, 1, 1], [3, 0, 4, 1], 0, -1 / 2),
    "corner to corner": ([0, 0, 1, 1], [1, 1, 2, 2], 0, -1 / 2),
}


@pytest.mark.parametrize("case", MADE)
def test_what_two_boxes_share(case: str) -> None:
    a, b, share, general = MADE[case]
    one, other = torch.tensor(a, dtype=torch.float64), torch.tensor(b, dtype=torch.float64)
    assert iou(one, other)[0].item() == pytest.approx(share)
    assert generalised_iou(one, other).item() == pytest.approx(general)


@given(seed=seed)
def test_either_form_is_the_other_and_back(seed: int) -> None:
    corners = boxes(7, seed)
    torch.testing.assert_close(to_corners(to_centres(corners)), corners)
    torch.testing.assert_close(to_centres(corners)[:, 2:].prod(dim=1), area(corners))


@given(seed=seed)
def test_shares_lie_between_their_bounds_whichever_comes_first(seed: int) -> None:
    a, b = boxes(20, seed)[:, None], boxes(15, seed + 1)
    share, union = iou(a, b)
    general = generalised_iou(a, b)
    assert share.ge(0).all()
    assert share.le(1).all()
    assert general.le(share + 1e-12).all()
    assert general.ge(-1).all()
    assert union.ge(torch.maximum(area(a), area(b)) - 1e-12).all()
    torch.testing.assert_close(iou(b[:, None], a[:, 0])[0], share.mT)
    torch.testing.assert_close(generalised_iou(b[:, None], a[:, 0]), general.mT)


@given(seed=seed)
def test_a_box_shares_all_of_itself(seed: int) -> None:
    a = boxes(9, seed)
    one = torch.ones(9, dtype=torch.float64)
    torch.testing.assert_close(iou(a, a)[0], one)
    torch.testing.assert_close(generalised_iou(a, a), one)


@given(seed=seed)
def test_its_gradient_is_that_of_small_steps(seed: int) -> None:
    a, b = boxes(6, seed).requires_grad_(), boxes(6, seed + 1).requires_grad_()
    assert torch.autograd.gradcheck(generalised_iou, (a, b))


def test_boxes_without_an_area_share_nothing_and_have_finite_gradients() -> None:
    point = torch.tensor([0.5, 0.5, 0.5, 0.5], requires_grad=True)
    for other in (point.detach(), torch.tensor([0.0, 0.0, 1.0, 1.0])):
        share = generalised_iou(point, other)
        assert share.isfinite()
        (gradient,) = torch.autograd.grad(share, point)
        assert gradient.isfinite().all()
