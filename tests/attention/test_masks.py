"""Who may look where, by definition."""

import pytest
import torch

from saccade.attention import masks


@pytest.mark.parametrize(("queries", "keys"), [(4, 4), (2, 5), (1, 3), (1, 1)])
def test_causal_sees_itself_and_the_past_and_the_queries_come_last(queries: int, keys: int) -> None:
    mask = masks.causal(queries, keys)
    assert mask.shape == (1, 1, queries, keys)
    for t in range(queries):
        position = keys - queries + t
        assert mask[0, 0, t].tolist() == [s <= position for s in range(keys)]


def test_causal_for_fewer_queries_is_the_tail_of_the_full_mask() -> None:
    assert torch.equal(masks.causal(2, 6), masks.causal(6, 6)[:, :, -2:])


def test_padding_shows_the_first_keys_of_each_row() -> None:
    mask = masks.padding(torch.tensor([2, 0, 3]), 3)
    assert mask.shape == (3, 1, 1, 3)
    assert mask[:, 0, 0].tolist() == [[True, True, False], [False] * 3, [True] * 3]


@pytest.mark.parametrize("reach", [0, 1, 3])
@pytest.mark.parametrize(("queries", "keys"), [(5, 5), (2, 5)])
def test_window_sees_at_most_its_reach_to_either_side(queries: int, keys: int, reach: int) -> None:
    mask = masks.window(queries, keys, reach=reach)[0, 0]
    for t in range(queries):
        position = keys - queries + t
        assert mask[t].tolist() == [abs(s - position) <= reach for s in range(keys)]


def test_both_is_what_both_allow_and_none_allows_everything() -> None:
    causal, padding = masks.causal(3, 3), masks.padding(torch.tensor([1, 3]), 3)
    together = masks.both(causal, padding)
    assert together is not None
    assert together.shape == (2, 1, 3, 3)
    assert together[0, 0].tolist() == [[True, False, False]] * 3
    assert torch.equal(together[1:], causal)
    assert masks.both(None, causal) is causal
    assert masks.both(causal, None) is causal
    assert masks.both(None, None) is None
