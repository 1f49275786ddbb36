"""How alike texts and images are, by the angle between their vectors (Radford et al. 2021,
arXiv:2103.00020).
"""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

WARMTH = 1 / 0.07  # the first scale of cosines
HOTTEST = 100.0  # a larger one would let single pairs decide


def first_log_scale() -> nn.Parameter:
    """The logarithm of τ as it starts."""
    return nn.Parameter(torch.tensor(math.log(WARMTH)))


def scale_of(log_scale: Float[Tensor, ""]) -> Float[Tensor, ""]:
    """τ = min(exp(log τ), 100)"""
    return log_scale.clamp(max=math.log(HOTTEST)).exp()


def unit(x: Float[Tensor, "n J"]) -> Float[Tensor, "n J"]:
    """Vectors of length one, x / ‖x‖, in single precision at least."""
    return F.normalize(x.to(torch.promote_types(x.dtype, torch.float32)), dim=1)


def scaled_cosines(
    texts: Float[Tensor, "T J"], images: Float[Tensor, "I J"], scale: Float[Tensor, ""]
) -> Float[Tensor, "T I"]:
    """Of vectors of length one; also under autocast in their precision, which the scale needs.

    z(t, i) = τ x(t) · y(i)
    """
    with torch.autocast(texts.device.type, enabled=False):
        return scale * (texts @ images.mT)
