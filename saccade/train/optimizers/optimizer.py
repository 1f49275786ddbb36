"""Which rule moves which weights, and how fast."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor, nn

from saccade.attention.parameters import parameter_roles
from saccade.errors import ConfigError
from saccade.models.protocol import HasEncoderRate, HasLayers
from saccade.train.optimizers.lamb import Lamb
from saccade.train.optimizers.muon import Muon
from saccade.train.settings import TrainSettings

OPTIMIZERS: dict[str, Any] = {"adamw": torch.optim.AdamW, "muon": Muon, "lamb": Lamb}
FUSED = ("cpu", "cuda")  # where torch's own kernel takes an update back if it is told to


def make_optimizer(
    model: nn.Module, settings: TrainSettings, device: torch.device
) -> torch.optim.Optimizer:
    """The optimizer asked for; what decays, and what Muon may turn, is for the modules to say."""
    muon, scales = settings.optimizer == "muon", rate_scales(model, settings)
    alike: dict[tuple[int, bool, float], list[nn.Parameter]]
    alike = {(0, True, 1.0): [], (0, False, 1.0): []}
    for parameter, role in parameter_roles(model):
        key = (muon * role.matrices, role.decays, scales[parameter])
        alike.setdefault(key, []).append(parameter)
    groups: list[dict[str, Any]] = [
        {
            "params": parameters,
            "rate_scale": scale,
            "weight_decay": settings.weight_decay * decays,
            "matrices": matrices,
            "scaled": decays,
        }
        for (matrices, decays, scale), parameters in alike.items()
    ]
    kind = OPTIMIZERS[settings.optimizer]
    betas, fused = (0.9, settings.beta2), device.type in FUSED
    if device.type != "cuda":
        return kind(groups, lr=settings.learning_rate, betas=betas, fused=fused)
    for group in groups:  # a captured step reads its own there
        group["lr"] = torch.tensor(settings.learning_rate, device=device)
    return kind(groups, betas=betas, fused=True, capturable=True)


def rate_scales(model: nn.Module, settings: TrainSettings) -> dict[nn.Parameter, float]:
    """The share of the learning rate that each parameter gets.

    encoder_rate in the part that has one · layer_decayᴸ⁺¹⁻ˡ at depth l of L blocks
    """
    part = model.slow_part if isinstance(model, HasEncoderRate) else None
    slow = set() if part is None else set(part.parameters())
    scales = {p: settings.encoder_rate if p in slow else 1.0 for p in model.parameters()}
    if settings.layer_decay == 1:
        return scales
    layered = model if isinstance(model, HasLayers) else part
    if not isinstance(layered, HasLayers) or not layered.layers_upwards():
        raise ConfigError(
            f"layer_decay={settings.layer_decay}: {type(model).__name__} does not say which of its "
            "layers lies above which; leave it at 1"
        )
    depths = layer_depths(layered)
    top = max(depths.values())
    return scales | {p: scales[p] * settings.layer_decay ** (top - d) for p, d in depths.items()}


def layer_depths(model: nn.Module) -> dict[nn.Parameter, int]:
    """How many blocks lie below each parameter, itself counted: 0 below the first of L blocks,
    L + 1 above the last; what stands between two blocks counts to the upper.
    """
    assert isinstance(model, HasLayers)
    blocks = model.layers_upwards()
    inside = {p: depth for depth, block in enumerate(blocks, 1) for p in block.parameters()}
    depths: dict[nn.Parameter, int] = {}
    above = len(blocks) + 1
    for parameter in reversed(list(model.parameters())):  # modules are declared from below
        if parameter in inside:
            above = inside[parameter]
        depths[parameter] = above if parameter in inside or above > 1 else 0
    return depths


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """The learning rate of the next update."""
    for group in optimizer.param_groups:
        scaled = rate * group.get("rate_scale", 1.0)
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(scaled)
        else:
            group["lr"] = scaled


def step_unless(optimizer: torch.optim.Optimizer, skip: Bool[Tensor, ""]) -> None:
    """One update, or none where it would be non-finite; only a fused one is not waited for."""
    if optimizer.defaults["fused"]:
        optimizer.found_inf = skip.float()  # type: ignore[attr-defined]
        optimizer.step()
    elif not skip:
        optimizer.step()


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """What a checkpoint holds of each parameter, under "NUMBER.NAME"."""
    state = optimizer.state_dict()["state"]
    return {f"{i}.{name}": t for i, parts in state.items() for name, t in parts.items()}


def numbered_names(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[str]:
    """Of parameters, as the optimizer numbers them: settings decide that, and may change."""
    names = {parameter: name for name, parameter in model.named_parameters()}
    return [names[p] for group in optimizer.param_groups for p in group["params"]]


def renumbered(tensors: dict[str, Tensor], before: list[str], now: list[str]) -> dict[str, Tensor]:
    """The same of parameters that were numbered in one order of names, and now are in another."""
    numbers = {name: number for number, name in enumerate(now)}
    parts = ((*key.split(".", 1), tensor) for key, tensor in tensors.items())
    return {f"{numbers[before[int(old)]]}.{name}": tensor for old, name, tensor in parts}


def restore_optimizer(
    optimizer: torch.optim.Optimizer,
    tensors: dict[str, Tensor],
    like: Callable[[Tensor, Tensor], Tensor],
) -> None:
    """Go on from such tensors; `like` lays one out as its parameter is."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    state = {
        number: {name: like(x, parameters[number]) for name, x in parts.items()}
        for number, parts in state_by_parameter(optimizer, tensors).items()
    }
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": state, "param_groups": groups})


def state_by_parameter(
    optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]
) -> dict[int, dict[str, Tensor]]:
    """What a checkpoint holds of each parameter under "NUMBER.NAME"; a ValueError if it cannot be.

    A parameter that never had a gradient has none; every other has all.
    """
    numbered = [(p, group) for group in optimizer.param_groups for p in group["params"]]
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        number, _, name = key.partition(".")
        state.setdefault(int(number), {})[name] = tensor
    for number, parts in state.items():
        if not 0 <= number < len(numbered):
            raise ValueError(f"the optimizer has no parameter {number}")
        parameter, group = numbered[number]
        whole, single = torch.Size(parameter.shape), torch.Size()
        wanted = {"step": single, "exp_avg": whole, "exp_avg_sq": whole}
        if group["matrices"]:
            wanted = {"momentum": whole}
        found = {name: tensor.shape for name, tensor in parts.items()}
        if found != wanted:
            raise ValueError(f"of parameter {number} there is {found}, not {wanted}")
        if not all(tensor.is_floating_point() for tensor in parts.values()):
            raise ValueError(f"of parameter {number} not all is floating point")
    return state
