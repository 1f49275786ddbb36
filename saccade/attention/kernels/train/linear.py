"""Linear layers whose way there and back is short in mixed precision.

torch's own casts every weight and bias by itself, rounds the weights' gradient to half precision
and widens it again, and sums the bias's gradient slower than memory can be read.
"""

from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from saccade.attention.kernels import HAS_TRITON


class Linear(nn.Linear):
    """W x + b, with the same parameters and names as torch's."""

    def forward(self, input: Float[Tensor, "*batch D"]) -> Float[Tensor, "*batch E"]:  # noqa: A002
        return together(input, self)


class UnbiasedLinear(Linear):
    """W x. Its bias is no parameter but zero, so that it serves wherever a biased one does."""

    bias: Tensor

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, bias=False)
        del self.bias
        self.register_buffer("bias", torch.zeros(outputs), persistent=False)


def defers_bias(x: Float[Tensor, "*batch D"]) -> bool:
    """Whether there are kernels that read a product's gradient anyway, and can sum it as well."""
    fits = x.device.type == "cuda" and x.dtype != torch.float64 and torch.is_grad_enabled()
    return HAS_TRITON and fits and not torch.compiler.is_compiling()


def together(
    x: Float[Tensor, "*batch D"], *layers: nn.Linear, defer_bias: bool = False
) -> Float[Tensor, "*batch all"]:
    """Several linear layers of the same input as one product: it is read once.

        [W₁; W₂; …] x + [b₁; b₂; …]

    With `defer_bias`, whoever takes the product takes the biases too, and gives them their
    gradient: the sum over all rows of the product's.
    """
    weights: list[Tensor] = [layer.weight for layer in layers]
    biases: list[Tensor] = [layer.bias.detach() if defer_bias else layer.bias for layer in layers]
    mixed = x.device.type == "cuda" and torch.is_autocast_enabled("cuda")
    if mixed and torch.is_grad_enabled() and not torch.compiler.is_compiling():
        return _Linear.apply(x, torch.get_autocast_dtype("cuda"), *weights, *biases)
    if len(layers) == 1:
        return F.linear(x, weights[0], biases[0])
    return F.linear(x, torch.cat(weights), torch.cat(biases))


class _Linear(torch.autograd.Function):
    """∂x = ∂y W        ∂W = ∂yᵀ x        ∂b = Σ ∂y, both in the precision of the weights."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, half: torch.dtype, *parameters: Tensor) -> Tensor:
        layers = len(parameters) // 2
        ctx.sizes = [len(weight) for weight in parameters[:layers]]
        ctx.dtypes = x.dtype, parameters[0].dtype
        weight = x.new_empty(sum(ctx.sizes), x.shape[-1], dtype=half)
        bias = x.new_empty(sum(ctx.sizes), dtype=half)
        each: Any = torch  # its functions over many tensors at once have no public name
        each._foreach_copy_([*weight.split(ctx.sizes), *bias.split(ctx.sizes)], list(parameters))
        x = x.to(half)
        ctx.save_for_backward(x, weight)
        with torch.autocast("cuda", enabled=False):
            return F.linear(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        x_dtype, exact = ctx.dtypes
        dy = grads[0].to(weight.dtype).flatten(0, -2)
        dx = (dy @ weight).view(x.shape).to(x_dtype) if ctx.needs_input_grad[0] else None
        by_weight = torch.mm(dy.T, x.flatten(0, -2), out_dtype=exact)
        by_biases: tuple[Tensor | None, ...] = (None,) * len(ctx.sizes)
        if any(ctx.needs_input_grad[-len(ctx.sizes) :]):
            # A product with ones sums the rows in a third of the time that `sum` takes.
            by_bias = torch.mm(_ones(len(dy), dy.dtype, dy.device), dy, out_dtype=exact)[0]
            by_biases = by_bias.split(ctx.sizes)
        return dx, None, *by_weight.split(ctx.sizes), *by_biases


def _ones(count: int, dtype: torch.dtype, device: torch.device) -> Float[Tensor, "1 count"]:
    return _many_ones(1 << (count - 1).bit_length(), dtype, device)[:, :count]


@cache  # never dropped, for captured kernels go on reading them; one for each power of two
def _many_ones(count: int, dtype: torch.dtype, device: torch.device) -> Float[Tensor, "1 count"]:
    return torch.ones(1, count, dtype=dtype, device=device)
