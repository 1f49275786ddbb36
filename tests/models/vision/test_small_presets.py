"""Small presets: those published for few images, the nano of each family, and half precision."""

from dataclasses import replace

import pytest
import torch

from saccade.blocks.dropout import DropPath
from saccade.models.cost import multiply_adds
from saccade.models.vision import vit
from tests.marks import one_fast
from tests.models.vision.test_families import PRESETS, SMALL, count, fresh, image


@pytest.mark.parametrize(
    ("name", "change", "millions"),
    [
        ("vit-small-data", {"classes": 100}, 2.710),
        ("sl-vit", {"classes": 100}, 2.747),
        ("vit-small-data-64", {"classes": 200}, 2.757),
        ("sl-vit-64", {"classes": 200}, 2.906),
        ("resnet-18-small", {"classes": 10}, 11.174),  # as all count it for CIFAR-10
    ],
)
def test_those_for_few_images_have_as_many_as_their_authors(
    name: str, change: dict[str, int], millions: float
) -> None:
    assert round(count(replace(PRESETS[name], **change)) / 1e6, 3) == millions


@pytest.mark.parametrize(
    ("name", "mega"),
    one_fast(
        [("vit-small-data-64", 189.8), ("sl-vit-64", 199.2), ("swin-64", 242), ("sl-swin-64", 285)]
    ),
)
def test_those_for_few_images_cost_what_their_authors_say(name: str, mega: float) -> None:
    config = replace(PRESETS[name], classes=200)  # Tiny ImageNet's
    assert multiply_adds(config, 64, 64) / 1e6 == pytest.approx(mega, rel=2.5e-3)


def test_lee_et_als_swin_is_as_they_built_it() -> None:
    """Counted by hand from their settings, less the positions that ours has not."""
    depths, classes = (2, 6, 4), 100
    for name in ("swin-32", "sl-swin-32"):
        shifted = name == "sl-swin-32"
        copies = 5 if shifted else 1
        pixels = copies * 3 * 2 * 2
        expected = pixels * 96 + 96 + 2 * (pixels if shifted else 96)
        for stage, depth in enumerate(depths):
            width, heads = 96 << stage, 3 << stage
            attention = 4 * width * width + 4 * width + 7 * 7 * heads + heads * shifted
            mlp = 2 * 2 * width * width + 2 * width + width
            expected += depth * (attention + mlp + 4 * width)
            if stage:
                four = 4 * copies * width // 2
                expected += 2 * four + four * width + width * shifted
        expected += 2 * 384 + 384 * classes + classes
        assert count(replace(PRESETS[name], classes=classes)) == expected


@pytest.mark.parametrize("name", [name for name in vit.PRESETS if name.startswith("deit3")])
def test_deit_iii_leaves_out_every_block_at_one_rate(name: str) -> None:
    config = replace(vit.PRESETS[name], width=16, heads=2, image=2 * vit.PRESETS[name].patch)
    rates = [m.rate for m in config.build().modules() if isinstance(m, DropPath)]
    assert len(rates) == 2 * config.depth
    assert set(rates) == {config.drop_path}


@pytest.mark.parametrize("name", SMALL)
def test_half_precision_is_close_and_every_gradient_finite(name: str) -> None:
    model, pixels = fresh(name).float(), image(2).float()
    with torch.no_grad():
        expected = model(pixels)
    with torch.autocast("cpu", torch.bfloat16):
        found = model(pixels)
    assert (found.float() - expected).norm() < 0.1 * expected.norm()
    with torch.autocast("cpu", torch.bfloat16):
        loss = model.train()(pixels).float().square().mean()
    loss.backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


NANO = [name for name in PRESETS if name.endswith("nano")]


@pytest.mark.parametrize("name", NANO)
def test_a_nano_is_small_and_takes_images_of_64_pixels(name: str) -> None:
    assert 100_000 < count(replace(PRESETS[name], classes=10)) < 1_000_000
    model = replace(PRESETS[name], classes=10).build().eval()
    assert model(torch.zeros(1, 3, 64, 64)).shape == (1, 10)
