"""Maps of where a class came from, against finite differences, hooks, and images that are known."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import saccade
from saccade.attention.look.on_image import (
    LayerWeights,
    all_weights,
    followed_back,
    followed_evenly,
    read_class,
)
from saccade.attention.look.watching import sites, watching
from saccade.data.images.lattice import Lattice
from saccade.errors import ConfigError
from saccade.metrics.pointing import inside_boxes
from saccade.models.vision.attention_resnet import AttentionResNetConfig
from saccade.models.vision.convnext import ConvNextConfig
from saccade.models.vision.image_encoder import ImageEncoder, ImageEncoderConfig, image_axis
from saccade.models.vision.mobilenet import MobileNetConfig
from saccade.models.vision.mvit import MvitConfig
from saccade.models.vision.resnet import ResNetConfig
from saccade.models.vision.swin import SwinConfig
from saccade.models.vision.vit import ImageTokens, VitConfig
from saccade.tasks.classification.maps import (
    ImageMap,
    attention_maps,
    class_maps,
    grad_cam,
    map_kinds,
    pointing,
    relevance,
    rollout,
)

CNN = ResNetConfig(depth=10, width=8, classes=0)
ATTENDING: dict[str, ImageEncoderConfig] = {
    "vit": VitConfig(image=16, patch=8, width=8, depth=3, heads=2, classes=3),
    "vit of one layer": VitConfig(image=16, patch=8, width=8, depth=1, heads=2, classes=3),
    "sl-vit": VitConfig(
        image=16, patch=8, width=8, depth=2, heads=2, classes=3, reads="shifted", local=True
    ),
    "hybrid": VitConfig(image=32, width=8, depth=2, heads=2, classes=3, reads="cnn", cnn=CNN),
    "swin": SwinConfig(width=8, depths=(2, 1), heads=(1, 2), window=2, classes=3),
    "mvitv2": MvitConfig(image=16, width=8, depths=(1, 2), pooled=2, classes=3),
    "mvitv1": MvitConfig(
        image=16, width=8, depths=(1, 1), pooled=2, classes=3, relative=False,
        residual_pooling=False, class_token=True, widen="mlp",
    ),
    "attention-resnet": AttentionResNetConfig(depth=10, width=8, classes=3),
}  # fmt: skip
OTHERS: dict[str, ImageEncoderConfig] = {
    "convnext": ConvNextConfig(depths=(1, 1), widths=(8, 12), layer_scale=0.5, classes=3),
    "resnet": ResNetConfig(depth=10, width=8, classes=3),
    "mobilenet": MobileNetConfig(multiplier=0.25, classes=3),
}
EVERY = ATTENDING | OTHERS
WITH_TOKEN = [name for name in ATTENDING if "vit" in name and name != "mvitv2"] + ["hybrid"]
SIDES = {"vit": 16, "vit of one layer": 16, "sl-vit": 16, "swin": 12, "mvitv1": 16, "mvitv2": 16}
TARGET = torch.tensor([2])


def fresh(name: str) -> ImageEncoder:
    """With all weights random, also those that start as zero or one."""
    torch.manual_seed(0)
    model = EVERY[name].build().double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model


def image(name: str, batch: int = 1) -> Tensor:
    side = SIDES.get(name, 32)
    generator = torch.Generator().manual_seed(1)
    return torch.randn(batch, 3, side, side, generator=generator, dtype=torch.float64)


# Relevance


def differences(model: ImageEncoder, pixels: Tensor, target: int) -> list[LayerWeights]:
    """Each layer's weights times the slope of the score in each of them, by finite differences.

    Every weight is changed in an image of its own, all of them in one pass.
    """
    layers: dict[str, LayerWeights] = {}

    def keep(name: str, seen: Any) -> None:
        layers[name] = LayerWeights(all_weights(seen), *axes[name])

    with torch.no_grad(), watching(model, keep) as axes:
        model.grid_and_scores(pixels)
    found: list[LayerWeights] = []
    for name, layer in layers.items():
        many, windows = layer.weights.numel(), len(layer.weights)
        one = torch.eye(many, dtype=torch.float64).view(many * windows, *layer.weights.shape[1:])
        copies = pixels.expand(many, -1, -1, -1)
        ahead, behind = (moved(model, copies, name, step * one) for step in (1e-6, -1e-6))
        slopes = (ahead - behind)[:, target].view_as(layer.weights) / 2e-6
        found.append(layer._replace(weights=slopes * layer.weights))
    return found


@torch.no_grad()
def moved(model: ImageEncoder, pixels: Tensor, name: str, step: Tensor) -> Tensor:
    """Scores when the weights of one site are others."""

    def answer(site: str, seen: Any) -> Tensor | None:
        return seen.weights() + step if site == name else None

    with watching(model, answer):
        return model.grid_and_scores(pixels)[1]


@pytest.mark.parametrize("name", ATTENDING)
def test_relevance_is_its_formula_with_slopes_by_finite_differences(name: str) -> None:
    model, pixels = fresh(name), image(name)
    target = model(pixels).argmax(dim=1)
    layers = [
        layer._replace(weights=layer.weights.relu())
        for layer in differences(model, pixels, int(target))
    ]
    if name in WITH_TOKEN:
        at = layers[-1].rows
        expected, cells = followed_back(read_class(at, 1).double(), at, layers)
    else:  # what each cell adds to the mean, and so to the score
        grid = model.grid(pixels)[0]
        at = image_axis((grid.shape[1], grid.shape[2]), model.cells())
        head = dict(model.named_parameters())["fc.weight" if "resnet" in name else "head.weight"]
        adds = torch.einsum("c,chw->hw", head[int(target)], grid) / grid[0].numel()
        expected, cells = followed_evenly(adds.detach().relu().flatten()[None], at, layers)
    found = relevance(model, pixels, target)
    torch.testing.assert_close(found.values, expected, rtol=1e-5, atol=1e-8)
    assert found.values.any()
    assert found.lattice == cells.on((pixels.shape[2], pixels.shape[3]))


def test_of_one_layer_it_is_the_positive_part_of_slope_times_weight_at_the_class_token() -> None:
    model, pixels = fresh("vit of one layer"), image("vit of one layer")
    ((weights, _, _),) = differences(model, pixels, 2)
    expected = weights.relu().mean(dim=1)[:, 0, 1:].view(1, 2, 2)
    torch.testing.assert_close(
        relevance(model, pixels, TARGET).values, expected, rtol=1e-5, atol=1e-8
    )


def reads_brightness() -> ImageEncoder:
    """A ViT by hand: the class token looks at what is bright, and class 1 is that it saw some."""
    config = VitConfig(image=32, patch=8, width=4, depth=1, heads=1, classes=2)
    model: Any = config.build().double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        for module in model.modules():
            if isinstance(module, nn.LayerNorm):
                module.weight.fill_(1.0)
        model.patches.project.weight[0] = 1 / model.patches.project.weight.shape[1]
        model.class_token[1] = 1.0
        attention = model.encoder[0].self_attention
        attention.to_q.weight[0, 1] = attention.to_k.weight[0, 0] = 2.0
        attention.to_v.weight[2, 0] = 1.0
        attention.to_output.weight.copy_(torch.eye(4))
        model.head.weight[1, 2], model.head.weight[0, 2] = 1.0, -1.0
    return model


@pytest.mark.parametrize("cell", [0, 5, 11, 15])
def test_maps_point_at_the_only_patch_that_tells_anything(cell: int) -> None:
    model, pixels = reads_brightness(), torch.zeros(1, 3, 32, 32, dtype=torch.float64)
    row, column = cell // 4, cell % 4
    pixels[0, :, 8 * row : 8 * row + 8, 8 * column : 8 * column + 8] = 1.0
    maps = class_maps(model, pixels, kinds=["attention", "rollout", "relevance"])
    assert maps.target.tolist() == [1]
    inside = pixels[:, 0] > 0
    (attention,) = maps.attention.values()
    for one in (*maps.maps.values(), ImageMap(attention.values[:, 0], attention.lattice)):
        assert one.values.argmax() == cell
        assert pointing(one, inside).hits == 1.0
        assert pointing(one, ~inside).hits == 0.0
    assert pointing(maps.maps["relevance"], inside).mass > 0.99
    against = relevance(model, pixels, torch.tensor([0]))  # what is seen there speaks against it
    assert against.values[0].flatten()[cell] == 0


# Attention and rollout


@pytest.mark.parametrize("name", ATTENDING)
def test_attention_is_what_the_class_token_or_all_cells_look_at(name: str) -> None:
    model, pixels = fresh(name), image(name, 2)
    with torch.no_grad(), saccade.looking(model) as trace:
        model(pixels)
    found = attention_maps(model, pixels)
    assert list(found) == list(trace)
    for site, one in found.items():
        weights, (rows, columns) = trace.weights()[site], trace.axes[site]
        assert one.lattice == columns.whole.on((pixels.shape[2], pixels.shape[3]))
        if rows.special:
            torch.testing.assert_close(one.values.flatten(2), weights[:, :, 0, rows.special :])
        else:
            torch.testing.assert_close(
                one.values.sum(dim=(2, 3)), torch.ones(1).double().expand(2, one.values.shape[1])
            )
            if rows.windows is None:
                torch.testing.assert_close(one.values.flatten(2), weights.mean(dim=2))


@pytest.mark.parametrize("name", [name for name in WITH_TOKEN if name != "mvitv1"])
def test_rollout_of_a_vit_is_the_row_of_its_class_token(name: str) -> None:
    model, pixels = fresh(name), image(name, 2)
    with torch.no_grad(), saccade.rolling_out(model) as rolled:
        model(pixels)
    expected = rolled.mixture["encoder"][:, 0, 1:]
    torch.testing.assert_close(rollout(model, pixels).values.flatten(1), expected)


@pytest.mark.parametrize("name", ["swin", "mvitv2", "attention-resnet"])
def test_rollout_through_windows_and_pools_loses_nothing(name: str) -> None:
    model = fresh(name)
    for height, width in [(32, 32), (36, 52)]:
        found = rollout(model, torch.randn(2, 3, height, width, dtype=torch.float64))
        torch.testing.assert_close(found.values.sum(dim=(1, 2)), torch.ones(2).double())


def test_pooled_keys_lie_where_their_convolution_reads() -> None:
    model: Any = fresh("mvitv2")
    pixels = torch.zeros(1, 3, 61, 45, dtype=torch.float64, requires_grad=True)
    with saccade.looking(model) as trace:
        model(pixels)
    _, columns = trace.axes["parts.0.blocks.0.attention"]
    keys = model.parts[0].blocks[0].attention.pool_k.conv(model.patches(pixels))
    lattice = columns.on((61, 45))
    assert keys.shape[2:] == (columns.height, columns.width)
    (reads,) = torch.autograd.grad(keys[0, :, 3, 2].sum(), pixels)  # well inside of the image
    _, rows, across = reads[0].nonzero().unbind(dim=1)
    middle = lattice.middle(3 * columns.width + 2)
    for places, share, side in zip((rows, across), middle, (61, 45)):
        assert (places.min() + places.max() + 1).item() / 2 == pytest.approx(share * side)


# Grad-CAM


def stage_by_hooks(model: Any, name: str, stage: int) -> nn.Module:
    if name in ("resnet", "attention-resnet"):
        return model.bn1 if stage == 1 else model.get_submodule(f"layer{stage - 1}")
    if name == "mobilenet":
        return model.features[(1, 3, 6, 13, 18)[stage - 1]]
    last = name == "mvitv2" and stage == model.stages
    return model.norm if last else model.parts[stage - 1]


def by_hooks(name: str, stage: int, target: int) -> Tensor:
    """Grad-CAM of what a part gave out, from outside of the model."""
    model: Any = fresh(name)
    kept: list[Tensor] = []

    def hook(module: nn.Module, given: Any, output: Any) -> None:
        kept.append(output[0] if isinstance(output, tuple) else output)
        kept[-1].retain_grad()

    stage_by_hooks(model, name, stage).register_forward_hook(hook)
    model(image(name, 2))[:, target].sum().backward()
    (grid,) = kept
    assert grid.grad is not None
    if grid.dim() == 3:  # cells in a row
        sides = model.tokens(image(name, 2), stage)[1]
        maps = [one.mT.unflatten(2, sides) for one in (grid, grid.grad)]
    else:
        last = name == "swin"
        maps = [one.permute(0, 3, 1, 2) if last else one for one in (grid, grid.grad)]
    return torch.einsum("bchw,bc->bhw", maps[0], maps[1].mean(dim=(2, 3))).relu().detach()


@pytest.mark.parametrize(
    ("name", "stage"),
    [
        *(("swin", s) for s in (1, 2)),
        *(("mvitv2", s) for s in (1, 2)),
        *(("convnext", s) for s in (1, 2)),
        *(("resnet", s) for s in (2, 3, 4, 5)),
        *(("attention-resnet", s) for s in (2, 4, 5)),
        *(("mobilenet", s) for s in (3, 4)),
    ],
)
def test_grad_cam_is_what_hooks_give(name: str, stage: int) -> None:
    model = fresh(name)
    found = [grad_cam(model, image(name, 2), torch.tensor([c, c]), stage).values for c in range(3)]
    assert any(values.any() for values in found)
    for target, values in enumerate(found):
        torch.testing.assert_close(values, by_hooks(name, stage, target))


def test_grad_cam_of_a_vit_is_that_of_its_blocks_run_one_by_one() -> None:
    model: Any = fresh("vit")
    x = model.tokens(image("vit"), 1).detach().requires_grad_()
    y = x
    for block in model.encoder[1:]:
        y = block(y, ImageTokens())
    model.head(model.norm(y)[:, 0])[:, 2].sum().backward()
    cells, slopes = x[:, 1:].detach(), x.grad[:, 1:]
    expected = (cells * slopes.mean(dim=1, keepdim=True)).sum(dim=2).relu().view(1, 2, 2)
    torch.testing.assert_close(grad_cam(model, image("vit"), TARGET, 1).values, expected)


# What holds for all


@pytest.mark.parametrize("name", EVERY)
def test_scores_come_from_the_grid_of_any_stage(name: str) -> None:
    model, pixels = fresh(name), image(name, 2)
    for stage in range(1, model.stages + 1):
        grid, scores = model.grid_and_scores(pixels, stage)
        torch.testing.assert_close(grid, model.grid(pixels, stage))
        torch.testing.assert_close(scores, model(pixels))
        reached = torch.autograd.grad(scores.sum(), grid, allow_unused=True)[0]
        assert (reached is None) == (name in WITH_TOKEN and stage == model.stages)


@pytest.mark.parametrize("name", EVERY)
def test_looking_leaves_no_trace_and_works_where_gradients_are_forbidden(name: str) -> None:
    model, pixels = fresh(name).train().requires_grad_(False), image(name, 2)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    with torch.inference_mode():
        maps = class_maps(model, pixels)
    kinds = set(maps.maps) | ({"attention"} if maps.attention else set())
    assert kinds == set(map_kinds(model))
    assert model.training
    assert all(value.equal(before[key]) for key, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert all(site.watcher is None for site in sites(model).values())
    torch.testing.assert_close(maps.scores, model.eval()(pixels))
    for one in (*maps.maps.values(), *maps.attention.values()):
        assert not one.values.requires_grad
        assert (one.values >= 0).all()
        assert one.values.shape[-2:] == (one.lattice.height, one.lattice.width)


@pytest.mark.parametrize("name", ["swin", "mvitv2"])
def test_images_that_were_predicted_in_inference_mode_can_be_looked_at(name: str) -> None:
    """What is kept for the next image of this size must serve where gradients are computed."""
    model, pixels = fresh(name), torch.randn(1, 3, 24, 56, dtype=torch.float64)
    with torch.inference_mode():
        model(pixels)
    assert relevance(model, pixels, TARGET).values.shape == (1, 6, 14)


@pytest.mark.parametrize("name", ["vit", "swin", "mvitv2", "attention-resnet", "convnext"])
def test_the_map_of_an_image_does_not_depend_on_its_batch(name: str) -> None:
    model, pixels = fresh(name), image(name, 3)
    together, alone = class_maps(model, pixels), class_maps(model, pixels[1:2])
    for kind, one in alone.maps.items():
        torch.testing.assert_close(one.values[0], together.maps[kind].values[1])
    for site, one in alone.attention.items():
        torch.testing.assert_close(one.values[0], together.attention[site].values[1])


def test_only_what_is_asked_for_is_computed() -> None:
    maps = class_maps(fresh("vit"), image("vit"), kinds=["rollout"])
    assert (set(maps.maps), maps.attention) == ({"rollout"}, {})


def test_mistakes_are_told_with_a_way_out() -> None:
    plain, vit = fresh("convnext"), fresh("vit")
    assert map_kinds(plain) == ("grad_cam",)
    for ask in (rollout, relevance):
        with pytest.raises(ConfigError, match="ConvNext has no attention to look at; ask for grad"):
            ask(plain, image("convnext"), TARGET)
    with pytest.raises(ConfigError, match=r"target=\[7\] must name a class from 0 to 2"):
        grad_cam(vit, image("vit"), torch.tensor([7]))
    with pytest.raises(ConfigError, match=r"stage=3: the class is .* a stage from 1 to 2"):
        grad_cam(vit, image("vit"), TARGET, 3)
    assert grad_cam(vit, image("vit"), TARGET, 2).values.equal(
        grad_cam(vit, image("vit"), TARGET).values
    )
    with pytest.raises(ConfigError, match="ask for relevance"):
        grad_cam(fresh("vit of one layer"), image("vit"), TARGET)


def test_pointing_counts_hits_near_ones_and_the_mass_inside() -> None:
    drawn = torch.zeros(4, 4, 4)
    drawn[0, 1, 1] = drawn[1, 1, 1] = drawn[2, 0, 0] = 1.0  # the last is a map of nothing
    box = torch.tensor([[0.25, 0.25, 0.5, 0.5]])
    inside = inside_boxes(box, (64, 64)).expand(4, -1, -1)
    found = pointing(ImageMap(drawn, Lattice(4, 4)), inside)
    assert (found.hits, found.near, found.mass, found.chance) == (0.5, 0.5, 0.5, 1 / 16)
