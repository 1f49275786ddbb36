"""Blocks of a Transformer as single passes over memory, in Triton, for NVIDIA GPUs."""

import torch
from jaxtyping import Float
from torch import Tensor

from saccade.attention.kernels import HAS_TRITON

WIDEST = 8192  # a row must fit into registers


def runs_kernels(x: Float[Tensor, "*batch D"]) -> bool:
    """Whether these kernels take x. A compiler fuses the plain formulas by itself."""
    fits = x.device.type == "cuda" and x.dtype != torch.float64 and x.shape[-1] <= WIDEST
    return HAS_TRITON and fits and not torch.compiler.is_compiling()
