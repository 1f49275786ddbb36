"""How much of images was lost, and how many of the codes are in use."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

LEAST = 1e-10  # of a mean squared error: images that are equal have 100 dB, not infinitely many


def squared_error(
    images: UInt8[Tensor, "B 3 H W"], others: UInt8[Tensor, "B 3 H W"]
) -> Float[Tensor, " B"]:
    """Mean squared error of each image, its pixels from 0 to 1."""
    return ((images.float() - others.float()) / 255).square().mean(dim=(1, 2, 3))


def psnr(error: float) -> float:
    """Peak signal to noise ratio in decibels, of a mean squared error.

    −10 log₁₀ MSE
    """
    return -10 * math.log10(max(error, LEAST))


class CodeUse(NamedTuple):
    """As how many codes they are, each used as often; and how many are not used at all."""

    perplexity: float
    dead: int


def code_use(codes: Int[Tensor, "..."], known: int) -> CodeUse:
    """How evenly codes are used.

    perplexity = exp(−Σ p ln p),  p: the share of each code among all that were used
    """
    counts = torch.bincount(codes.flatten(), minlength=known).double()
    shares = counts[counts > 0] / counts.sum()
    return CodeUse((-(shares * shares.log()).sum()).exp().item(), int((counts == 0).sum()))
