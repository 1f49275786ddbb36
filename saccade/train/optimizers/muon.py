"""Muon: a matrix moves as far along every direction that its gradient knows.

Jordan et al. 2024 (the momentum made orthogonal), with the step's length of Liu et al. 2025,
arXiv:2502.16982. torch has one that works matrix by matrix; this one takes all of a shape at once
and launches little else, can be captured on a GPU, and leaves everything as it was when a gradient
is non-finite.
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
        self._step_of_matrices([group for group in every if group["matrices"]])

    def _step_of_matrices(self, groups: list[dict[str, Any]]) -> None:
        each: Any = torch  # its functions over many tensors at once have no public name
        steps = self._steps(groups)
        for group in groups:
            moving = [parameter for parameter in group["params"] if parameter in steps]
            mine = [steps[parameter] for parameter in moving]
            if not moving:
                continue
            rate = group["lr"] if self.found_inf is None else group["lr"] * (1.0 - self.found_inf)
            each._foreach_mul_(mine, rate)
            if group["weight_decay"]:
                each._foreach_mul_(moving, 1 - rate * group["weight_decay"])
            each._foreach_sub_(moving, mine)

    def _steps(self, groups: list[dict[str, Any]]) -> dict[nn.Parameter, Float[Tensor, "*shape"]]:
        """How far each parameter that has a gradient would go at a learning rate of 1."""
        each: Any = torch
        alike: dict[tuple[int, int], list[nn.Parameter]] = defaultdict(list)
        for group in groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    rows = len(parameter) // group["matrices"]
                    alike[rows, parameter[0].numel()].append(parameter)
        moving = [parameter for same in alike.values() for parameter in same]
        if not moving:
            return {}
        flat = self._directions(moving)  # those of a shape lie next to each other
        sizes = [sum(parameter.numel() for parameter in same) for same in alike.values()]
        stacks = [part.view(-1, *shape) for part, shape in zip(flat.split(sizes), alike)]
        each._foreach_copy_(stacks, orthogonal(stacks))
        each._foreach_mul_(stacks, [STRIDE * max(shape) ** 0.5 for shape in alike])
        return dict(zip(moving, _laid_out(flat, moving)))

    def _directions(self, parameters: list[nn.Parameter]) -> Float[Tensor, " elements"]:
        """Nesterov's momentum of all parameters, end to end."""
        each: Any = torch
        for parameter in parameters:
            if not self.state[parameter]:
                self.state[parameter]["momentum"] = torch.zeros_like(parameter)
        momenta = [self.state[parameter]["momentum"] for parameter in parameters]
        flat = _end_to_end([p.grad for p in parameters if p.grad is not None])
        if self.found_inf is not None:  # a momentum that follows itself stays what it is
            torch.where(self.found_inf == 0, flat, _end_to_end(momenta), out=flat)
        gradients = _laid_out(flat, parameters)
        each._foreach_lerp_(momenta, gradients, 1 - MOMENTUM)
        each._foreach_lerp_(gradients, momenta, MOMENTUM)
        return flat


def _end_to_end(tensors: list[Tensor]) -> Float[Tensor, " elements"]:
    return torch.cat([x.flatten() for x in tensors])


def _laid_out(
    flat: Float[Tensor, " elements"], like: list[nn.Parameter]
) -> list[Float[Tensor, "*shape"]]:
    """Parts of what lies end to end, in the shapes of these."""
    parts = flat.split([parameter.numel() for parameter in like])
    return [part.view(parameter.shape) for part, parameter in zip(parts, like)]


def orthogonal(
    stacks: list[Float[Tensor, "_ _ _"]],
) -> list[Float[Tensor, "_ _ _"]]:
    """The nearest matrices of which all singular values are 1, nearly: within 0.68 and 1.14.

        x ← a x + (b A + c A²) x        A = x xᵀ

    An odd polynomial of x has the same singular vectors, and this one drives every value up fast.
    Of each shape there is a stack of matrices; what is tall is turned with what is wide.
    """
    each: Any = torch
    norms = torch.stack(each._foreach_norm([x for stack in stacks for x in stack])) + 1e-7
    alike: dict[torch.Size, list[int]] = defaultdict(list)
    wide = [x.mT if x.shape[1] > x.shape[2] else x for x in stacks]
    for number, x in enumerate(wide):
        alike[x.shape[1:]].append(number)
    of_stack = norms.split([len(x) for x in stacks])
    found = list(stacks)
    for shape, numbers in alike.items():
        counts = [len(stacks[number]) for number in numbers]
        x = torch.empty(sum(counts), *shape, dtype=_precision(norms), device=norms.device)
        for number, part in zip(numbers, x.split(counts)):
            torch.div(wide[number], of_stack[number][:, None, None], out=part)
        for number, part in zip(numbers, _rounds(x).split(counts)):
            found[number] = part if wide[number] is stacks[number] else part.mT
    return found


def _rounds(x: Float[Tensor, "M short long"]) -> Float[Tensor, "M short long"]:
    a, b, c = 3.4445, -4.7750, 2.0315
    for _ in range(ROUNDS):
        A = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(A, A, A, beta=b, alpha=c), x, beta=a)
    return x


def _precision(like: Tensor) -> torch.dtype:
    return torch.bfloat16 if like.is_cuda else like.dtype  # it forgives rounding
