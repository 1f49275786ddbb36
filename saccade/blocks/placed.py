"""Attention that is told in every layer where its queries and keys lie, and never mixes that into
what is read: positions are added to queries and keys, not to values.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from saccade.attention.multihead import MultiHeadAttention
from saccade.blocks.positions import sinusoids

EPSILON = 1e-6


def places_within(
    inside: Bool[Tensor, "B h w"], channels: int
) -> Float[Tensor, "B cells channels"]:
    """Sines of where each cell lies on the part of a grid that is image (Carion et al. 2020,
    arXiv:2005.12872).

    p(i, j) = [sinusoids(2π i / h); sinusoids(2π j / w)]        i, j counted from 1, inside only
    """
    halves: list[Tensor] = []
    for along in (1, 2):
        count = inside.cumsum(dim=along).float()  # whole numbers: a GPU adds others in any order
        whole = count.narrow(along, count.shape[along] - 1, 1)
        angle = count / (whole + EPSILON) * (2 * math.pi)
        halves.append(sinusoids(angle.flatten(), channels // 2).unflatten(0, inside.shape))
    return torch.cat(halves, dim=-1).flatten(1, 2)


@dataclass(frozen=True)
class Placed:
    """Implements `AttentionContext` for a batch of whole images.

        look back     q = k = x + p,           v = x
        look across   q = x + p, k = s + p_s,  v = s

    `groups` of queries do not see one another. `bias` is added to the scores across.
    """

    places: Float[Tensor, "#B T D"]
    mask: Bool[Tensor, "B 1 1 T"] | None = None
    groups: int = 1
    source: Float[Tensor, "B S D"] | None = None
    source_places: Float[Tensor, "#B S D"] | None = None
    source_mask: Bool[Tensor, "B 1 1 S"] | None = None
    bias: Float[Tensor, "B N T S"] | None = None

    def look_back(self, layer: int, site: MultiHeadAttention, x: Tensor) -> Tensor:
        q = x + self.places
        if self.groups == 1:
            return site.read(q, q, x, mask=self.mask)
        q, x = (each.unflatten(1, (self.groups, -1)).flatten(0, 1) for each in (q, x))
        return site.read(q, q, x).unflatten(0, (-1, self.groups)).flatten(1, 2)

    def look_across(self, layer: int, site: MultiHeadAttention, x: Tensor) -> Tensor:
        assert self.source is not None
        assert self.source_places is not None
        k = self.source + self.source_places
        q = x + self.places
        return site.read(q, k, self.source, mask=self.source_mask, bias=self.bias)
