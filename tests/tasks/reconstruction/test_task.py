"""Every image once an epoch; τ and β travel with the batch; figures are of hard codes."""

import math
from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.errors import ConfigError
from saccade.metrics.reconstruction import psnr, squared_error
from saccade.models import PRESETS
from saccade.models.image_tokens.dvae import Dvae, DvaeConfig
from saccade.models.image_tokens.pixels import map_pixels
from saccade.tasks.base import Preparation
from saccade.tasks.reconstruction import data as reconstruction
from saccade.tasks.reconstruction.data import ReconstructionSettings, read_plain
from saccade.tasks.reconstruction.losses import diversity_loss, kl_to_uniform, laplace_loss
from saccade.tasks.reconstruction.task import Reconstruction
from tests.tasks import total_loss

CPU = torch.device("cpu")
SMALL = ReconstructionSettings(scenes=23, image=32, beta_batches=10, cool_batches=20)
TINY = DvaeConfig(image=32, codes=7, width=8, groups=2, patch=4, blocks=1, code_width=6)


@pytest.fixture(scope="module", autouse=True)
def few_held_back() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reconstruction, "HELD_BACK", 9)
        yield


def task(settings: ReconstructionSettings = SMALL, *, images: int = 6, seed: int = 0):  # noqa: ANN201
    return Reconstruction(settings, Preparation(budget=images, seed=seed))


def model() -> Dvae:
    torch.manual_seed(0)
    return TINY.build()


def test_an_epoch_sees_every_image_once() -> None:
    one = task()
    assert one.batches_per_epoch == 4
    for epoch in range(2):
        seen = torch.cat([one.batch(4 * epoch + i).images for i in range(4)])
        every = read_plain(SMALL, "train").images[torch.arange(23)]
        assert sorted(map(_digest, seen)) == sorted(map(_digest, every))
    assert not torch.equal(one.batch(0).images, one.batch(4).images)


def _digest(image: Tensor) -> bytes:
    return image.numpy().tobytes()


def test_a_batch_is_a_function_of_its_position_and_the_seed() -> None:
    first, again, other = task().batch(7), task().batch(7), task(seed=1).batch(7)
    assert all(torch.equal(a, b) for a, b in zip(first[:-1], again[:-1]))
    assert not torch.equal(first.images, other.images)
    late = task(replace(SMALL, augment="crop"))
    assert torch.equal(late.batch(9).drawn, late.batch(9).drawn)


def test_the_temperature_and_the_weight_of_the_kl_come_with_the_batch() -> None:
    one = task()
    assert (one.batch(0).temperature.item(), one.batch(0).beta.item()) == (1, 0)
    assert one.batch(5).beta.item() == pytest.approx(3.3)
    assert one.batch(10).temperature.item() == pytest.approx((1 + 1 / 16) / 2)
    assert one.batch(40).temperature.item() == pytest.approx(1 / 16)
    assert one.batch(3).temperature.shape == one.batch(3).beta.shape == ()


def test_shards_share_the_rows_and_one_without_any_does_not_count() -> None:
    one = task()
    whole, parts = one.batch(1), [one.batch(1, shard=i, shards=2) for i in range(2)]
    assert sorted(map(_digest, torch.cat([p.images for p in parts]))) == sorted(
        map(_digest, whole.images)
    )
    idle = one.batch(1, shard=7, shards=8)
    assert (idle.tokens, idle.counts.sum().item()) == (0, 0)
    assert total_loss(one, model(), idle).item() == 0


def test_losses_are_the_formulas_with_the_draw_of_this_update() -> None:
    one, net = task(), model()
    batch = one.batch(6)
    torch.manual_seed(3)
    found = one.losses(net, batch)
    logits = net.encode(batch.images)
    torch.manual_seed(3)
    noise = -torch.rand(6, 4, 4, 7).log().neg().log().permute(0, 3, 1, 2)
    drawn = ((logits + noise) / batch.temperature).softmax(dim=1)
    mapped = map_pixels(batch.images, torch.float32)
    laplace = laplace_loss(mapped, net.distribution(drawn)).sum()
    torch.testing.assert_close(found["laplace"], laplace)
    kl = 6.6 * 0.6 / (32 * 32 * 3) * kl_to_uniform(logits).sum()
    torch.testing.assert_close(found["kl"], kl)
    assert found["kl"] > 0


def test_diversity_weighs_as_the_kl_of_each_cell_does_and_is_left_out_without_a_weight() -> None:
    one, net = task(replace(SMALL, diversity=2.0)), model()
    batch = one.batch(6)
    torch.manual_seed(3)
    found = one.losses(net, batch)
    uneven = diversity_loss(net.encode(batch.images), torch.ones(6))
    assert uneven > 0
    torch.testing.assert_close(found["diversity"], 6 * 2.0 * 16 / (32 * 32 * 3) * uneven)
    assert "diversity" not in task().losses(net, batch)
    idle = one.batch(1, shard=7, shards=8)
    assert total_loss(one, net, idle).item() == 0


def test_figures_are_those_of_the_likeliest_codes() -> None:
    one, net = task(), model().eval()
    found = one.validate(net, CPU)
    valid = read_plain(SMALL, "valid").images[torch.arange(9)]
    error = squared_error(valid, net.reconstruct(valid)).mean().item()
    assert found["mse"] == pytest.approx(error)
    assert found["psnr"] == pytest.approx(psnr(error))
    codes = net.codes(valid)
    assert found["dead"] == 7 - len(codes.unique())
    shares = F.one_hot(codes.flatten(), 7).double().mean(dim=0)
    assert found["perplexity"] == pytest.approx(torch.special.entr(shares).sum().exp().item())
    assert found["kl"] == pytest.approx(kl_to_uniform(net.encode(valid)).mean().item() / 16)
    assert 0 < found["kl"] < math.log(7)
    assert one.deciding.figure in found
    assert one.deciding.better(20.0, 19.0)


@pytest.mark.slow
def test_a_few_colours_are_learnt_by_heart() -> None:
    """Each cell is of one of four colours; by chance they would all have the same code."""
    rng = torch.Generator().manual_seed(0)
    known = torch.tensor([[220, 40, 40], [40, 200, 60], [50, 60, 210], [235, 235, 230]])
    colours = known[torch.randint(4, (8, 2, 2), generator=rng)].permute(0, 3, 1, 2)
    images = F.interpolate(colours.float(), scale_factor=8).byte()
    one = task(replace(SMALL, beta=1.0, beta_batches=0, cool_batches=200))
    torch.manual_seed(0)
    net = replace(TINY, image=16, codes=16, width=16).build()
    before = squared_error(images, net.reconstruct(images)).mean()
    optimizer = torch.optim.AdamW(net.parameters(), 1e-2)
    for step in range(200):
        torch.manual_seed(step)
        batch = one.batch(step)._replace(
            images=images, drawn=torch.empty(8, 0), counts=torch.ones(8), tokens=8
        )
        (total_loss(one, net, batch) / batch.tokens).backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    assert squared_error(images, net.reconstruct(images)).mean() < before / 4
    assert len(net.codes(images).unique()) >= 4


def test_every_parameter_gets_a_gradient() -> None:
    one, net = task(), model()
    total_loss(one, net, one.batch(6)).backward()
    still = [n for n, p in net.named_parameters() if p.grad is None or not p.grad.abs().max() > 0]
    assert still == []


def test_the_data_decide_the_side_of_the_images() -> None:
    fitted = task().fit(PRESETS["dvae-base"])
    assert isinstance(fitted, DvaeConfig)
    assert (fitted.image, fitted.grid) == (32, 4)
    assert task().sizes == "images of 32 × 32 pixels"
    assert ReconstructionSettings().sized_for(PRESETS["dvae-base"]).image == 256


def test_the_fingerprint_changes_with_the_images() -> None:
    assert task().fingerprint() == task(seed=5).fingerprint()
    assert task().fingerprint() != task(replace(SMALL, scenes=22)).fingerprint()


def test_a_model_that_has_no_codes_is_refused() -> None:
    with pytest.raises(ConfigError, match="VitConfig does not tell images by codes; take one"):
        SMALL.check(PRESETS["vit-nano"])
    with pytest.raises(ConfigError, match="image=36 is not cut into cells of 8 pixels"):
        replace(SMALL, image=36).check(TINY)
