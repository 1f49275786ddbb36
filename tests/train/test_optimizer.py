"""Modules declare what an optimizer may do with their parameters: for every model that there is."""

from dataclasses import fields, replace
from typing import Any

import pytest
import torch
from torch import nn

from saccade.attention.parameters import parameter_roles
from saccade.blocks.output import Readout
from saccade.blocks.patches import Patches
from saccade.blocks.positions import LearnedPositions
from saccade.config import ModelConfig
from saccade.models import PRESETS
from saccade.train.muon import Muon
from saccade.train.optimizer import make_optimizer, set_rate
from saccade.train.settings import TrainSettings

CPU = torch.device("cpu")


def built(config: ModelConfig) -> nn.Module:
    """Parameters without values: the largest presets are larger than memory."""
    sizes: dict[str, Any] = {"vocabulary": 30}
    known = {field.name for field in fields(config)}
    with torch.device("meta"):
        return replace(config, **{k: v for k, v in sizes.items() if k in known}).build()


@pytest.mark.parametrize("name", PRESETS)
def test_every_parameter_has_a_role_and_matrices_decay_as_they_always_did(name: str) -> None:
    model = built(PRESETS[name])
    roles = dict(parameter_roles(model))  # which refuses a matrix that nobody declares
    assert roles.keys() == set(model.parameters())
    for path, parameter in model.named_parameters():
        free = parameter.dim() < 2 or "embedding" in path or "positions" in path
        assert roles[parameter].decays != free, path
        assert not (free and roles[parameter].matrices), path


@pytest.mark.parametrize("name", PRESETS)
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
        if isinstance(module, Patches):
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
