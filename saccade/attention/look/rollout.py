"""Attention rollout: through all layers, which inputs a position reads (Abnar & Zuidema 2020).

Every layer mixes what the layers below have mixed, and the residual keeps half of it. The fused
kernel itself does the mixing, with the mixture so far as its values, so that nothing of size T×S
is held: only T × buckets.
"""

from collections.abc import Generator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from saccade.attention.look.view import UNSEEN, View
from saccade.attention.look.watching import watching
from saccade.errors import ConfigError


class Rollout:
    """The mixture so far, per stack of layers: `mixture["encoder"]` is (B, T, buckets).

    R ← ½ R + ½ meanₙ(Aₙ) R, layer after layer, from R₀ = one-hot buckets of the input

    A bucket is a range of neighbouring inputs; each row sums to one unless a query was blind.
    """

    def __init__(self, buckets: int) -> None:
        self.buckets = buckets
        self.mixture: dict[str, Float[Tensor, "B T G"]] = {}

    @torch.no_grad()
    def record(self, name: str, seen: View | Float[Tensor, "B N T S"]) -> None:
        """Mix once more; sites come in the order in which layers run."""
        stack = name.split(".", maxsplit=1)[0]
        queries, keys = seen.shape[-2:]
        if queries != keys:
            raise ConfigError(
                f"{name} has {queries} queries and {keys} keys; rollout follows self-attention "
                "over a whole text: choose such sites with `only`"
            )
        if stack not in self.mixture:
            self.mixture[stack] = one_hot(seen, self.buckets)
        self.mixture[stack] = roll(seen, self.mixture[stack])


def one_hot(seen: View | Float[Tensor, "B N T S"], buckets: int) -> Float[Tensor, "B T G"]:
    """Every input in its own bucket, or with its neighbours in one."""
    some = seen.q if isinstance(seen, View) else seen
    batch, size = some.shape[0], seen.shape[-1]
    many = min(buckets, size)
    bucket = torch.arange(size, device=some.device) * many // size
    return F.one_hot(bucket, many).to(some.dtype).expand(batch, size, many)


def roll(
    seen: View | Float[Tensor, "B N T T"], mixture: Float[Tensor, "B T G"]
) -> Float[Tensor, "B T G"]:
    """One layer: half of what was there, half of what its heads read of it."""
    return 0.5 * mixture + 0.5 * read(seen, mixture)


def read(
    seen: View | Float[Tensor, "B N T S"], mixture: Float[Tensor, "B S G"]
) -> Float[Tensor, "B T G"]:
    """What the heads read of a mixture, on average.

    meanₙ(Aₙ) R
    """
    if isinstance(seen, Tensor):
        return seen.mean(dim=1) @ mixture
    view, parts = seen, list[Tensor]()
    keys = view.k.repeat_interleave(view.group, dim=1)
    # Kernels want values as wide as queries, so that many buckets are read in several goes.
    width, mask = view.q.shape[-1], _mask(view)
    for start in range(0, mixture.shape[-1], width):
        part = mixture[:, None, :, start : start + width]
        values = F.pad(part, (0, width - part.shape[-1])).expand(-1, keys.shape[1], -1, -1)
        heads = F.scaled_dot_product_attention(
            view.q,
            keys,
            values,
            attn_mask=mask,
            is_causal=view.causal and mask is None,
            scale=view.scale,
        )  # (B, N, T, width)
        parts.append(heads.mean(dim=1)[..., : part.shape[-1]])
    return torch.cat(parts, dim=-1)


def _mask(view: View) -> Tensor | None:
    """What the kernel is told beside being causal; None where there is nothing to tell."""
    if view.softcap is not None or view.sink is not None:
        raise ConfigError("rollout knows no soft caps or learnt sinks; look at each layer instead")
    if view.mask is None and view.bias is None and view.reach is None:
        return None
    allowed = view.allowed()
    if view.bias is None:
        return allowed
    bias = view.bias.clamp(min=UNSEEN)
    return bias if allowed is None else bias.masked_fill(~allowed, UNSEEN)


@contextmanager
def rolling_out(
    model: nn.Module, *, only: str = "self", buckets: int = 256
) -> Generator[Rollout, None, None]:
    """Follow attention through the layers while the block runs one forward pass."""
    rollout = Rollout(buckets)
    with watching(model, rollout.record, only=only):
        yield rollout
