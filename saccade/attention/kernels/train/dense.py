"""Attention of sequences of one length: by torch's kernel, or on a CPU that learns in 16 bits by
products of matrices, for there torch's takes some three times as long, forth and back.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from saccade.attention import masks

HALVES = (torch.bfloat16, torch.float16)
HELD = 512  # positions of a sequence up to which its weights may be held in memory

Added = Bool[Tensor, "#B #N #T S"] | Float[Tensor, "#B #N #T S"] | None


def dense_attention(
    q: Float[Tensor, "B N T K"],
    k: Float[Tensor, "B N S K"],
    v: Float[Tensor, "B N S Kv"],
    added: Added = None,
    *,
    causal: bool = False,
    scale: float | None = None,
) -> Float[Tensor, "B N T Kv"]:
    """What `attend` computes; `added` is a mask, or what is added to the scores."""
    if not learns_in_halves(q, k, v):
        return F.scaled_dot_product_attention(
            q, k, v, attn_mask=added, is_causal=causal, scale=scale
        )
    if causal:
        added = masks.causal(q.shape[2], k.shape[2], device=q.device)
    return by_products(q, k, v, added, q.shape[3] ** -0.5 if scale is None else scale)


def learns_in_halves(q: Tensor, k: Tensor, v: Tensor) -> bool:
    """Whether a gradient is to go through numbers of 16 bits on a CPU, and weights may be held."""
    learns = torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad)
    on_cpu = q.device.type == "cpu" and q.dtype in HALVES
    return learns and on_cpu and max(q.shape[2], k.shape[2]) <= HELD


def by_products(
    q: Float[Tensor, "B N T K"],
    k: Float[Tensor, "B N S K"],
    v: Float[Tensor, "B N S Kv"],
    added: Added,
    scale: float,
) -> Float[Tensor, "B N T Kv"]:
    """The same with its weights held in memory."""
    scores = (q * scale) @ k.mT  # (B, N, T, S)
    if added is None:
        return scores.softmax(dim=-1) @ v
    if added.dtype == torch.bool:
        added = torch.zeros_like(added, dtype=q.dtype).masked_fill_(~added, -torch.inf)
    blind = added.amax(dim=-1, keepdim=True) == -torch.inf  # softmax there would be 0/0
    weights = (scores + added.masked_fill(blind, 0.0)).softmax(dim=-1)
    return (weights @ v).masked_fill(blind, 0.0)
