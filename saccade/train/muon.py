"""Muon: a matrix moves as far along every direction that its gradient knows.

Jordan et al. 2024 (the momentum made orthogonal), with the step's length of Liu et al. 2025,
arXiv:2502.16982. torch has one that works matrix by matrix; this one takes all of a shape at once,
can be captured on a GPU, and leaves everything as it was when a gradient is non-finite.
"""

from collections import defaultdict
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

MOMENTUM = 0.95
STRIDE = 0.4  # root mean square of a step at a learning rate of 1: AdamW's is 0.2 to 0.4
ROUNDS = 5


class Muon(torch.optim.AdamW):
    """Muon for the groups of parameters that hold `"matrices"`, AdamW for the others.

        m ← β m + (1 − β) g        W ← W − η · 0.4 √max(rows, columns) · orthogonal(β m + (1 − β) g)

    What has more than two dimensions is a matrix with a row for each output; where several lie
    on each other, as the gates of a recurrent cell do, each is turned by itself.
    """

    found_inf: Tensor | None = (
        None  # not 0 where gradients are non-finite, as torch's scaler has it
    )

    def __setstate__(self, state: dict[str, Any]) -> None:
        # AdamW's would ask the matrices, too, for their number of steps.
        torch.optim.Optimizer.__setstate__(self, state)

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        every = self.param_groups
        self.param_groups = [group for group in every if not group["matrices"]]
        try:
            super().step(closure)
        finally:
            self.param_groups = every
        for group in every:
            if group["matrices"]:
                self._step_of_matrices(group)

    def _step_of_matrices(self, group: dict[str, Any]) -> None:
        alike: dict[torch.Size, list[tuple[Tensor, Tensor]]] = defaultdict(list)
        for parameter in group["params"]:
            if parameter.grad is not None:
                parts = group["matrices"]
                directions = self._directions(parameter, parts)
                for matrix, direction in zip(parameter.chunk(parts), directions):
                    alike[direction.shape].append((matrix, direction))
        rate = group["lr"] * self._counts
        for shape, members in alike.items():
            steps = orthogonal(torch.stack([direction for _, direction in members]))
            steps = steps * (rate * STRIDE * max(shape) ** 0.5)
            for (matrix, _), step in zip(members, steps):
                tall = len(matrix) > matrix[0].numel()
                matrix.mul_(1 - rate * group["weight_decay"])
                matrix.sub_((step.mT if tall else step).reshape(matrix.shape))

    def _directions(self, parameter: nn.Parameter, parts: int) -> list[Float[Tensor, "short long"]]:
        """Nesterov's momentum of each matrix, laid with no more rows than columns."""
        state = self.state[parameter]
        if not state:
            state["momentum"] = torch.zeros_like(parameter)
        gradient: Any = parameter.grad
        if self.found_inf is not None:
            gradient = gradient.where(self.found_inf == 0, 0.0)
        state["momentum"].lerp_(gradient, (1 - MOMENTUM) * self._counts)
        matrices = gradient.lerp(state["momentum"], MOMENTUM).flatten(1).chunk(parts)
        return [x.mT if x.shape[0] > x.shape[1] else x for x in matrices]

    @property
    def _counts(self) -> Any:
        """1, or 0 where this update must change nothing."""
        return 1.0 if self.found_inf is None else 1.0 - self.found_inf


def orthogonal(matrices: Float[Tensor, "M short long"]) -> Float[Tensor, "M short long"]:
    """The nearest matrices of which all singular values are 1, nearly: within 0.68 and 1.14.

        x ← a x + (b A + c A²) x        A = x xᵀ

    An odd polynomial of x has the same singular vectors, and this one drives every value up fast.
    """
    a, b, c = 3.4445, -4.7750, 2.0315
    x = matrices.bfloat16() if matrices.is_cuda else matrices  # it forgives rounding
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(ROUNDS):
        A = x @ x.mT
        x = a * x + (b * A + c * A @ A) @ x
    return x.to(matrices.dtype)
