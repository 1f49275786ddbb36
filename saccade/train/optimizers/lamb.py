"""LAMB: AdamW whose step is as long as the weights it moves allow (You et al. 2020).

arXiv:1904.00962, without a bound on the norms, as DeiT III is trained with it. All of a group moves
at once, can be captured on a GPU, and stays as it was when a gradient is non-finite.
"""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

EPSILON = 1e-6


class Lamb(torch.optim.Optimizer):
    """Adam's direction, in each tensor of the groups that are `"scaled"` as long as its weights.

        m ← β₁ m + (1 − β₁) g        v ← β₂ v + (1 − β₂) g²
        u = m̂ / (√v̂ + ε) + λ w        w ← w − η (‖w‖ / ‖u‖) u

    The ratio is 1 where either norm is 0, and in groups that are not scaled: biases and norms.
    """

    found_inf: Tensor | None = (
        None  # not 0 where gradients are non-finite, as torch's scaler has it
    )

    def __init__(
        self,
        params: list[dict[str, Any]],
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        weight_decay: float = 0.0,
        *,
        fused: bool = True,
        capturable: bool = True,
    ) -> None:
        defaults = {"lr": lr, "betas": betas, "weight_decay": weight_decay, "scaled": True}
        super().__init__(params, {**defaults, "fused": fused, "capturable": capturable})

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        for group in self.param_groups:
            moving = [p for p in group["params"] if p.grad is not None]
            if moving:
                self._step_of_group(group, moving)

    def _step_of_group(self, group: dict[str, Any], parameters: list[nn.Parameter]) -> None:
        each: Any = torch  # its functions over many tensors at once have no public name
        updates = self._adam(group["betas"], parameters)
        if group["weight_decay"]:
            each._foreach_add_(updates, parameters, alpha=group["weight_decay"])
        rates = group["lr"] * self._counts(parameters[0])
        if group["scaled"]:
            long, step = (torch.stack(each._foreach_norm(x)) for x in (parameters, updates))
            rates = rates * torch.where((long > 0) & (step > 0), long / step, 1.0)
            rates = list(rates.unbind())
        each._foreach_mul_(updates, rates)
        each._foreach_sub_(parameters, updates)

    def _adam(self, betas: tuple[float, float], parameters: list[nn.Parameter]) -> Sequence[Tensor]:
        """m̂ / (√v̂ + ε) of each, after its gradient was taken in."""
        each: Any = torch
        steps, means, squares = self._state_of(parameters)
        gradients = [self._finite(parameter) for parameter in parameters]
        counts = self._counts(parameters[0])
        each._foreach_add_(steps, [counts] * len(steps))
        taken = torch.stack(steps).to(parameters[0].dtype).clamp(min=1)
        for kept, given, beta in (
            (means, gradients, betas[0]),
            (squares, each._foreach_mul(gradients, gradients), betas[1]),
        ):
            apart = each._foreach_sub(given, kept)
            each._foreach_mul_(apart, (1 - beta) * counts)
            each._foreach_add_(kept, apart)
        of_means, of_squares = (1 - beta**taken for beta in betas)
        roots = each._foreach_sqrt(squares)
        each._foreach_div_(roots, list(of_squares.sqrt().unbind()))
        each._foreach_add_(roots, EPSILON)
        updates = each._foreach_div(means, roots)
        each._foreach_div_(updates, list(of_means.unbind()))
        return updates

    def _state_of(self, parameters: list[nn.Parameter]) -> tuple[list[Tensor], ...]:
        names = ("step", "exp_avg", "exp_avg_sq")
        for parameter in parameters:
            state = self.state[parameter]
            if not state:
                count = torch.zeros((), dtype=torch.float32, device=parameter.device)
                state |= dict(zip(names, (count, *(torch.zeros_like(parameter) for _ in "mv"))))
        return tuple([self.state[p][name] for p in parameters] for name in names)

    def _finite(self, parameter: nn.Parameter) -> Float[Tensor, "*shape"]:
        gradient: Any = parameter.grad
        return gradient if self.found_inf is None else gradient.where(self.found_inf == 0, 0.0)

    def _counts(self, parameter: nn.Parameter) -> Float[Tensor, ""]:
        """1, or 0 where this update must change nothing."""
        one = torch.ones((), dtype=parameter.dtype, device=parameter.device)
        return one if self.found_inf is None else one - self.found_inf
