"""What a discrete VAE is trained by: how likely the pixels are, and how far codes are from chance.

Ramesh et al. 2021, arXiv:2102.12092, §2.1 and appendix A. Departs from it in one way: the scale of
the distribution has a least value, for where colours are flat the likelihood has no bound.
"""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from saccade.models.image_tokens.dvae import Laplace

LEAST_LOG_SCALE = -5.0  # about half of what one step of a pixel is in logits


def gumbel_softmax(
    logits: Float[Tensor, "B V h w"], temperature: Float[Tensor, ""]
) -> Float[Tensor, "B V h w"]:
    """A code drawn for each cell, softened so that gradients pass.

        z = softmax((logits + g) / τ)        g = −ln(−ln u),  u uniform

    The largest weight is where a draw from softmax(logits) falls, whatever τ is; as τ → 0 it is
    one. Jang et al. 2017, arXiv:1611.01144; Maddison et al. 2017, arXiv:1611.00712.
    """
    scores = logits.permute(0, 2, 3, 1)  # (B, h, w, V): as it lies in memory
    noise = torch.rand_like(scores).log_().neg_().log_().neg_()  # exponential_ is slow on a CPU
    return ((scores + noise) / temperature).softmax(dim=-1).permute(0, 3, 1, 2)


def laplace_loss(mapped: Float[Tensor, "B 3 H W"], found: Laplace) -> Float[Tensor, " B"]:
    """−ln of the logit-Laplace density of each image's mapped pixels, a mean over all of them.

    −ln L(x | μ, b) = ln(2 b x (1 − x)) + |logit(x) − μ| / b
    """
    log_scale = LEAST_LOG_SCALE + F.softplus(found.log_scale - LEAST_LOG_SCALE)
    apart = (mapped.logit() - found.mean).abs() * (-log_scale).exp()
    return (math.log(2) + log_scale + (mapped * (1 - mapped)).log() + apart).mean(dim=(1, 2, 3))


def kl_to_uniform(logits: Float[Tensor, "B V h w"]) -> Float[Tensor, " B"]:
    """How far the codes of each image are from being drawn by chance, summed over its cells.

    KL(q ‖ uniform) = ln V + Σ q ln q
    """
    log_q = logits.permute(0, 2, 3, 1).log_softmax(dim=-1)  # (B, h, w, V)
    return (log_q.exp() * log_q).sum(dim=-1).add(math.log(log_q.shape[-1])).sum(dim=(1, 2))


def diversity_loss(
    logits: Float[Tensor, "B V h w"], counts: Float[Tensor, " B"]
) -> Float[Tensor, ""]:
    """How unevenly codes are used by all cells of the images that count, whatever each is sure of.

        KL(q̄ ‖ uniform) = ln V + Σ q̄ ln q̄        q̄ = mean of q over images and cells

    Baevski et al. 2020, arXiv:2006.11477, eq. 4, whose entropy it is but for its sign and ln V.
    """
    q = logits.softmax(dim=1).mean(dim=(2, 3))  # (B, V)
    q = (q * counts[:, None]).sum(dim=0) / counts.sum().clamp(min=1)
    log_q = q.clamp(min=torch.finfo(q.dtype).tiny).log()  # a code that nobody takes: 0 · ln 0 = 0
    return (q * log_q).sum() + math.log(q.shape[0])
