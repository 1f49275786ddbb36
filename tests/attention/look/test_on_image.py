"""Attention put back on the image: windows against attention over the whole map, pools by hand."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.attention import masks
from saccade.attention.axes import Axis
from saccade.attention.look.on_image import (
    LayerWeights,
    all_weights,
    falls_on,
    followed_back,
    followed_evenly,
    on_cells,
    one_query,
    read_class,
    spread,
)
from saccade.attention.look.rollout import roll
from saccade.attention.look.view import View
from saccade.attention.look.watching import watching
from saccade.models.vision.image_encoder import image_axis
from saccade.models.vision.swin import MapWindows, SwinConfig, WindowAttention, WindowedMap

SHAPES = [(8, 8), (7, 9), (4, 13), (3, 5), (12, 4)]


def windowed(height: int, width: int, *, shifted: bool) -> tuple[LayerWeights, Tensor]:
    """What a site shows of a map, and attention over the whole map with who sees whom as a mask."""
    torch.manual_seed(height * width)
    site = WindowAttention(8, heads=2, window=4).double()
    torch.nn.init.normal_(site.offsets)
    x = torch.randn(2, height, width, 8, dtype=torch.float64)
    seen: list[View] = []
    site.watcher = seen.append  # type: ignore[assignment]
    with torch.no_grad():
        WindowedMap(4, 4.0).look_back(int(shifted), site, x)
    layer = LayerWeights(seen[0].weights(), site.rows, site.columns)
    flat = x.flatten(1, 2)
    q, k = (one(flat).unflatten(2, (2, 4)).transpose(1, 2) for one in (site.to_q, site.to_k))
    y, z = (
        place.flatten() for place in torch.meshgrid(*map(torch.arange, x.shape[1:3]), indexing="ij")
    )
    down, across = y[:, None] - y, z[:, None] - z
    shift = MapWindows.over(height, width, 4, shifted=shifted).shift
    rows, columns = ((p - s) // 4 for p, s in zip((y, z), shift))  # the window of each cell
    together = (rows[:, None] == rows) & (columns[:, None] == columns)
    bias = site.offsets[((down + 3) * 7 + across + 3).clamp(0, 48)].permute(2, 0, 1)
    dense = View(q, k, 0.5, mask=together[None, None], bias=bias[None])
    return layer, dense.weights().detach()


@pytest.mark.parametrize(("height", "width"), SHAPES)
@pytest.mark.parametrize("shifted", [False, True])
def test_windows_put_back_are_attention_over_the_whole_map_within_bounds(
    height: int, width: int, shifted: bool
) -> None:
    layer, dense = windowed(height, width, shifted=shifted)
    assert layer.columns.whole == Axis("image", "grid", height, width, pixels=4.0)
    for query in (0, 1, height * width // 2, height * width - 1):
        onto = falls_on(one_query(layer.rows, query, 2), layer)
        torch.testing.assert_close(onto, dense[:, :, query])
    received = falls_on(read_class(layer.rows, 2), layer)
    torch.testing.assert_close(received, dense.mean(dim=2))
    torch.testing.assert_close(received.sum(dim=2), torch.ones(2, 2).double())  # none on padding


def test_what_falls_on_special_tokens_is_none_of_the_cells() -> None:
    weights = torch.rand(2, 3, 7, 7).softmax(dim=-1)
    axis = Axis("image", "grid", 2, 3, special=1)
    layer = LayerWeights(weights, axis, axis)
    seen = on_cells(falls_on(read_class(axis, 2), layer), axis)
    assert seen.equal(weights[:, :, 0, 1:].unflatten(2, (2, 3)))


@pytest.mark.parametrize(("height", "width"), [(8, 6), (7, 9), (1, 5)])
@pytest.mark.parametrize("stride", [2, 4])
def test_pooled_cells_spread_over_what_a_convolution_read_for_them(
    height: int, width: int, stride: int
) -> None:
    """Its gradient with even filters, by torch: each divided by how many there were."""
    x = torch.zeros(1, 1, height, width, requires_grad=True)
    pooled = F.avg_pool2d(x, 3, stride, 1, count_include_pad=False)
    values = torch.rand(1, pooled.numel())
    (expected,) = torch.autograd.grad((pooled.flatten() * values[0]).sum(), x)
    coarse = image_axis((pooled.shape[2], pooled.shape[3]), (0.5, 4.0 * stride))
    found = spread(values, coarse, image_axis((height, width), (0.5, 4.0)))
    torch.testing.assert_close(found[0], expected.flatten())


@pytest.mark.parametrize(("height", "width"), [(8, 6), (7, 9), (1, 5)])
def test_merged_cells_spread_over_those_of_the_four_that_are_there(height: int, width: int) -> None:
    x = torch.zeros(1, 1, height, width, requires_grad=True)
    pooled = F.avg_pool2d(x, 2, 2, ceil_mode=True)
    values = torch.rand(1, pooled.numel())
    (expected,) = torch.autograd.grad((pooled.flatten() * values[0]).sum(), x)
    coarse = image_axis((pooled.shape[2], pooled.shape[3]), (4.0, 8.0), special=0)
    found = spread(values, coarse, image_axis((height, width), (2.0, 4.0)))
    torch.testing.assert_close(found[0], expected.flatten())


def test_special_tokens_and_cells_that_stay_are_not_spread() -> None:
    coarse = image_axis((2, 2), (0.5, 8.0), special=1)
    fine = image_axis((4, 4), (0.5, 4.0), special=1)
    values = torch.rand(3, 5)
    wide = spread(values, coarse, fine)
    assert wide.shape == (3, 17)
    assert wide[:, 0].equal(values[:, 0])
    torch.testing.assert_close(wide.sum(dim=1), values.sum(dim=1))
    assert spread(values, coarse, coarse) is values


def test_following_back_is_a_row_of_the_product_of_all_layers() -> None:
    axis = Axis("image", "grid", 2, 3, special=1)
    layers = [
        LayerWeights(torch.rand(2, 4, 7, 7, dtype=torch.float64).softmax(dim=-1), axis, axis)
        for _ in range(3)
    ]
    product = torch.eye(7, dtype=torch.float64).expand(2, 7, 7)
    for layer in layers:
        product = roll(layer.weights, product)
    values, at = followed_back(one_query(axis, 0, 2).double(), axis, layers)
    assert at == axis
    torch.testing.assert_close(values.flatten(1) / 8, product[:, 0, 1:])


def test_followed_evenly_every_row_looks_as_much_as_it_stays() -> None:
    """R by matrices, through a pool: 4 × 4 cells, then 2 × 2 that read 4 × 4 and one another."""
    fine, coarse = image_axis((4, 4), (2.0, 4.0)), image_axis((2, 2), (4.0, 8.0))
    one, two, three = (
        LayerWeights(torch.rand(1, 2, *shape, dtype=torch.float64), rows, columns)
        for shape, rows, columns in (
            ((16, 16), fine, fine),
            ((4, 16), coarse, fine),
            ((4, 4), coarse, coarse),
        )
    )
    pool = spread(torch.eye(4, dtype=torch.float64), coarse, fine)  # (4, 16)
    first, second, third = (layer.weights.mean(dim=1)[0] for layer in (one, two, three))
    product = (torch.eye(4) + third) @ (pool + second) @ (torch.eye(16) + first)
    looked = product - pool
    reader = torch.tensor([[0.5, 0.0, 2.0, 1.0]], dtype=torch.float64)
    expected = reader @ (pool + looked / looked.sum(dim=1, keepdim=True))
    values, at = followed_evenly(reader, coarse, [one, two, three])
    assert at == fine
    torch.testing.assert_close(values.flatten(1), expected)
    blind = [layer._replace(weights=0 * layer.weights) for layer in (one, two, three)]
    nothing, _ = followed_evenly(reader, coarse, blind)
    torch.testing.assert_close(nothing.flatten(1), reader @ pool)


# Answers


def test_a_watcher_that_answers_is_read_by_and_one_that_does_not_changes_no_bit() -> None:
    torch.manual_seed(0)
    model = SwinConfig(width=8, depths=(2,), heads=(2,), window=4, classes=3).build().double()
    pixels = torch.randn(1, 3, 24, 24, dtype=torch.float64)
    plain = model(pixels)
    with watching(model, lambda name, seen: None):
        assert model(pixels).equal(plain)
    with watching(model, lambda name, seen: all_weights(seen)):
        torch.testing.assert_close(model(pixels), plain)
    with watching(model, lambda name, seen: 0 * all_weights(seen)):
        assert not model(pixels).allclose(plain)
        with watching(model, lambda name, seen: None):  # who looks inside leaves the answer alone
            nothing = model(pixels)
        assert not nothing.allclose(plain)
    assert model(pixels).equal(plain)


def test_masks_say_what_windows_say() -> None:
    """The mask hides cells that are none; so they neither look nor are looked at."""
    windows = MapWindows.over(7, 9, 4, shifted=True)
    cells = windows.cut(torch.ones(1, 7, 9, 1))[0, :, :, 0] > 0
    mask = masks.shifted_windows(7, 9, windows.window, windows.shift)[:, 0]
    assert mask.any(dim=2).equal(cells)
    assert mask.any(dim=1).equal(cells)
