"""Gated 1-D convolutions over sequences (Gehring et al. 2017, arXiv:1705.03122).

Highly parallel; a stack of depth L with kernels of size k sees L·(k − 1) + 1 positions.
"""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

from saccade.attention.parameters import MATRIX, TABLE, Role
from saccade.blocks.dropout import Dropout

HALF = 0.5**0.5  # keeps the variance of a sum of two equal parts


class GatedConv(nn.Module):
    """A convolution whose one half gates the other.

        [a; b] = conv(x)        y = a · σ(b)

    `forward` takes its input already padded: the caller decides whether the future is visible.
    """

    def __init__(self, width: int, *, kernel: int, dropout: float) -> None:
        super().__init__()
        self.kernel, self.dropout = kernel, Dropout(dropout)
        conv = nn.Conv1d(width, 2 * width, kernel)
        nn.init.normal_(conv.weight, std=(4 * (1 - dropout) / (kernel * width)) ** 0.5)
        nn.init.zeros_(conv.bias)  # type: ignore[arg-type]
        self.conv = weight_norm(conv, dim=0)

    def roles(self) -> dict[str, Role]:
        length, direction = (f"conv.parametrizations.weight.original{i}" for i in (0, 1))
        return {length: TABLE, direction: MATRIX}

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T2 D"]:
        return F.glu(self.conv(self.dropout(x).mT), dim=1).mT


def pad_around(x: Float[Tensor, "B T D"], kernel: int) -> Float[Tensor, "B T2 D"]:
    """So that each position sees as much before as after it."""
    return F.pad(x, (0, 0, (kernel - 1) // 2, kernel // 2))
