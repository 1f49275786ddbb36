"""Modules declare what an optimizer may do with their parameters: for every model that there is."""

import math
from dataclasses import fields, replace
from functools import cache
from typing import Any

import pytest
import torch
from torch import nn

from saccade.attention.parameters import parameter_roles
from saccade.blocks.output import Readout
from saccade.blocks.patches import Patches
from saccade.blocks.positions import LearnedPositions
from saccade.config import ModelConfig
from saccade.errors import ConfigError
from saccade.models import PRESETS
from saccade.models.vision.attention_resnet import AttentionResNetConfig
from saccade.models.vision.convnext import ConvNextConfig
from saccade.models.vision.mobilenet import MobileNetConfig
from saccade.models.vision.mvit import MvitConfig
from saccade.models.vision.resnet import ResNetConfig
from saccade.models.vision.swin import SwinConfig
from saccade.models.vision.vit import CnnCells, VitConfig
from saccade.train.optimizers.muon import Muon
from saccade.train.optimizers.optimizer import make_optimizer, rate_scales, set_rate
from saccade.train.settings import TrainSettings
from tests.marks import one_fast_of_each

CPU = torch.device("cpu")
TABLES = ("embedding", "positions", "offsets", "queries", ".attention.down", ".attention.across")


every_preset = pytest.mark.parametrize(
    "name", one_fast_of_each({name: type(one) for name, one in PRESETS.items()})
)


@cache
def built(config: ModelConfig) -> nn.Module:
    """Parameters without values: the largest presets are larger than memory. No test changes it."""
    sizes: dict[str, Any] = {"vocabulary": 30}
    known = {field.name for field in fields(config)}
    with torch.device("meta"):
        return replace(config, **{k: v for k, v in sizes.items() if k in known}).build()


@every_preset
def test_every_parameter_has_a_role_and_matrices_decay_as_they_always_did(name: str) -> None:
    model = built(PRESETS[name])
    roles = dict(parameter_roles(model))  # which refuses a matrix that nobody declares
    assert roles.keys() == set(model.parameters())
    for path, parameter in model.named_parameters():
        free = parameter.dim() < 2 or any(part in path for part in TABLES)
        assert roles[parameter].decays != free, path
        assert not (free and roles[parameter].matrices), path


@every_preset
def test_words_positions_and_pixels_are_not_turned_and_gates_one_by_one(name: str) -> None:
    model = built(PRESETS[name])
    roles = dict(parameter_roles(model))
    tied = {m.weight for m in model.modules() if isinstance(m, nn.Embedding)}
    for path, module in model.named_modules():
        for own, parameter in module.named_parameters(recurse=False):
            matrices = roles[parameter].matrices
            if isinstance(module, nn.Embedding | LearnedPositions | Readout) or parameter in tied:
                assert matrices == 0, path
            elif isinstance(module, nn.RNNBase) and parameter.dim() > 1:
                assert matrices == len(parameter) // module.hidden_size, f"{path}.{own}"
            elif path.endswith("positions") or parameter.dim() < 2:
                assert matrices == 0, path
        if isinstance(module, Patches) and not isinstance(module, CnnCells):  # which read no pixels
            assert roles[module.project.weight].matrices == 0, path


def test_a_matrix_that_nobody_declares_is_found_out() -> None:
    class Secret(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Parameter(torch.zeros(2, 2))

    with pytest.raises(AssertionError, match=r"nobody declares inner\.table"):
        dict(parameter_roles(nn.ModuleDict({"inner": Secret()})))


@pytest.mark.parametrize(("cell", "gates"), [(nn.RNN, 1), (nn.GRU, 3), (nn.LSTM, 4)])
def test_stacked_gates_move_as_each_would_by_itself(cell: type[nn.RNNBase], gates: int) -> None:
    torch.manual_seed(0)
    model = cell(6, 5).double()
    settings = TrainSettings(optimizer="muon", weight_decay=0.1)
    optimizer = make_optimizer(model, settings, CPU)
    (group,) = (group for group in optimizer.param_groups if group["matrices"])
    assert group["matrices"] == gates
    stacked = {name: p for name, p in model.named_parameters() if p.dim() > 1}
    assert set(group["params"]) == set(stacked.values())
    parts = {
        name: [nn.Parameter(part.detach().clone()) for part in p.chunk(gates)]
        for name, p in stacked.items()
    }
    every = [part for some in parts.values() for part in some]
    apart = Muon([{"params": every, "matrices": 1, "weight_decay": 0.1}], lr=0.01)
    for _ in range(3):
        set_rate(optimizer, 0.01)
        for name, p in stacked.items():
            p.grad = torch.randn_like(p)
            for part, slope in zip(parts[name], p.grad.chunk(gates)):
                part.grad = slope.clone()
        optimizer.step()
        apart.step()
    for name, p in stacked.items():
        torch.testing.assert_close(p.detach(), torch.cat(parts[name]).detach(), atol=1e-12, rtol=0)


def test_the_slow_part_has_its_own_rate() -> None:
    class Captioner(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.slow_part, self.rest = nn.Linear(3, 3), nn.Linear(3, 3)

    model = Captioner()
    optimizer = make_optimizer(model, TrainSettings(encoder_rate=0.1), CPU)
    set_rate(optimizer, 0.5)
    rates = {p: group["lr"] for group in optimizer.param_groups for p in group["params"]}
    assert rates[model.slow_part.weight] == rates[model.slow_part.bias] == pytest.approx(0.05)
    assert rates[model.rest.weight] == rates[model.rest.bias] == 0.5


# Rates by layer

LAYERED: dict[str, Any] = {
    "vit": VitConfig(image=32, patch=8, width=12, depth=3, classes=5),
    "deit3": VitConfig(image=32, patch=8, width=12, depth=2, layer_scale=0.1, classes=5),
    "hybrid": VitConfig(
        image=32, width=12, depth=2, reads="cnn", cnn=ResNetConfig(depth=10, width=4, classes=0)
    ),
    "swin": SwinConfig(width=8, depths=(2, 1), heads=(2, 2), window=4, classes=5),
    "sl-swin": SwinConfig(
        width=8, depths=(2, 1), heads=(2, 2), window=4, reads="shifted", local=True
    ),
    "mvit": MvitConfig(image=32, width=8, depths=(1, 2), classes=5),
    "mvit v1": MvitConfig(image=32, width=8, depths=(1, 2), relative=False, class_token=True),
    "convnext": ConvNextConfig(depths=(1, 2), widths=(8, 12), classes=5),
    "resnet": ResNetConfig(depth=10, width=4, classes=5),
    "attention-resnet": AttentionResNetConfig(depth=10, width=4, classes=5),
    "mobilenet": MobileNetConfig(multiplier=0.1, classes=5),
    "gpt": replace(PRESETS["gpt-nano"], vocabulary=30),
}
STEM = (
    *("patches", "class_token", "positions", "patch_norm", "parts.0.merge"),
    *("conv1", "bn1", "features.0.", "embedding"),
)
TOP = ("norm.", "head.", "fc.", "classifier.", "features.18.")


@pytest.mark.parametrize("optimizer", ["adamw", "muon", "lamb"])
@pytest.mark.parametrize("name", LAYERED)
def test_each_block_learns_at_a_share_of_the_rate_of_the_one_above(
    name: str, optimizer: Any
) -> None:
    model = LAYERED[name].build()
    settings = TrainSettings(layer_decay=0.5, optimizer=optimizer, weight_decay=0.1)
    made = make_optimizer(model, settings, CPU)
    set_rate(made, 64.0)
    rates = {p: group["lr"] for group in made.param_groups for p in group["params"]}
    every = [p for group in made.param_groups for p in group["params"]]
    assert len(every) == len(set(every)) == len(list(model.parameters()))
    blocks = model.layers_upwards()
    assert len(blocks) == len(set(blocks)) > 1
    of_block = {p: depth for depth, block in enumerate(blocks, 1) for p in block.parameters()}
    for path, parameter in model.named_parameters():
        if path.startswith(STEM):
            depth = 0
        elif path.startswith(TOP):
            depth = len(blocks) + 1
        elif "merge" in path:  # it feeds the first block of its stage
            stage = model.get_submodule(path.partition(".merge")[0])
            depth = of_block[next(stage.blocks.parameters())]
        else:
            depth = of_block[parameter]
        assert rates[parameter] == 64.0 * 0.5 ** (len(blocks) + 1 - depth), path
    decays = {p: g["weight_decay"] for g in made.param_groups for p in g["params"]}
    assert all(decays[p] == 0.1 * role.decays for p, role in parameter_roles(model))


def test_layers_of_the_slow_part_start_from_its_own_rate() -> None:
    class Captioner(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.slow_part, self.rest = LAYERED["vit"].build(), nn.Linear(3, 3)

    model = Captioner()
    settings = TrainSettings(encoder_rate=0.1, layer_decay=0.5)
    scales = rate_scales(model, settings)
    assert scales[model.rest.weight] == 1.0
    assert scales[model.slow_part.head.weight] == 0.1
    assert scales[model.slow_part.patches.project.weight] == pytest.approx(0.1 * 0.5**4)


def test_a_model_without_an_order_of_layers_refuses_and_learns_when_left_at_one() -> None:
    model = nn.Linear(3, 3)
    with pytest.raises(ConfigError) as error:
        make_optimizer(model, TrainSettings(layer_decay=0.5), CPU)
    assert str(error.value) == (
        "layer_decay=0.5: Linear does not say which of its layers lies above which; leave it at 1"
    )
    assert make_optimizer(model, TrainSettings(layer_decay=1.0), CPU).param_groups


@pytest.mark.parametrize("share", [0.0, -1.0, 1.5, math.nan])
def test_a_share_is_above_zero_and_at_most_one(share: float) -> None:
    with pytest.raises(ConfigError, match=f"layer_decay={share} must be above 0 and at most 1"):
        TrainSettings(layer_decay=share)
