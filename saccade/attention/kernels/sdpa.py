"""torch's fused attention, with the log-sum-exp where the kernel behind it gives that away."""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.attention import SDPBackend


def sdpa_with_lse(
    q: Float[Tensor, "B N T K"],
    k: Float[Tensor, "B M S K"],
    v: Float[Tensor, "B M S Kv"],
    *,
    mask: Bool[Tensor, "#B #N #T #S"] | Float[Tensor, "#B #N #T #S"] | None = None,
    causal: bool = False,
    scale: float | None = None,
    grouped: bool = False,
) -> tuple[Float[Tensor, "B N T Kv"], Float[Tensor, "B N T"] | None]:
    """Bit for bit what `scaled_dot_product_attention` gives, and log Σ exp of each query's scores.

    torch itself is asked which kernel it would choose; where that one keeps the log-sum-exp to
    itself, None is given and someone else must compute it.
    """
    kernel = _chosen(q, k, v, mask, causal=causal, scale=scale, grouped=grouped)
    if kernel is None:
        output = F.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, is_causal=causal, scale=scale, enable_gqa=grouped
        )
        return output, None
    output, lse = kernel(q, k, v, mask, causal, scale)
    return output, lse.detach()


def _chosen(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    *,
    causal: bool,
    scale: float | None,
    grouped: bool,
) -> Any:
    if q.device.type == "cuda":
        choice = torch._fused_sdp_choice(  # type: ignore[attr-defined]
            q, k, v, mask, 0.0, causal, scale=scale, enable_gqa=grouped
        )
        # F masks for cuDNN with a number that is another in every release: leave that to F.
        masked = mask is not None and mask.dtype == torch.bool
        if masked and choice == SDPBackend.CUDNN_ATTENTION.value:
            return None
        return _ON_CUDA.get(choice)
    if grouped:
        return None
    choice = torch._fused_sdp_choice(q, k, v, mask, 0.0, causal, scale=scale)  # type: ignore[attr-defined]
    if q.device.type == "cpu" and choice == SDPBackend.FLASH_ATTENTION.value:
        return _cpu_flash
    return None


def _cpu_flash(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, scale: float | None
) -> tuple[Tensor, Tensor]:
    return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        q, k, v, 0.0, causal, attn_mask=_added(mask, q), scale=scale
    )


def _flash(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, scale: float | None
) -> tuple[Tensor, Tensor]:
    """Widths are filled up to a multiple of 8, as F does."""
    assert mask is None  # this kernel takes none, so torch does not choose it then
    scale = q.shape[3] ** -0.5 if scale is None else scale
    q, k, padded = (F.pad(x, (0, -x.shape[3] % 8)) for x in (q, k, v))
    output, lse, *_ = torch.ops.aten._scaled_dot_product_flash_attention(
        q, k, padded, 0.0, causal, False, scale=scale
    )
    return output[..., : v.shape[3]], lse


def _cudnn(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, scale: float | None
) -> tuple[Tensor, Tensor]:
    output, lse, *_ = torch.ops.aten._scaled_dot_product_cudnn_attention(
        q, k, v, mask, True, 0.0, causal, False, scale=scale
    )
    return output, lse.reshape(output.shape[:3])


def _efficient(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, scale: float | None
) -> tuple[Tensor, Tensor]:
    """A mask must lie in rows of a multiple of 8; the log-sum-exp comes in rows of one of 32."""
    mask = _added(mask, q)
    if mask is not None:
        keys = mask.shape[3]
        mask = F.pad(mask, (0, -keys % 8))[..., :keys] if keys % 8 else mask
        mask = mask.expand(*q.shape[:3], k.shape[2])
    output, lse, *_ = torch.ops.aten._scaled_dot_product_efficient_attention(
        q, k, v, mask, True, 0.0, causal, scale=scale
    )
    return output, lse[..., : q.shape[2]]


def _added(mask: Tensor | None, q: Tensor) -> Tensor | None:
    """What F makes of a boolean mask: 0 or −∞, to be added."""
    if mask is None or mask.dtype != torch.bool:
        return mask
    return torch.zeros_like(mask, dtype=q.dtype).masked_fill_(~mask, -torch.inf)


_ON_CUDA = {
    SDPBackend.FLASH_ATTENTION.value: _flash,
    SDPBackend.CUDNN_ATTENTION.value: _cudnn,
    SDPBackend.EFFICIENT_ATTENTION.value: _efficient,
}
