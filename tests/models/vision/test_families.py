"""What every image encoder must do, and what the new families are: published sizes and costs, the
same numbers as other libraries with the same weights, names that go there and back.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor, nn

from saccade.attention.look.view import View
from saccade.attention.site import Site
from saccade.models.cost import multiply_adds
from saccade.models.names import convnext as convnext_names
from saccade.models.names import mvit as mvit_names
from saccade.models.names import swin as swin_names
from saccade.models.names.table import Names, to_ours, to_theirs
from saccade.models.vision import attention_resnet, convnext, mvit, resnet, swin, vit
from saccade.models.vision.convnext import ConvNextConfig
from saccade.models.vision.image_encoder import ImageEncoder, ImageEncoderConfig
from saccade.models.vision.mvit import MvitConfig
from saccade.models.vision.swin import SwinConfig
from saccade.models.vision.vit import VitConfig
from tests.marks import one_fast

PRESETS: dict[str, ImageEncoderConfig] = {
    **attention_resnet.PRESETS,
    **convnext.PRESETS,
    **mvit.PRESETS,
    **resnet.PRESETS,
    **swin.PRESETS,
    **vit.PRESETS,
}
SIZES = {  # timm 1.0.30; of small-data ones for 100 classes, as their authors count
    "swin-t": 28_288_354,
    "swin-s": 49_606_258,
    "swin-b": 87_768_224,
    "swin-l": 196_532_476,
    "convnext-t": 28_589_128,
    "convnext-s": 50_223_688,
    "convnext-b": 88_591_464,
    "convnext-l": 197_767_336,
    "convnext-xl": 350_196_968,
    "mvitv2-t": 24_173_320,
    "mvitv2-s": 34_870_216,
    "mvitv2-b": 51_472_744,
    "mvitv2-l": 217_992_952,
    "resnet-152": 60_192_808,
    "vit-h-14": 632_045_800,
    "deit3-s-16": 22_059_496,
    "deit3-m-16": 38_849_512,
    "deit3-b-16": 86_585_320,
    "deit3-l-16": 304_374_760,
    "deit3-h-14": 632_126_440,
}
GIGA = {  # multiply-adds of one image of 224 × 224, measured on timm's
    "swin-t": 4.49,
    "swin-s": 8.74,
    "swin-b": 15.43,
    "convnext-t": 4.46,
    "convnext-s": 8.68,
    "convnext-b": 15.35,
    "mvitv2-t": 4.68,
    "mvitv2-s": 6.96,
    "mvitv2-b": 10.10,
    "resnet-152": 11.51,
}
SMALL: dict[str, ImageEncoderConfig] = {
    "swin": SwinConfig(width=16, depths=(2, 2), heads=(2, 4), window=4, classes=5),
    "sl-swin": SwinConfig(
        width=16, depths=(2, 2), heads=(2, 4), window=4, reads="shifted", local=True, classes=5
    ),
    "convnext": ConvNextConfig(depths=(1, 1, 1), widths=(8, 12, 16), layer_scale=0.5, classes=5),
    "mvitv2": MvitConfig(image=32, width=8, depths=(1, 2, 1), classes=5),
    "mvitv1": MvitConfig(
        image=32,
        width=8,
        depths=(1, 2),
        relative=False,
        residual_pooling=False,
        class_token=True,
        widen="mlp",
        classes=5,
    ),
    "deit3": VitConfig(
        image=32,
        patch=8,
        width=16,
        depth=2,
        heads=2,
        layer_scale=0.5,
        class_position=False,
        classes=5,
    ),
    "sl-vit": VitConfig(
        image=32,
        patch=8,
        width=16,
        depth=2,
        heads=2,
        reads="shifted",
        local=True,
        biased=False,
        classes=5,
    ),
    "hybrid": VitConfig(
        image=64,
        patch=16,
        width=16,
        depth=2,
        heads=2,
        reads="cnn",
        cnn=resnet.ResNetConfig(depth=10, width=8, classes=0),
        classes=5,
    ),
    "hybrid-small": VitConfig(
        image=32,
        patch=4,
        width=16,
        depth=2,
        heads=2,
        reads="cnn",
        cnn=resnet.ResNetConfig(depth=10, width=8, stem="small", classes=0),
        classes=5,
    ),
    "attention-resnet": attention_resnet.AttentionResNetConfig(depth=10, width=8, classes=5),
    "resnet-small": resnet.ResNetConfig(depth=10, width=8, stem="small", classes=5),
}
WATCHED = [name for name in SMALL if name not in ("convnext", "resnet-small")]


def count(config: ImageEncoderConfig) -> int:
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in config.build().parameters())


@pytest.mark.parametrize("name", SIZES)
def test_published_sizes_have_their_published_number_of_parameters(name: str) -> None:
    assert count(PRESETS[name]) == SIZES[name]


@pytest.mark.parametrize("name", [*[pytest.param(n, marks=pytest.mark.slow) for n in GIGA]])
def test_published_sizes_cost_what_was_measured(name: str) -> None:
    assert round(multiply_adds(PRESETS[name], 224, 224) / 1e9, 2) == GIGA[name]


def fresh(name: str) -> ImageEncoder:
    """With all weights random, also those that start as zero or one."""
    torch.manual_seed(0)
    model = SMALL[name].build().double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model


def image(batch: int = 2, height: int = 64, width: int = 64, seed: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(batch, 3, height, width, generator=generator, dtype=torch.float64)


@torch.no_grad()
@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize(("height", "width"), one_fast([(96, 64), (32, 32), (64, 64), (64, 160)]))
def test_an_image_of_any_size_is_read_and_means_the_same_alone(
    name: str, height: int, width: int
) -> None:
    model, pixels = fresh(name), image(3, height, width)
    together = model(pixels)
    alone = torch.cat([model(one[None]) for one in pixels])
    torch.testing.assert_close(together, alone)
    for stage in range(1, model.stages + 1):
        grid = model.grid(pixels, stage)
        first, apart = model.cells(stage)
        assert grid.shape[1] == model.channels(stage)
        assert first + apart * (grid.shape[2] - 1) < height
        assert first + apart * grid.shape[2] >= height - apart / 2


@torch.no_grad()
@pytest.mark.parametrize("name", WATCHED)
def test_watching_changes_nothing_and_shows_weights_that_sum_to_one(name: str) -> None:
    model, pixels = fresh(name), image()
    before, views = model(pixels), watched(model)
    torch.testing.assert_close(model(pixels), before, rtol=0, atol=1e-12)
    assert views
    for view in views:
        total = view.weights().sum(dim=-1)
        seen = view.allowed()
        real = torch.ones_like(total) if seen is None else seen.any(dim=-1).expand_as(total)
        torch.testing.assert_close(total, real.to(total))


def watched(model: nn.Module) -> list[View]:
    """What its sites show from now on."""
    views: list[Any] = []
    for module in model.modules():
        if isinstance(module, Site):
            module.watcher = views.append
    return views


@pytest.mark.parametrize("name", SMALL)
def test_every_parameter_learns(name: str) -> None:
    model = fresh(name).train()
    pixels = image(4)  # the last class token needs no cell, but the grid does
    (model(pixels).square().sum() + model.grid(pixels).square().sum()).backward()
    assert [n for n, p in model.named_parameters() if p.grad is None or not p.grad.any()] == []


@torch.no_grad()
def test_drop_path_leaves_whole_branches_out_and_keeps_the_mean() -> None:
    config = replace(SMALL["swin"], drop_path=0.5, classes=0)
    model = config.build().double()
    same = image(1).expand(256, -1, -1, -1)
    spread = model.train()(same)
    assert (spread.std(dim=0) > 0).any()
    assert (model.eval()(same).std(dim=0) < 1e-12).all()


@torch.no_grad()
def test_with_gamma_zero_the_resnet_with_attention_is_the_resnet() -> None:
    model = SMALL["attention-resnet"].build().eval()
    plain = resnet.ResNetConfig(depth=10, width=8, classes=5).build().eval()
    weights = model.state_dict()
    plain.load_state_dict({name: weights[name] for name in plain.state_dict()})
    pixels = image().float()
    assert torch.equal(model(pixels), plain(pixels))


@torch.no_grad()
def test_cells_moved_are_answers_moved() -> None:
    """Attention over a map knows no places: permuted cells give permuted answers."""
    torch.manual_seed(0)
    site = attention_resnet.MapAttention(16).double()
    site.gamma.fill_(0.7)
    x = torch.randn(2, 16, 4, 6, dtype=torch.float64)
    order = torch.randperm(24)
    moved = site(x.flatten(2)[:, :, order].unflatten(2, (4, 6)))
    torch.testing.assert_close(moved.flatten(2), site(x).flatten(2)[:, :, order])


@torch.no_grad()
def test_a_local_token_does_not_look_at_itself_and_has_a_temperature_of_its_own() -> None:
    model = fresh("sl-vit")
    pixels = image(1, 32, 32)
    views = watched(model)
    model(pixels)
    assert views
    for view in views:
        assert not view.weights().diagonal(dim1=2, dim2=3).any()
    assert model.encoder[0].self_attention.locality.scale.shape == (2,)


# Others' libraries

BUFFERS = ("relative_position_index", "attn_mask")


@torch.no_grad()
def assert_same(
    ours: nn.Module,
    theirs: Any,
    names: Names,
    pixels: Tensor,
    answer: Callable[[Any], Tensor] = lambda output: output,
) -> None:
    """With their weights in ours: the same answer. And ours as theirs: the same tensors."""
    theirs = theirs.double().eval()
    for parameter in theirs.parameters():
        parameter.add_(0.05 * torch.randn_like(parameter))
    given = {key: x for key, x in theirs.state_dict().items() if not key.endswith(BUFFERS)}
    ours = ours.double().eval()
    ours.load_state_dict(to_ours(names, given, ours.state_dict()))
    torch.testing.assert_close(ours(pixels), answer(theirs(pixels)))
    back = to_theirs(names, ours.state_dict())
    assert back.keys() == given.keys()
    assert all(torch.equal(back[key], given[key]) for key in given)


@pytest.mark.parametrize("depths", [(2, 2), (2, 2, 4)])
def test_swin_agrees_with_hugging_face(depths: tuple[int, ...]) -> None:
    heads = (2, 4, 8)[: len(depths)]
    config = SwinConfig(width=16, depths=depths, heads=heads, window=7, classes=5)
    theirs = transformers.SwinConfig(
        image_size=112,
        embed_dim=16,
        depths=list(depths),
        num_heads=list(heads),
        window_size=7,
        num_labels=5,
    )
    torch.manual_seed(0)
    model = transformers.SwinForImageClassification(theirs)
    names = swin_names.LIBRARIES["huggingface-5"]
    assert_same(config.build(), model, names, image(2, 112, 112), lambda y: y.logits)


@pytest.mark.parametrize("depths", [(1, 2), (1, 1, 2, 1)])
def test_convnext_agrees_with_hugging_face(depths: tuple[int, ...]) -> None:
    widths = (8, 16, 24, 32)[: len(depths)]
    config = ConvNextConfig(depths=depths, widths=widths, classes=5)
    theirs = transformers.ConvNextConfig(
        depths=list(depths),
        hidden_sizes=list(widths),
        num_labels=5,
        num_stages=len(depths),
        layer_norm_eps=1e-6,
    )
    torch.manual_seed(0)
    model = transformers.ConvNextForImageClassification(theirs)
    names = convnext_names.LIBRARIES["huggingface"]
    assert_same(config.build(), model, names, image(), lambda y: y.logits)


TABLES = {
    **{
        f"swin {library}": (SMALL["swin"], names) for library, names in swin_names.LIBRARIES.items()
    },
    **{
        f"convnext {library}": (SMALL["convnext"], names)
        for library, names in convnext_names.LIBRARIES.items()
    },
    **{
        f"mvit {library}": (SMALL["mvitv2"], names)
        for library, names in mvit_names.LIBRARIES.items()
    },
    **{
        f"v1 {library}": (SMALL["mvitv1"], names) for library, names in mvit_names.LIBRARIES.items()
    },
}


@pytest.mark.parametrize("which", TABLES)
def test_every_tensor_has_a_name_there_and_comes_back(which: str) -> None:
    config, names = TABLES[which]
    model = config.build()
    ours = model.state_dict()
    theirs = to_theirs(names, ours)
    back = to_ours(names, theirs, ours)
    assert back.keys() == ours.keys()
    assert all(torch.equal(back[name], ours[name]) for name in ours)
