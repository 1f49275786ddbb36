"""LoRA: a matrix that others have trained stays as it is, and a product of two thin ones is added.

Hu et al. 2021, arXiv:2106.09685. As there, the matrices that make queries and values are adapted.
The sum is what everyone reads as the layer's weight, so nobody need know; and it is what is kept of
a run, under the layer's own name.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils import parametrize

from saccade.attention.parameters import TABLE, Role

ADAPTED = ("to_q", "to_v")


class Lora(nn.Module):
    """What a layer's weight becomes.

    W + (α / r) B A        B is zero at first
    """

    def __init__(self, weight: Float[Tensor, "outputs inputs"], *, rank: int, alpha: float) -> None:
        super().__init__()
        self.rank, self.alpha = rank, alpha
        self.a = nn.Parameter(weight.new_empty(rank, weight.shape[1]))
        self.b = nn.Parameter(weight.new_zeros(len(weight), rank))
        nn.init.kaiming_uniform_(self.a, a=5**0.5)

    def roles(self) -> dict[str, Role]:
        return {"a": TABLE, "b": TABLE}  # what Muon makes of one would not follow from the other

    def forward(self, weight: Float[Tensor, "outputs inputs"]) -> Float[Tensor, "outputs inputs"]:
        device = "cpu" if weight.is_meta else weight.device.type  # there is no autocast of outlines
        with torch.autocast(device, enabled=False):  # what is kept is the same sum
            return torch.addmm(weight, self.b, self.a, alpha=self.alpha / self.rank)


def adaptable(model: nn.Module) -> dict[str, nn.Linear]:
    """The layers that make queries and values, by where they are."""
    return {
        path: module
        for path, module in model.named_modules()
        if path.rpartition(".")[2] in ADAPTED and isinstance(module, nn.Linear)
    }


def adapt(layer: nn.Linear, *, rank: int, alpha: float) -> None:
    """Let a layer learn by two thin matrices alone."""
    layer.weight.requires_grad_(False)
    parametrize.register_parametrization(
        layer, "weight", Lora(layer.weight, rank=rank, alpha=alpha)
    )


def adapters(model: nn.Module) -> dict[str, Lora]:
    """What was added to which layers, by where they are."""
    return {
        path.removesuffix(".parametrizations.weight.0"): module
        for path, module in model.named_modules()
        if isinstance(module, Lora)
    }


def merged_state(model: nn.Module) -> dict[str, Tensor]:
    """The model's tensors by their own names, with what was added to them."""
    state = dict(model.state_dict())
    for path in adapters(model):
        layer: Any = model.get_submodule(path)
        for name in [name for name in state if name.startswith(f"{path}.parametrizations.")]:
            del state[name]
        state[f"{path}.weight"] = layer.weight.detach()
    return state
