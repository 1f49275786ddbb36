"""Linear layers with weights in eight bits, for the CPU.

    y ≈ s_x · s_w · (q_x q_w) + b        q = round(x / s),  s = max |x| / 127

Weights have a scale for each output, inputs one for each row that is found when they come: what a
row becomes does not depend on the rows beside it. Products are summed in 32 bits.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

MIDDLE = 128  # inputs are unsigned bytes with this zero, which is what processors multiply fast
LARGEST = 127
SMALLEST = 1e-30  # a row of zeros has a scale too


MOST_ROWS = 512  # beyond which numbers of rows are rounded no more coarsely


def filled_up(x: Float[Tensor, "R D"]) -> Float[Tensor, "R2 D"]:
    """Rows of zeros up to one of few numbers of rows.

    oneDNN keeps what it has compiled for each number it meets, a thousand of them: for a server
    with requests of every size that was 200 MB. A few rows more cost next to nothing.
    """
    grain = 8 if len(x) <= 64 else 16 if len(x) <= 128 else 64
    extra = -len(x) % grain
    return F.pad(x, (0, 0, 0, extra)) if extra else x


class Int8:
    """A linear layer, packed once."""

    def __init__(
        self, weight: Float[Tensor, "out D"], bias: Float[Tensor, " out"] | None, *, relu: bool
    ) -> None:
        weight = weight.detach().float()
        self.relu = relu
        self.scale = (weight.abs().amax(dim=1) / LARGEST).clamp_min(SMALLEST)
        rounded = (weight / self.scale[:, None]).round().to(torch.int8)
        self.packed = torch.ops.onednn.qlinear_prepack(rounded, None)
        self.zero = torch.zeros(len(weight), dtype=torch.int32)
        self.bias = torch.zeros(len(weight)) if bias is None else bias.detach().float().clone()

    def __call__(self, x: Float[Tensor, "R D"]) -> Float[Tensor, "R out"]:
        rows, x = len(x), filled_up(x)
        scale = x.abs().amax(dim=-1, keepdim=True).div_(LARGEST).clamp_min_(SMALLEST)  # (R, 1)
        q = (x / scale).add_(MIDDLE + 0.5).to(torch.uint8)  # cut off, so that it is rounded
        product = torch.ops.onednn.qlinear_pointwise(
            q, 1.0, MIDDLE, self.packed, self.scale, self.zero, None, 1.0, 0, torch.float32,
            "none", [], "",
        )  # fmt: skip
        y = torch.addcmul(self.bias, product, scale, out=product)[:rows]
        return y.relu_() if self.relu else y
