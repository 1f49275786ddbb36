"""Pooling attention against its formula, query by query and key by key."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.models.vision.pooling_attention import Pool, PoolingAttention, with_offsets

HEADS, WIDTH, SHAPE = 2, 8, (4, 6)


def pooled(pool: Pool, cells: Tensor, stride: int) -> tuple[Tensor, tuple[int, int]]:
    """One head of one image: (h w, K) → fewer cells, each channel by its own filter."""
    grid = cells.T.unflatten(1, SHAPE)[None]
    wide = F.conv2d(grid, pool.conv.weight, stride=stride, padding=1, groups=cells.shape[1])[0]
    return pool.norm(wide.flatten(1).T), (wide.shape[1], wide.shape[2])


def offset(i: int, j: int, queries: int, keys: int) -> int:
    """How far apart a query and a key are along a side, counted in the finer of the two."""
    return int(
        i * max(keys / queries, 1)
        - j * max(queries / keys, 1)
        + (keys - 1) * max(queries / keys, 1)
    )


def by_hand(
    site: PoolingAttention, x: Tensor, strides: tuple[int, int], *, residual: bool
) -> Tensor:
    """One image without a class token."""
    K, read = WIDTH // HEADS, list[Tensor]()
    for head in range(HEADS):
        part = slice(head * K, (head + 1) * K)
        q, (high, wide) = pooled(site.pool_q, site.to_q(x)[:, part], strides[0])
        k, (down, across) = pooled(site.pool_k, site.to_k(x)[:, part], strides[1])
        v, _ = pooled(site.pool_v, site.to_v(x)[:, part], strides[1])
        scores = q @ k.T * K**-0.5
        if site.down is not None:
            for t in range(len(q)):
                for s in range(len(k)):
                    y = offset(t // wide, s // across, high, down)
                    z = offset(t % wide, s % across, wide, across)
                    scores[t, s] += q[t] @ site.down[y] + q[t] @ site.across[z]
        read.append(scores.softmax(dim=1) @ v + (q if residual else 0))
    return site.to_output(torch.cat(read, dim=1))


@pytest.mark.parametrize("strides", [(1, 1), (1, 2), (2, 1), (2, 2)])
@pytest.mark.parametrize("relative", [True, False])
@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("wide", [True, False])
@torch.no_grad()
def test_it_is_its_formula(
    strides: tuple[int, int],
    relative: bool,
    residual: bool,
    wide: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("saccade.models.vision.pooling_attention.widens", lambda _: wide)
    torch.manual_seed(0)
    cells = (max(SHAPE) // strides[0], max(SHAPE) // strides[1])
    site = PoolingAttention(
        6,
        WIDTH,
        heads=HEADS,
        strides=strides,
        cells=cells,
        pixels=4,
        relative=relative,
        residual=residual,
    ).double()
    if site.down is not None and site.across is not None:
        longest = [2 * max(side // strides[0], side // strides[1]) - 1 for side in SHAPE]
        site.down = torch.nn.Parameter(torch.randn(longest[0], WIDTH // HEADS).double())
        site.across = torch.nn.Parameter(torch.randn(longest[1], WIDTH // HEADS).double())
    x = torch.randn(2, SHAPE[0] * SHAPE[1], 6, dtype=torch.float64)
    found, shape = site(x, SHAPE)
    assert shape == (SHAPE[0] // strides[0], SHAPE[1] // strides[0])
    expected = torch.stack([by_hand(site, one, strides, residual=residual) for one in x])
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("extra", [0, 1])
def test_longer_vectors_are_the_bias(extra: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same values, gradients and weights shown, with and without a class token."""
    torch.manual_seed(0)
    keys, queries, found = (2, 3), 8, list[list[Tensor]]()
    given = [
        torch.randn(2, 2, count, width, dtype=torch.float64)
        for count, width in [(extra + queries, 5), (extra + 6, 5), (extra + 6, 5), (queries, 5)]
    ]
    for wide in (True, False):
        monkeypatch.setattr("saccade.models.vision.pooling_attention.widens", lambda _, w=wide: w)
        q, k, v, offsets = (one.clone().requires_grad_() for one in given)
        shown: list[Any] = []
        watch: Any = lambda view, to=shown: to.append(view.scores().softmax(-1))  # noqa: E731
        read = with_offsets(q, k, v, offsets, keys, watch)
        read.square().sum().backward()
        found.append([read, *shown, *(g for x in (q, k, v, offsets) if (g := x.grad) is not None)])
    assert len(found[0]) == 6
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)
