"""A cache gives back all that it was given, row by row."""

import torch

from saccade.attention.cache import KeyValues


def test_appending_piece_by_piece_returns_everything_so_far() -> None:
    torch.manual_seed(0)
    keys, values = torch.randn(2, 3, 40, 4), torch.randn(2, 3, 40, 4)
    cache = KeyValues.empty(torch.empty(2, 0), heads=3, width=4)
    end = 0
    for piece in (1, 1, 5, 1, 20, 12):  # past 16 and 32: the room is enlarged twice
        fresh = slice(end, end + piece)
        end += piece
        k, v = cache.append(keys[:, :, fresh], values[:, :, fresh])
        assert torch.equal(k, keys[:, :, :end])
        assert torch.equal(v, values[:, :, :end])
    assert cache.length == 40


def test_selected_rows_are_copies_that_go_their_own_way() -> None:
    torch.manual_seed(0)
    cache = KeyValues.empty(torch.empty(2, 0), heads=1, width=2)
    first = torch.randn(2, 1, 3, 2)
    cache.append(first, first)
    twice = cache.select(torch.tensor([1, 1, 0]))
    more = torch.randn(3, 1, 1, 2)
    k, v = twice.append(more, -more)
    expected = torch.cat([first[[1, 1, 0]], more], dim=2)
    assert torch.equal(k, expected)
    assert torch.equal(v[:, :, :3], expected[:, :, :3])
    assert torch.equal(v[:, :, 3:], -more)
    assert cache.length == 3
