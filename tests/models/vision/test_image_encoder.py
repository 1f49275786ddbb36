"""What every image encoder offers, whichever it is."""

import copy
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from saccade.config import from_dict, to_dict
from saccade.errors import ConfigError
from saccade.models.vision import mobilenet, resnet, vit
from saccade.models.vision.image_encoder import ImageEncoder, ImageEncoderConfig
from saccade.models.vision.mobilenet import MobileNetConfig
from saccade.models.vision.resnet import ResNetConfig
from saccade.models.vision.vit import VitConfig
from tests.marks import one_fast

PRESETS: dict[str, ImageEncoderConfig] = {**resnet.PRESETS, **mobilenet.PRESETS, **vit.PRESETS}
SMALL: dict[str, ImageEncoderConfig] = {
    "resnet-18": ResNetConfig(depth=18, width=4, classes=5),
    "resnet-50": ResNetConfig(depth=50, width=4, classes=5),
    "resnet-small": ResNetConfig(depth=18, width=4, stem="small", classes=5),
    "mobilenet": MobileNetConfig(multiplier=0.1, dropout=0.0, classes=5),
    "vit": VitConfig(image=32, patch=8, width=12, depth=2, classes=5),
}
STRIDED = [name for name in SMALL if name != "vit"]
IMAGE = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))


def build(name: str, **changes: Any) -> ImageEncoder:
    torch.manual_seed(0)
    return replace(SMALL[name], **changes).build()


@pytest.mark.slow
@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_round_trips_and_builds(name: str) -> None:
    config = PRESETS[name]
    assert from_dict(type(config), to_dict(config)) == config
    with torch.device("meta"):
        assert config.build().channels() > 0


@pytest.mark.parametrize("name", SMALL)
def test_every_stage_says_how_wide_it_is(name: str) -> None:
    model = build(name).eval()
    for stage in range(1, model.stages + 1):
        assert model.grid(IMAGE, stage).shape[1] == model.channels(stage)
    assert torch.equal(model.grid(IMAGE), model.grid(IMAGE, model.stages))


@pytest.mark.parametrize("stage", one_fast([1, 2, 3]))
@pytest.mark.parametrize("name", STRIDED)
def test_a_cell_sees_as_far_to_the_left_of_its_middle_as_to_the_right(
    name: str, stage: int
) -> None:
    model = build(name).eval().double()
    for parameter in model.parameters():
        parameter.data.abs_()  # then more light anywhere within sight is more light in the cell
    wide = 256
    dark = torch.full((1, 3, 8, wide), 1e-9, dtype=torch.float64)
    lit = dark + 1e-9 * torch.eye(wide, dtype=torch.float64)[:, None, None, :]  # a column each
    first, apart = model.cells(stage)
    cell = wide // int(apart) // 2
    before, after = (model.grid(x, stage)[:, 0, 0, cell] for x in (dark, lit))
    (seen,) = (after > before * (1 + 1e-9)).nonzero(as_tuple=True)
    assert 0 < seen[0] < seen[-1] < wide - 1, "what it sees is cut off"
    assert (seen[0] + seen[-1] + 1) / 2 == first + apart * cell


def test_a_patch_is_seen_from_its_middle() -> None:
    model = build("vit")
    assert model.cells() == model.cells(1) == (4, 8)
    assert build("resnet-18").cells() == build("mobilenet").cells(5) == (0.5, 32)
    assert build("resnet-18", dilated=True).cells() == (0.5, 16)


@pytest.mark.parametrize("name", STRIDED)
@pytest.mark.parametrize("shape", [(32, 32), (64, 40), (33, 47), (1, 31)])
def test_each_stage_halves_the_picture_and_rounds_up(name: str, shape: tuple[int, int]) -> None:
    model, image = build(name).eval(), torch.zeros(1, 3, *shape)
    for stage in range(1, 6):
        halvings = max(0, stage - 2) if name == "resnet-small" else stage
        expected = tuple(-(-side // 2**halvings) for side in shape)
        assert tuple(model.grid(image, stage).shape[2:]) == expected


@pytest.mark.parametrize("name", STRIDED)
def test_the_vector_of_a_picture_is_the_mean_of_its_grid(name: str) -> None:
    model = build(name).eval()
    torch.testing.assert_close(model.pooled(IMAGE), model.grid(IMAGE).flatten(2).mean(dim=2))


@pytest.mark.parametrize("name", STRIDED)
def test_every_second_cell_of_a_dilated_grid_is_a_cell_of_the_plain_one(name: str) -> None:
    plain, fine = build(name).eval().double(), build(name, dilated=True).eval().double()
    fine.load_state_dict(plain.state_dict())
    image = IMAGE.double().repeat(1, 1, 2, 3)
    high, wide = plain.grid(image).shape[2:]
    assert fine.grid(image).shape == (2, plain.channels(), 2 * high, 2 * wide)
    torch.testing.assert_close(fine.grid(image)[:, :, ::2, ::2], plain.grid(image))
    assert torch.equal(fine.grid(image, 4), plain.grid(image, 4))


@pytest.mark.parametrize("name", SMALL)
def test_without_classes_the_vector_itself_comes_out(name: str) -> None:
    headless = build(name, classes=0).eval()
    assert torch.equal(headless(IMAGE), headless.pooled(IMAGE))
    gone = build(name).state_dict().keys() - headless.state_dict().keys()
    assert {key.split(".")[0] for key in gone} < {"fc", "classifier", "head"}


@pytest.mark.parametrize("name", SMALL)
def test_a_picture_is_read_without_regard_to_its_batch_mates(name: str) -> None:
    model = build(name).eval().double()
    image = IMAGE.double()
    torch.testing.assert_close(model(image)[:1], model(image[:1]))


class Reader(nn.Module):
    """Something that is trained on top of an encoder."""

    def __init__(self, encoder: ImageEncoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.read = nn.Linear(encoder.channels(), 1)

    def forward(self, image: Tensor) -> Tensor:
        return self.read(self.encoder.grid(image).mean(dim=(2, 3)))


def trained(reader: Reader) -> dict[str, bool]:
    """Which tensors one update of a model in training mode changes."""
    before = {name: tensor.clone() for name, tensor in reader.state_dict().items()}
    reader.train()
    optimizer = torch.optim.SGD([p for p in reader.parameters() if p.requires_grad], lr=0.1)
    reader(IMAGE).pow(2).sum().backward()
    optimizer.step()
    after = reader.state_dict()
    return {name: not torch.equal(tensor, after[name]) for name, tensor in before.items()}


@pytest.mark.parametrize("name", SMALL)
def test_a_frozen_encoder_does_not_change_while_its_reader_is_trained(name: str) -> None:
    reader = Reader(build(name))
    reader.encoder.freeze()
    changed = trained(reader)
    assert {part for part, moved in changed.items() if moved} == {"read.weight", "read.bias"}
    assert all(parameter.grad is None for parameter in reader.encoder.parameters())
    assert not reader.encoder.grid(IMAGE).requires_grad


@pytest.mark.parametrize("name", STRIDED)
def test_an_encoder_that_is_not_frozen_learns_and_its_statistics_move(name: str) -> None:
    changed = trained(Reader(build(name)))
    for part in ("running_mean", "running_var", "num_batches_tracked"):
        assert all(moved for key, moved in changed.items() if key.endswith(part))
    kernels = {key: moved for key, moved in changed.items() if "conv" in key and "head" not in key}
    assert sum(kernels.values()) > 0.9 * len(kernels)


def test_parts_can_be_frozen_by_themselves() -> None:
    encoder = ResNetConfig(depth=18, width=4).build()
    encoder.freeze(encoder.conv1, encoder.bn1)
    encoder.freeze(encoder.layer1)
    changed = trained(Reader(encoder))
    still = {key for key, moved in changed.items() if not moved and ".fc." not in key}
    assert still == {key for key in changed if key.startswith(("encoder.conv1", "encoder.bn1"))} | {
        key for key in changed if key.startswith("encoder.layer1")
    }
    assert encoder.layer2.training
    assert not encoder.layer1.training


def test_a_frozen_encoder_is_frozen_in_a_copy_too() -> None:
    encoder = build("resnet-18")
    encoder.freeze()
    twin = copy.deepcopy(encoder).train()
    assert not any(module.training for module in twin.modules())
    assert encoder.eval() is encoder


@pytest.mark.parametrize("stage", [0, 6, -1])
def test_a_stage_that_is_not_there_is_refused(stage: int) -> None:
    with pytest.raises(ConfigError) as error:
        build("resnet-18").grid(IMAGE, stage)
    assert str(error.value) == f"stage={stage} is not there; ResNet has 1 to 5"


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (ResNetConfig, {"depth": 19}, "settings.depth=19 must be one of: 10, 18, 34, 50, 101, 152"),
        (ResNetConfig, {"width": 0}, "width=0 must be at least 1"),
        (ResNetConfig, {"classes": -1}, "classes=-1 must be 0 (none) or more"),
        (MobileNetConfig, {"multiplier": 0.0}, "multiplier=0.0 must be above 0"),
        (MobileNetConfig, {"dropout": 1.0}, "dropout=1.0 must be at least 0 and below 1"),
        (MobileNetConfig, {"classes": -1}, "classes=-1 must be 0 (none) or more"),
        (
            VitConfig,
            {"image": 32, "patch": 5},
            "patch=5 does not tile image=32; take patch=4, or image=35",
        ),
        (VitConfig, {"width": 10}, "width=10 does not divide into heads=3"),
        (VitConfig, {"classes": -1}, "classes=-1 must be 0 (none) or more"),
    ],
)
def test_wrong_settings_are_refused(
    kind: type[ImageEncoderConfig], settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError) as error:
        from_dict(kind, settings).build()
    assert str(error.value) == message


@pytest.mark.parametrize("name", SMALL)
def test_what_lies_beyond_a_stage_is_given_up_and_the_stage_stays(name: str) -> None:
    for stage in range(1, build(name).stages + 1):
        model = build(name, classes=0).eval()
        expected, width = model.grid(IMAGE, stage), model.channels(stage)
        model.drop_after(stage)
        assert torch.equal(model.grid(IMAGE, stage), expected)
        assert model.channels(stage) == width
        model.train().grid(IMAGE, stage).square().sum().backward()
        assert all(parameter.grad is not None for parameter in model.parameters())


@pytest.mark.parametrize("name", SMALL)
def test_a_stage_that_is_not_there_cannot_be_dropped_after(name: str) -> None:
    with pytest.raises(ConfigError, match="stage=9 is not there"):
        build(name).drop_after(9)
