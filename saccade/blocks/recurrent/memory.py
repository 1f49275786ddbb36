"""What recurrent states attend to, and one look at it without a graph.

    e = f_att(q, k)        a = softmax(e)        c = Σᵢ aᵢ vᵢ

Keys and values are there once for each sentence or image, and its beams are rows of queries. The
additive score is asked with queries, keys and weight doubled: see `additive.doubled_score`.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from saccade.attention.kernels.train.additive import doubled_score
from saccade.blocks.kernels import runs_kernels

LONGEST_MEMORY = 512  # that a kernel holds at once


class AttentionMemory(NamedTuple):
    """Keys, values, and a bias of the scores: −∞ where nobody may look."""

    keys: Float[Tensor, "B S F"]
    values: Float[Tensor, "B S D"]
    bias: Float[Tensor, "B 1 S"] | None = None

    @classmethod
    def masked(
        cls,
        keys: Float[Tensor, "B S F"],
        values: Float[Tensor, "B S D"],
        mask: Bool[Tensor, "B 1 S"] | None,
    ) -> "AttentionMemory":
        """With a mask as a bias; every row must see something."""
        if mask is None:
            return cls(keys, values)
        bias = torch.zeros(mask.shape, dtype=keys.dtype, device=keys.device)
        return cls(keys, values, bias.masked_fill_(~mask, -torch.inf))

    def select(self, rows: Int[Tensor, " B2"] | slice) -> "AttentionMemory":
        bias = None if self.bias is None else self.bias[rows]
        return AttentionMemory(self.keys[rows], self.values[rows], bias)

    def to(self, dtype: torch.dtype) -> "AttentionMemory":
        bias = None if self.bias is None else self.bias.to(dtype)
        keys, values = self.keys.to(dtype).contiguous(), self.values.to(dtype).contiguous()
        return AttentionMemory(keys, values, bias)

    @property
    def has_kernel(self) -> bool:
        """Whether a look by the additive score can be a single kernel."""
        return runs_kernels(self.keys) and 0 < self.keys.shape[1] <= LONGEST_MEMORY


def look(
    q: Float[Tensor, "R F"],
    memory: AttentionMemory,
    w: Float[Tensor, " F"] | None,
    onto: Float[Tensor, "R D"] | None = None,
) -> tuple[Float[Tensor, "B k S"], Float[Tensor, "R D"]]:
    """Where each query looks and what it reads, by the doubled additive score or the dot product.

    Given something to add c `onto`, tanh(onto + c) takes the place of c.
    """
    if w is not None and memory.has_kernel:
        from saccade.attention.kernels.train import additive_step

        return additive_step.look(q, *memory, w, onto)
    by_sentence = q.view(len(memory.keys), -1, q.shape[-1])  # (B, k, F)
    k = memory.keys
    e = by_sentence @ k.mT if w is None else doubled_score(by_sentence, k, w)  # (B, k, S)
    a = (e if memory.bias is None else e.add_(memory.bias)).softmax(dim=-1)
    c = (a @ memory.values).flatten(0, 1)
    return a, c if onto is None else c.add_(onto).tanh_()
