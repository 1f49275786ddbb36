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
