"""Attention of a few queries, as a decoding step has them: fused kernels are made for many."""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor


def step_attention(
    q: Float[Tensor, "B N k K"],
    keys: Float[Tensor, "B N S K"],
    values: Float[Tensor, "B N S K"],
    bias: Float[Tensor, "B 1 #k S"] | None,
) -> Float[Tensor, "B N k K"]:
    """What `attend` computes, by two batched products on the CPU.

    softmax(q kᵀ / √K + bias) v
    """
    if q.is_cuda:
        return F.scaled_dot_product_attention(q, keys, values, attn_mask=bias)
    scores = (q * q.shape[-1] ** -0.5) @ keys.mT  # (B, N, k, S)
    if bias is not None:
        scores += bias
    return scores.softmax(dim=-1) @ values
