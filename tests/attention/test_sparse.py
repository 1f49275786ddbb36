"""Layers that see some of what came before: tables agree with masks, and kernels with both."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from saccade.attention import masks
from saccade.attention.sparse import LayerMasks

CPU = torch.device("cpu")
text, side = st.integers(1, 5), st.integers(1, 5)


def by_the_rule(kind: str, text: int, side: int, kernel: int, query: int, key: int) -> bool:
    """The paper's rule, a pair of positions at a time."""
    if key > query:
        return False
    if key < text:
        return True
    cell, other = query - text, key - text
    if kind == "row":  # as far as the cell above
        return cell - other <= side
    if kind == "column":
        return cell % side == other % side
    half = kernel // 2
    steps = [down * side + across for down in range(half + 1) for across in range(-half, half + 1)]
    return cell - other in steps


@given(text=text, side=side, kernel=st.sampled_from([1, 3, 5, 11]))
def test_masks_are_those_of_the_papers_rule(text: int, side: int, kernel: int) -> None:
    found = {
        "row": masks.image_rows(text, side),
        "column": masks.image_columns(text, side),
        "neighbourhood": masks.image_neighbours(text, side, kernel),
    }
    length = text + side**2
    for kind, mask in found.items():
        expected = torch.tensor(
            [
                [by_the_rule(kind, text, side, kernel, q, k) for k in range(length)]
                for q in range(length)
            ]
        )
        assert torch.equal(mask[0, 0], expected), kind


def test_the_papers_own_picture_of_a_row_mask() -> None:
    """In a grid of 4 × 4 a token sees five image tokens, the last of them right above it."""
    mask = masks.image_rows(6, 4)[0, 0]
    assert (mask[6 + 9].nonzero()[:, 0] - 6).tolist()[6:] == [5, 6, 7, 8, 9]


def test_a_3_by_3_neighbourhood_in_a_grid_of_4_by_4() -> None:
    mask = masks.image_neighbours(6, 4, 3)[0, 0]
    assert (mask[6 + 9].nonzero()[:, 0] - 6).tolist()[6:] == [4, 5, 6, 8, 9]


@given(text=text, side=side)
def test_what_a_position_sees_is_its_row_of_the_mask(text: int, side: int) -> None:
    made = LayerMasks([lambda device: masks.image_columns(text, side, device=device)], [0, 0])
    mask = masks.image_columns(text, side)[0, 0]
    for position in range(text + side**2):
        seen = made.seen_at(1, position, CPU)
        assert seen.tolist() == mask[position].nonzero()[:, 0].tolist()
        assert int(seen[-1]) == position


def test_between_cuts_the_mask_for_queries_from_a_position_on() -> None:
    made = LayerMasks([lambda device: masks.image_rows(3, 3, device=device)], [0])
    whole = masks.image_rows(3, 3)
    assert torch.equal(made.between(0, 4, 5, CPU), whole[:, :, 4:9, :9])


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_layers_share_the_masks_that_they_name(layer: int) -> None:
    makers = [
        lambda device: masks.image_rows(2, 3, device=device),
        lambda device: masks.image_columns(2, 3, device=device),
    ]
    made = LayerMasks(makers, [0, 1, 0])
    assert torch.equal(made.between(layer, 0, 11, CPU), makers[layer % 2](CPU))
