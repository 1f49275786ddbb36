"""Pixels inside (0, 1), where the logit-Laplace distribution has its density.

Ramesh et al. 2021, arXiv:2102.12092, appendix A.3.
"""

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

EDGE = 0.1  # how far all pixels stay from 0 and 1, where the density has poles


def map_pixels(images: UInt8[Tensor, "B 3 H W"], dtype: torch.dtype) -> Float[Tensor, "B 3 H W"]:
    """φ(x) = (1 − 2ε) x + ε,  x = pixel / 255"""
    return images.to(dtype) * ((1 - 2 * EDGE) / 255) + EDGE


def unmap_pixels(mapped: Float[Tensor, "B 3 H W"]) -> UInt8[Tensor, "B 3 H W"]:
    """φ⁻¹(y) = (y − ε) / (1 − 2ε), as the nearest pixel that there is."""
    x = (mapped.float() - EDGE) / (1 - 2 * EDGE)
    return (x.clamp(0, 1) * 255).round().to(torch.uint8)
