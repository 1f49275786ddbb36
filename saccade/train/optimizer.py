"""Which rule moves which weights, and how fast."""

from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor, nn

from saccade.attention.parameters import parameter_roles
from saccade.models.protocol import HasEncoderRate
from saccade.train.muon import Muon
from saccade.train.settings import TrainSettings

FUSED = ("cpu", "cuda")  # where torch's own kernel takes an update back if it is told to


def make_optimizer(
    model: nn.Module, settings: TrainSettings, device: torch.device
) -> torch.optim.AdamW:
    """AdamW, or Muon for the matrices that it may turn; what decays is for the modules to say."""
    muon = settings.optimizer == "muon"
    slow = set(model.slow_part.parameters()) if isinstance(model, HasEncoderRate) else set()
    alike: dict[tuple[int, bool, float], list[nn.Parameter]]
    alike = {(0, True, 1.0): [], (0, False, 1.0): []}
    for parameter, role in parameter_roles(model):
        scale = settings.encoder_rate if parameter in slow else 1.0
        alike.setdefault((muon * role.matrices, role.decays, scale), []).append(parameter)
    groups: list[dict[str, Any]] = [
        {
            "params": parameters,
            "rate_scale": scale,
            "weight_decay": settings.weight_decay * decays,
            "matrices": matrices,
        }
        for (matrices, decays, scale), parameters in alike.items()
    ]
    kind = Muon if muon else torch.optim.AdamW
    betas, fused = (0.9, settings.beta2), device.type in FUSED
    if device.type != "cuda":
        return kind(groups, lr=settings.learning_rate, betas=betas, fused=fused)
    for group in groups:  # a captured step reads its own there
        group["lr"] = torch.tensor(settings.learning_rate, device=device)
    return kind(groups, betas=betas, fused=True, capturable=True)


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
