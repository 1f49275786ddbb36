"""What is read off a query: a small MLP, as its box and its place are made by."""

from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from itertools import pairwise

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from saccade.attention.kernels.train.linear import Linear


@contextmanager
def exactly(x: Float[Tensor, "*batch D"]) -> Generator[Tensor]:
    """The same in float32 at least, and so is what is computed of it: a pixel in a thousand
    cannot be told in bfloat16.
    """
    outside = nullcontext() if x.is_meta else torch.autocast(x.device.type, enabled=False)
    with outside:
        yield x if x.dtype == torch.float64 else x.float()


class Mlp(nn.Module):
    """Linear layers with ReLU in between.

    y = Wₙ relu( … relu(W₁ x + b₁) … ) + bₙ
    """

    def __init__(self, inputs: int, hidden: int, outputs: int, *, layers: int) -> None:
        super().__init__()
        widths = [inputs, *[hidden] * (layers - 1), outputs]
        self.layers = nn.ModuleList(Linear(a, b) for a, b in pairwise(widths))

    def forward(self, x: Float[Tensor, "*batch inputs"]) -> Float[Tensor, "*batch outputs"]:
        *others, last = self.layers
        for layer in others:
            x = F.relu(layer(x))
        return last(x)
