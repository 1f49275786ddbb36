"""Swin's windows: how they are cut, who sees whom; local attention and merging for few images."""

import pytest
import torch

from saccade.models.vision.swin import MapWindows, ShiftedMerging, WindowAttention
from tests.models.vision.test_families import fresh, image


@torch.no_grad()
@pytest.mark.parametrize(("height", "width"), [(8, 8), (7, 9), (5, 5), (4, 13), (3, 1), (1, 1)])
@pytest.mark.parametrize("shifted", [False, True])
def test_local_attention_in_windows_is_the_formula(height: int, width: int, shifted: bool) -> None:
    """Cell by cell: τ q k + B over the others of its window, and zero if there are none."""
    torch.manual_seed(0)
    site = WindowAttention(8, heads=2, window=4, local=True).double()
    assert site.locality is not None
    site.locality.scale.copy_(torch.tensor([0.3, 1.7]))
    site.offsets.mul_(50)
    x = torch.randn(2, height, width, 8, dtype=torch.float64)
    windows = MapWindows.over(height, width, 4, shifted=shifted)
    read = windows.joined(site.within(windows.cut(x), windows))
    number = torch.arange(1.0, 1 + height * width).view(1, height, width, 1)
    members = windows.cut(number)[0, :, :, 0].long() - 1
    place = {int(cell): w for w, window in enumerate(members) for cell in window if cell >= 0}
    q, k, v = (layer(x).unflatten(-1, (2, 4)) for layer in (site.to_q, site.to_k, site.to_v))
    for cell, window in place.items():
        i, j = divmod(cell, width)
        others = [
            divmod(other, width)
            for other in members[window].tolist()
            if other >= 0 and other != cell and _near(cell, other, width, windows.window)
        ]
        expected = torch.zeros(2, 2, 4, dtype=torch.float64)
        if others:
            rows, columns = (torch.tensor(side) for side in zip(*others))
            offset = (i - rows + 3) * 7 + j - columns + 3
            scores = torch.einsum("bnk,bsnk->bns", q[:, i, j], k[:, rows, columns])
            scores = scores * torch.tensor([0.3, 1.7])[:, None] + site.offsets[offset].T
            seen = v[:, rows, columns]
            expected = torch.einsum("bns,bsnk->bnk", scores.softmax(dim=-1), seen)
        torch.testing.assert_close(read[:, i, j], expected.flatten(1))


def test_a_cell_that_is_alone_has_a_finite_gradient() -> None:
    model = fresh("sl-swin").train()
    pixels = image(2, 20, 20).requires_grad_()  # five cells a side: one is alone when shifted
    model(pixels).square().sum().backward()
    assert pixels.grad is not None
    assert pixels.grad.isfinite().all()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


@torch.no_grad()
@pytest.mark.parametrize(("height", "width"), [(4, 6), (5, 3)])
def test_shifted_merging_reads_four_neighbourhoods_more(height: int, width: int) -> None:
    torch.manual_seed(0)
    merge, x = ShiftedMerging(3).double(), torch.randn(2, height, width, 3, dtype=torch.float64)
    high, wide = -(-height // 2), -(-width // 2)
    whole = torch.zeros(2, 2 * high + 2, 2 * wide + 2, 3, dtype=torch.float64)
    whole[:, 1 : height + 1, 1 : width + 1] = x
    whole[:, 2 * high + 1 :] = whole[:, :, 2 * wide + 1 :] = 0
    merged = merge(x)
    assert merged.shape == (2, high, wide, 6)
    for i in range(high):
        for j in range(wide):
            parts = [
                whole[:, 1 + 2 * i + a + down, 1 + 2 * j + b + across]
                for down, across in ((0, 0), (-1, -1), (-1, 1), (1, -1), (1, 1))
                for b in (0, 1)
                for a in (0, 1)
            ]
            expected = merge.reduce(merge.norm(torch.cat(parts, dim=-1)))
            torch.testing.assert_close(merged[:, i, j], expected)


@pytest.mark.parametrize(("height", "width"), [(8, 8), (7, 9), (4, 13), (3, 5), (12, 4)])
@pytest.mark.parametrize("shifted", [False, True])
def test_windows_are_cut_and_joined_and_see_only_their_neighbours(
    height: int, width: int, shifted: bool
) -> None:
    windows = MapWindows.over(height, width, 4, shifted=shifted)
    cells = torch.arange(1.0, 1 + height * width).view(1, height, width, 1)
    cut = windows.cut(cells)
    assert torch.equal(windows.joined(cut), cells)
    mask = windows.mask(cells.device)
    for number, window in enumerate(cut[0, :, :, 0].long() - 1):
        for i, one in enumerate(window.tolist()):
            for j, other in enumerate(window.tolist()):
                near = one >= 0 and other >= 0 and _near(one, other, width, windows.window)
                seen = True if mask is None else bool(mask[number, 0, i, j])
                assert seen == near or one < 0  # what is no cell looks at nobody's expense


def _near(one: int, other: int, width: int, window: tuple[int, int]) -> bool:
    down, across = abs(one // width - other // width), abs(one % width - other % width)
    return down < window[0] and across < window[1]


@torch.no_grad()
def test_what_lies_beyond_the_image_is_not_read() -> None:
    """A map that windows do not tile: its cells know nothing of what it was filled up with."""
    model = fresh("swin")
    site, seen = model.parts[0].blocks[0].self_attention, []
    site.watcher = seen.append
    model.grid(image(1, 36, 36), 1)  # nine cells a side, windows of four
    weights = seen[0].weights().view(3, 3, 2, 4, 4, 4, 4)
    assert not weights[2, :, :, :, :, 1:, :].any()
    assert not weights[:, 2, :, :, :, :, 1:].any()
