"""An image becomes codes in a grid and comes back; the published sizes are the published ones."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from saccade.config import from_dict, to_dict
from saccade.errors import ConfigError
from saccade.models import PRESETS, family, preset
from saccade.models.image_tokens.dvae import Dvae, DvaeConfig
from saccade.models.image_tokens.pixels import map_pixels, unmap_pixels

TINY = DvaeConfig(image=16, codes=7, width=4, groups=3, blocks=2, code_width=6)
ONES = {
    "three halvings": DvaeConfig(image=16, codes=5, width=4, blocks=1, code_width=3),
    "two halvings": TINY,
    "none": DvaeConfig(image=5, codes=9, width=8, groups=1, blocks=1, code_width=2),
    "patches": DvaeConfig(image=16, codes=5, width=8, groups=2, patch=4, blocks=1, code_width=4),
}
every_one = pytest.mark.parametrize("config", ONES.values(), ids=ONES)


def build(config: DvaeConfig, dtype: torch.dtype = torch.float64) -> Dvae:
    torch.manual_seed(0)
    model = config.build().to(dtype).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape))
    return model


def images(config: DvaeConfig, count: int = 3) -> Tensor:
    """Of four colours each."""
    colours = torch.rand(count, 3, 2, 2, generator=torch.Generator().manual_seed(1))
    return (F.interpolate(colours, size=config.image) * 255).byte()


@every_one
def test_every_cell_has_a_score_for_every_code(config: DvaeConfig) -> None:
    logits = build(config).encode(images(config))
    assert logits.shape == (3, config.codes, config.grid, config.grid)
    assert logits.isfinite().all()


@every_one
def test_codes_are_the_likeliest_row_by_row(config: DvaeConfig) -> None:
    model, given = build(config), images(config)
    logits, codes = model.encode(given), model.codes(given)
    assert len(codes.unique()) > 1
    for row in range(config.grid):
        for column in range(config.grid):
            expected = logits[:, :, row, column].argmax(dim=1)
            assert torch.equal(codes[:, row * config.grid + column], expected)


@every_one
def test_a_code_is_all_the_weight_of_its_cell(config: DvaeConfig) -> None:
    model, given = build(config), images(config)
    codes = model.codes(given)
    weights = F.one_hot(codes, config.codes).mT.unflatten(2, (config.grid, config.grid))
    found = model.distribution(weights.double())
    assert found.mean.shape == found.log_scale.shape == given.shape
    of_codes = model.decoder.of_codes(codes.unflatten(1, (config.grid, config.grid)))
    torch.testing.assert_close(of_codes.mean, found.mean)
    torch.testing.assert_close(of_codes.log_scale, found.log_scale)
    assert torch.equal(model.decode(codes), unmap_pixels(found.mean.sigmoid()))
    assert torch.equal(model.reconstruct(given), model.decode(codes))


def test_what_one_image_becomes_does_not_depend_on_those_beside_it() -> None:
    model, given = build(TINY), images(TINY)
    alone = torch.cat([model.encode(one[None]) for one in given])
    torch.testing.assert_close(model.encode(given), alone)


def test_a_code_reaches_the_pixels_of_its_cell_first() -> None:
    model, codes = build(TINY), torch.zeros(1, 16, dtype=torch.long)
    other = codes.clone()
    other[0, 6] = 3  # row 1, column 2
    moved = (
        model.decoder.of_codes(codes.view(1, 4, 4)).mean
        - model.decoder.of_codes(other.view(1, 4, 4)).mean
    ).abs()
    cells = moved.sum(dim=1).view(4, 4, 4, 4).sum(dim=(1, 3))
    assert cells.argmax().item() == 6


def test_a_block_is_the_input_and_a_small_part_of_four_convolutions() -> None:
    model = build(TINY)
    block = _block(model.encoder, 1, 1)
    x = torch.randn(2, 8, 4, 4, dtype=torch.float64)
    y = x
    for conv in block.convolutions:
        y = F.conv2d(F.relu(y), conv.weight, conv.bias, padding=conv.weight.shape[-1] // 2)
    torch.testing.assert_close(block(x), x + y / (3 * 2) ** 2)


def test_the_encoder_pools_after_all_groups_but_the_last() -> None:
    model, given = build(TINY), images(TINY)
    part = model.encoder
    x = part.input(map_pixels(given, torch.float64))
    x = part.groups[2](F.max_pool2d(part.groups[1](F.max_pool2d(part.groups[0](x), 2)), 2))
    torch.testing.assert_close(model.encode(given), part.output(F.relu(x)))


def test_the_published_size_has_the_layers_that_were_published() -> None:
    config = preset("dvae-base")
    assert isinstance(config, DvaeConfig)
    assert (config.grid, config.codes) == (32, 8192)
    with torch.device("meta"):
        model = config.build()
    counts = [sum(p.numel() for p in part.parameters()) for part in (model.encoder, model.decoder)]
    assert counts == [53_786_240, 43_829_766]
    shapes = {name: tuple(x.shape) for name, x in model.named_parameters() if x.dim() > 1}
    assert shapes["encoder.input.weight"] == (256, 3, 7, 7)
    assert shapes["encoder.output.weight"] == (8192, 2048, 1, 1)
    assert shapes["decoder.input.weight"] == (128, 8192, 1, 1)
    assert shapes["decoder.output.weight"] == (6, 256, 1, 1)
    assert _kernels(_block(model.encoder, 3, 0)) == [
        (512, 1024, 3, 3),
        (512, 512, 3, 3),
        (512, 512, 3, 3),
        (2048, 512, 1, 1),
        (2048, 1024, 1, 1),
    ]
    assert _kernels(_block(model.decoder, 0, 0)) == [
        (512, 128, 1, 1),
        (512, 512, 3, 3),
        (512, 512, 3, 3),
        (2048, 512, 3, 3),
        (2048, 128, 1, 1),
    ]


def _block(part: Any, group: int, number: int) -> Any:
    return part.groups[group][number]


def _kernels(block: Any) -> list[tuple[int, ...]]:
    more = [] if isinstance(block.shortcut, nn.Identity) else [block.shortcut]
    return [tuple(conv.weight.shape) for conv in (*block.convolutions, *more)]


def test_saved_and_loaded_it_is_the_same(tmp_path: Path) -> None:
    model, given = build(TINY), images(TINY)
    save_file(model.state_dict(), tmp_path / "model.safetensors")
    again = from_dict(DvaeConfig, to_dict(TINY)).build().double()
    again.load_state_dict(load_file(tmp_path / "model.safetensors"))
    assert torch.equal(again.encode(given), model.encode(given))
    assert family(TINY) == "dvae"


def test_scores_of_codes_keep_their_precision_under_autocast() -> None:
    model, given = build(TINY, torch.float32), images(TINY)
    with torch.autocast("cpu", torch.bfloat16):
        logits = model.encode(given)
        found = model.distribution(logits.softmax(dim=1))
    assert logits.dtype == found.mean.dtype == found.log_scale.dtype == torch.float32
    assert not torch.equal(logits, logits.bfloat16().float())
    torch.testing.assert_close(logits, model.encode(given), atol=0.3, rtol=0.1)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "codes": ({"codes": 0}, "codes=0 must be at least 1"),
    "blocks": ({"blocks": 0}, "blocks=0 must be at least 1"),
    "width": ({"width": 30}, "width=30 must be a multiple of 4"),
    "image": (
        {"image": 60},
        "image=60 is not cut into cells of 8 pixels, which patch=1 and groups=4 make; take a "
        "multiple of 8",
    ),
}


@pytest.mark.parametrize("which", WRONG)
def test_sizes_that_cannot_be_are_refused_in_one_line(which: str) -> None:
    changes, message = WRONG[which]
    with pytest.raises(ConfigError, match=re.escape(message)) as raised:
        DvaeConfig(**changes)
    assert "\n" not in str(raised.value)


def test_a_patch_is_told_by_one_place_of_the_last_layer() -> None:
    config = ONES["patches"]
    decoder = build(config).decoder
    x = torch.randn(1, 8, 4, 4, dtype=torch.float64)
    moved = x.clone()
    moved[0, :, 1, 2] += 1
    change = (_last_layer(decoder, x) - _last_layer(decoder, moved)).abs().sum(dim=(0, 1))
    inside = torch.zeros(16, 16, dtype=torch.bool)
    inside[4:8, 8:12] = True
    assert change[inside].min() > 0 == change[~inside].max()


def _last_layer(decoder: Any, x: Tensor) -> Tensor:
    return F.pixel_shuffle(decoder.output(x.relu()), decoder.patch)


def test_a_fresh_encoder_reads_pixels_about_their_middle() -> None:
    """So that grey says nothing, and cells differ by what differs in them."""
    torch.manual_seed(0)
    model = preset("dvae-nano").build()
    assert isinstance(model, Dvae)
    grey = torch.full((1, 3, 64, 64), 0.5)
    middle = model.encoder.input(grey)[:, :, 4:-4, 4:-4]
    assert middle.abs().max() < 1e-5
    logits = model.encode(images(DvaeConfig(image=64)))
    over_cells = logits.permute(1, 0, 2, 3).flatten(1).std(dim=1).mean()
    assert over_cells > 0.5 * logits.mean(dim=(0, 2, 3)).std()


def test_sizes_have_the_cells_that_they_should() -> None:
    cells = {name: one.grid for name, one in PRESETS.items() if isinstance(one, DvaeConfig)}
    assert cells == {
        "dvae-nano": 8,
        "dvae-mini": 16,
        "dvae-64": 8,
        "dvae-128": 16,
        "dvae-base": 32,
    }
