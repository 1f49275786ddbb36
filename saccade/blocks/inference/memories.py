"""What inference attends to: whole sequences read once, or one more token of every beam.

Both implement `AttentionContext` for rows: the positions of all sequences one after another.
"""

from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from saccade.attention.attend import fused
from saccade.attention.cache import KeyValues
from saccade.attention.kernels.decode.few_queries import step_attention
from saccade.attention.sparse import LayerMasks


class SourceKeys(NamedTuple):
    """The source as one layer looks at it, projected once.

    It is there once for each sentence, however many beams look at it.
    """

    source_keys: Float[Tensor, "B N S K"]
    source_values: Float[Tensor, "B N S K"]

    def select(self, sentences: Int[Tensor, " B2"]) -> "SourceKeys":
        return SourceKeys(self.source_keys[sentences], self.source_values[sentences])


class Prefill:
    """All positions of a batch see one another, or with `caches` what came before; of that, with
    `layer_masks`, what those of a layer may.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        *,
        mask: Bool[Tensor, "B 1 1 S"] | None = None,
        caches: list[KeyValues] | None = None,
        layer_masks: LayerMasks | None = None,
    ) -> None:
        self.shape, self.mask, self.caches, self.layer_masks = shape, mask, caches, layer_masks
        # On a GPU padding costs less than waiting to hear where it is, and a graph has its sizes.
        self.real = None
        if mask is not None and not mask.is_cuda and not torch.compiler.is_exporting():
            self.real = mask.flatten().nonzero()[:, 0]

    def without_padding(self, x: Float[Tensor, "padded D"]) -> Float[Tensor, "R D"]:
        """Only what is real of the positions of all rows, one after another."""
        return x if self.real is None else x[self.real]

    def padded(self, x: Float[Tensor, "R D"]) -> Float[Tensor, "padded D"]:
        """Every position at its place again."""
        if self.real is None:
            return x
        places = x.new_zeros(self.shape[0] * self.shape[1], x.shape[1])
        return places.index_copy_(0, self.real, x)

    def look_back(self, layer: int, site: Any, x: Float[Tensor, "R D"]) -> Float[Tensor, "R D"]:
        qkv = self.padded(site.qkv(x))
        q, k, v = qkv.view(*self.shape, 3, site.heads, -1).permute(2, 0, 3, 1, 4)  # (B, N, T, K)
        mask, causal = self.mask, self.caches is not None
        if self.caches is not None:
            k, v = self.caches[layer].write(k, v)
        if self.layer_masks is not None:
            count = q.shape[2]
            mask = self.layer_masks.between(layer, k.shape[2] - count, count, q.device)
            causal = False
        read = fused(q, k, v, mask=mask, causal=causal)
        return self.without_padding(read.transpose(1, 2).reshape(qkv.shape[0], -1))

    def look_across(self, layer: int, site: Any, x: Float[Tensor, "R D"]) -> Float[Tensor, "R D"]:
        raise AssertionError("there is no other side to look at")


class NextToken:
    """One more position of every beam; keys and values of the beams of a sentence share a pool."""

    def __init__(
        self,
        caches: list[KeyValues],
        sources: list[SourceKeys],
        source_mask: Bool[Tensor, "B 1 1 S"] | None = None,
        layer_masks: LayerMasks | None = None,
    ) -> None:
        self.caches, self.sources, self.sentences = caches, sources, caches[0].keys.shape[0]
        self.layer_masks = layer_masks
        lineage, dtype = caches[0].lineage, caches[0].keys.dtype
        self.bias = None
        if lineage is not None:
            self.bias = _bias(lineage.mask(caches[0].length + lineage.beams), dtype)
        self.source_bias = None if source_mask is None else _bias(source_mask[:, 0], dtype)

    def look_back(self, layer: int, site: Any, x: Float[Tensor, "R D"]) -> Float[Tensor, "R D"]:
        qkv = site.qkv(x)
        by_head = qkv.view(self.sentences, -1, 3, site.heads, qkv.shape[-1] // 3 // site.heads)
        q, k, v = by_head.permute(2, 0, 3, 1, 4)  # (B, N, k, K)
        k, v = self.caches[layer].write(k, v)
        if self.layer_masks is not None:
            assert self.bias is None, "beams of sparse layers are not told apart"
            seen = self.layer_masks.seen_at(layer, k.shape[2] - 1, k.device)
            k, v = k.index_select(2, seen), v.index_select(2, seen)
        return step_attention(q, k, v, self.bias).transpose(1, 2).reshape(qkv.shape[0], -1)

    def look_across(self, layer: int, site: Any, x: Float[Tensor, "R D"]) -> Float[Tensor, "R D"]:
        q, source = site.q(x), self.sources[layer]
        by_head = q.view(self.sentences, -1, site.heads, q.shape[-1] // site.heads).transpose(1, 2)
        read = step_attention(by_head, *source, self.source_bias)
        return read.transpose(1, 2).reshape(q.shape[0], -1)


def _bias(mask: Bool[Tensor, "B #k S"], dtype: torch.dtype) -> Float[Tensor, "B 1 #k S"]:
    """What a mask adds to scores: nothing, or −∞."""
    bias = torch.zeros(mask.shape, dtype=dtype, device=mask.device)
    return bias.masked_fill_(~mask, -torch.inf)[:, None]
