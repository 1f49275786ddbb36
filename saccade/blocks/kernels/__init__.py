"""Blocks of a Transformer as single passes over memory, in Triton, for NVIDIA GPUs."""

from importlib.util import find_spec

import torch
from jaxtyping import Float
from torch import Tensor

HAS_TRITON = find_spec("triton") is not None
WIDEST = 8192  # a row must fit into registers


def runs_kernels(x: Float[Tensor, "*batch D"]) -> bool:
    """Whether these kernels take x. A compiler fuses the plain formulas by itself."""
    fits = x.device.type == "cuda" and x.dtype != torch.float64 and x.shape[-1] <= WIDEST
    return HAS_TRITON and fits and not torch.compiler.is_compiling()


def add_norm(
    x: Float[Tensor, "*batch D"],
    change: Float[Tensor, "*batch D"],
    weight: Float[Tensor, " D"],
    bias: Float[Tensor, " D"],
    epsilon: float,
    *,
    rate: float,
) -> Float[Tensor, "*batch D"]:
    """norm(x + dropout(change))."""
    from saccade.blocks.kernels import residual

    return residual.add_norm(x, change, weight, bias, epsilon, rate=rate)


def norm_beside(
    x: Float[Tensor, "*batch D"],
    weight: Float[Tensor, " D"],
    bias: Float[Tensor, " D"],
    epsilon: float,
) -> tuple[Float[Tensor, "*batch D"], Float[Tensor, "*batch D"]]:
    """norm(x), and x itself."""
    from saccade.blocks.kernels import residual

    return residual.norm_beside(x, weight, bias, epsilon)


def add_dropped(
    x: Float[Tensor, "*batch D"], change: Float[Tensor, "*batch D"], *, rate: float
) -> Float[Tensor, "*batch D"]:
    """X + dropout(change)."""
    from saccade.blocks.kernels import residual

    return residual.add_dropped(x, change, rate=rate)


def relu_dropped(x: Float[Tensor, "*shape"], *, rate: float) -> Float[Tensor, "*shape"]:
    """dropout(max(x, 0))."""
    from saccade.blocks.kernels import activation

    return activation.relu_dropped(x, rate=rate)
