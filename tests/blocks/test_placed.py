"""Where cells lie on an image that fills a part of its grid, and who then sees whom."""

import math

import torch
from hypothesis import given
from hypothesis import strategies as st

from saccade.attention.multihead import MultiHeadAttention
from saccade.blocks.placed import Placed, places_within

side = st.integers(1, 5)


@given(height=side, width=side, tall=side, wide=side)
def test_places_are_those_of_the_published_formula(
    height: int, width: int, tall: int, wide: int
) -> None:
    """Carion et al. 2020, appendix A.4, and their code: counted from one, over the real cells."""
    grid = torch.zeros(1, max(height, tall), max(width, wide), dtype=torch.bool)
    grid[0, :tall, :wide] = True
    channels = 8
    found = places_within(grid, channels).view(*grid.shape[1:], channels)
    for row in range(tall):
        for column in range(wide):
            expected: list[float] = []
            for place, whole in ((row, tall), (column, wide)):
                angle = (place + 1) / (whole + 1e-6) * 2 * math.pi
                for k in range(channels // 4):
                    slower = angle / 10000 ** (2 * k / (channels // 2))
                    expected += [math.sin(slower), math.cos(slower)]
            torch.testing.assert_close(
                found[row, column], torch.tensor(expected), atol=1e-5, rtol=0
            )


def attention() -> MultiHeadAttention:
    torch.manual_seed(0)
    return MultiHeadAttention(8, heads=2).double()


@torch.no_grad()
def test_positions_are_in_queries_and_keys_but_not_in_what_is_read() -> None:
    site, x, p = attention(), *torch.randn(2, 1, 5, 8, dtype=torch.float64)[:, :, :, None].unbind()
    x, p = x[..., 0, :], p[..., 0, :]
    heads = [
        layer(given).unflatten(-1, (2, 4)).transpose(1, 2)
        for layer, given in ((site.to_q, x + p), (site.to_k, x + p), (site.to_v, x))
    ]
    q, k, v = heads
    weights = (q @ k.mT / 2).softmax(dim=-1)
    expected = (weights @ v).transpose(1, 2).flatten(2)
    torch.testing.assert_close(Placed(p).look_back(0, site, x), expected)


@torch.no_grad()
def test_groups_look_back_as_each_does_alone() -> None:
    site, x, p = attention(), *torch.randn(2, 3, 6, 8, dtype=torch.float64)
    together = Placed(p, groups=3).look_back(0, site, x)
    for group in (slice(0, 2), slice(2, 4), slice(4, 6)):
        alone = Placed(p[:, group]).look_back(0, site, x[:, group])
        torch.testing.assert_close(together[:, group], alone)
