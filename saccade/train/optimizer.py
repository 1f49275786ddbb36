"""Which rule moves which weights, and how fast."""

from typing import Any

import torch
from torch import Tensor, nn

from saccade.train.muon import Muon
from saccade.train.settings import TrainSettings


def make_optimizer(
    model: nn.Module, settings: TrainSettings, device: torch.device
) -> torch.optim.AdamW:
    """AdamW; matrices decay, everything else (and embeddings, by name) does not.

    With Muon the matrices between vectors are its own. Pixels are no vectors, and words no rows
    that should be alike: patches and embeddings stay with AdamW.
    """
    muon = settings.optimizer == "muon"
    # In this order: a checkpoint knows its parameters by their numbers.
    alike: dict[tuple[bool, bool, float], list[nn.Parameter]]
    alike = {(False, True, 1.0): [], (False, False, 1.0): []}
    for name, parameter in model.named_parameters():
        shrinks = parameter.dim() > 1 and "embedding" not in name and "positions" not in name
        turns = muon and shrinks and "patches" not in name
        share = settings.encoder_rate if name.startswith("eye.encoder.") else 1.0
        alike.setdefault((turns, shrinks, share), []).append(parameter)
    groups: list[dict[str, Any]] = [
        {
            "params": parameters,
            "share": share,
            "weight_decay": settings.weight_decay * shrinks,
            "muon": turns,
        }
        for (turns, shrinks, share), parameters in alike.items()
    ]
    kind = Muon if muon else torch.optim.AdamW
    betas, fused = (0.9, settings.beta2), device.type in ("cpu", "cuda")
    if device.type != "cuda":
        return kind(groups, lr=settings.learning_rate, betas=betas, fused=fused)
    for group in groups:  # a captured step reads its own there
        group["lr"] = torch.tensor(settings.learning_rate, device=device)
    return kind(groups, betas=betas, fused=True, capturable=True)


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """The learning rate of the next update."""
    for group in optimizer.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate * group.get("share", 1.0))
        else:
            group["lr"] = rate * group.get("share", 1.0)
