"""Multi-head attention: N small attentions side by side (Vaswani et al. 2017, arXiv:1706.03762)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from saccade.attention import masks
from saccade.attention.attend import Mask, fused, fused_cross, fused_self
from saccade.attention.axes import TEXT, Axis
from saccade.attention.kernels.train.linear import Linear, UnbiasedLinear, defers_bias, together
from saccade.attention.kernels.train.packed import takes_windows
from saccade.attention.parameters import FREE, Role
from saccade.attention.segments import Segments
from saccade.attention.site import Site
from saccade.errors import ConfigError


class Locality(nn.Module):
    """What sharpens attention where images are few (Lee et al. 2021, arXiv:2112.13492).

    softmax(τ q kᵀ) v        τ learnt for each head; no position looks at itself
    """

    def __init__(self, heads: int, head_width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.full((heads,), head_width**-0.5))

    def roles(self) -> dict[str, Role]:
        return {"scale": FREE}

    def sharpened(self, q: Float[Tensor, "B N T K"]) -> Float[Tensor, "B N T K"]:
        return q * self.scale[:, None, None]


class MultiHeadAttention(Site):
    """Attend N times at once, each head in its own K-wide subspace.

        headᵢ = attend(x Wᵢq, y Wᵢk, z Wᵢv)        output = [head₁ … head_N] Wo

    Self-attention is `mha(x, x)`; cross-attention is `mha(x, memory)`. The widths of queries,
    keys and values are free (D_Q, D_K, D_V); by default all are `width`, and K = width / N.
    Departs from the paper's code in having no dropout on the weights, which fused kernels dislike.
    """

    def __init__(
        self,
        width: int,
        *,
        heads: int,
        key_width: int | None = None,
        value_width: int | None = None,
        head_width: int | None = None,
        rows: Axis = TEXT,
        columns: Axis = TEXT,
        biased: bool = True,
        local: bool = False,
    ) -> None:
        super().__init__(rows, columns)
        if head_width is None and width % heads:
            raise ConfigError(f"width={width} does not divide into heads={heads}")
        self.heads = heads
        self.head_width = head_width or width // heads
        inner = heads * self.head_width
        linear = Linear if biased else UnbiasedLinear
        self.to_q = linear(width, inner)
        self.to_k = linear(key_width or width, inner)
        self.to_v = linear(value_width or key_width or width, inner)
        self.to_output = Linear(inner, width)
        self.locality = Locality(heads, self.head_width) if local else None

    def forward(
        self,
        x: Float[Tensor, "B T Dq"],
        y: Float[Tensor, "B S Dk"],
        z: Float[Tensor, "B S Dv"] | None = None,
        *,
        mask: Mask = None,
        causal: bool = False,
    ) -> Float[Tensor, "B T Dq"]:
        return self.to_output(self.read(x, y, z, mask=mask, causal=causal))

    def read(
        self,
        x: Float[Tensor, "B T Dq"],
        y: Float[Tensor, "B S Dk"],
        z: Float[Tensor, "B S Dv"] | None = None,
        *,
        mask: Mask = None,
        causal: bool = False,
        bias: Float[Tensor, "#B #N T S"] | None = None,
    ) -> Float[Tensor, "B T inner"]:
        """What all heads read, side by side: `to_output` comes after it."""
        if isinstance(mask, Segments) and self.watcher is None and z is None:
            return self._read_packed(x, y, mask, causal=causal)
        if x is y and z is None:
            plain = mask is None and bias is None and not causal
            if plain and self.takes_windows(x, x.shape[1]):
                return self.read_windows(x[:, None], (1, x.shape[1]))[:, 0]
            q, k, v = self._fused_qkv(x)
        elif x is y:
            q, k = map(self._split, together(x, self.to_q, self.to_k).chunk(2, dim=-1))
            v = self._split(self.to_v(z))
        else:
            q, (k, v) = self._split(self.to_q(x)), self._memory(y, z)
        heads = self.attended(q, k, v, mask=mask, causal=causal, bias=bias)  # (B, N, T, K)
        return heads.transpose(1, 2).flatten(2)

    def takes_windows(self, x: Float[Tensor, "*batch D"], cells: int) -> bool:
        """Whether `read_windows` may be asked."""
        return self.watcher is None and takes_windows(x, cells, self.head_width)

    def read_windows(
        self,
        x: Float[Tensor, "B h w D"],
        window: tuple[int, int],
        shift: tuple[int, int] = (0, 0),
        offsets: Float[Tensor, "offsets N"] | None = None,
    ) -> Float[Tensor, "B h w inner"]:
        """What each cell of a map reads of its window, by a kernel that takes the map as it is."""
        from saccade.attention.kernels.train.windows import window_attention

        layers, local = (self.to_q, self.to_k, self.to_v), self.locality
        later = defers_bias(x) and any(layer.bias.requires_grad for layer in layers)
        joint = together(x, *layers, defer_bias=later)
        return window_attention(
            joint.unflatten(-1, (3, self.heads, self.head_width)),
            offsets,
            None if local is None else local.scale,
            [layer.bias for layer in layers] if later else [],
            [*window],
            [*shift],
            self.head_width**-0.5,
            local is None,
        )

    def attended(
        self,
        q: Float[Tensor, "B N T K"],
        k: Float[Tensor, "B N S K"],
        v: Float[Tensor, "B N S K"],
        *,
        mask: Mask = None,
        causal: bool = False,
        bias: Float[Tensor, "#B #N T S"] | None = None,
    ) -> Float[Tensor, "B N T K"]:
        """What each head reads."""
        if self.locality is None:
            return fused(q, k, v, mask=mask, causal=causal, bias=bias, watcher=self.watcher)
        assert not isinstance(mask, Segments)
        others = masks.not_itself(q.shape[2], k.shape[2], device=q.device)
        q, mask = self.locality.sharpened(q), masks.both(mask, others)
        return fused(q, k, v, mask=mask, causal=causal, bias=bias, scale=1.0, watcher=self.watcher)

    def q(self, x: Float[Tensor, "*batch D"]) -> Float[Tensor, "*batch inner"]:
        """The queries of all heads side by side."""
        return self.to_q(x)

    def qkv(self, x: Float[Tensor, "*batch D"]) -> Float[Tensor, "*batch joined"]:
        """Queries, keys and values side by side, as one product makes them."""
        return together(x, self.to_q, self.to_k, self.to_v)

    def _fused_qkv(self, x: Float[Tensor, "B T D"]) -> tuple[Float[Tensor, "B N T K"], ...]:
        if defers_bias(x):
            from saccade.attention.kernels.train.fused_qkv import apart

            layers = self.to_q, self.to_k, self.to_v
            joint = together(x, *layers, defer_bias=True)
            return apart(joint, self.heads, *(layer.bias for layer in layers))
        return tuple(map(self._split, self.qkv(x).chunk(3, dim=-1)))

    def _memory(
        self, y: Float[Tensor, "B S Dk"], z: Float[Tensor, "B S Dv"] | None
    ) -> tuple[Float[Tensor, "B N S K"], Float[Tensor, "B N S K"]]:
        """Keys and values of what is looked at."""
        if z is None and self.to_v.in_features == self.to_k.in_features:
            k, v = together(y, self.to_k, self.to_v).chunk(2, dim=-1)
        else:
            k, v = self.to_k(y), self.to_v(y if z is None else z)
        return self._split(k), self._split(v)

    def _read_packed(
        self,
        x: Float[Tensor, "1 T Dq"],
        y: Float[Tensor, "1 S Dk"],
        segments: Segments,
        *,
        causal: bool,
    ) -> Float[Tensor, "1 T inner"]:
        """Of sequences end to end, by kernels that take the products as they lie."""
        scale = self.head_width**-0.5
        if x is y:
            qkv = self._heads(self.qkv(x), 3)
            read = fused_self(qkv, segments, causal=causal, scale=scale)
        else:
            assert not causal
            q = self._heads(self.to_q(x), 1)[:, 0]
            kv = self._heads(together(y, self.to_k, self.to_v), 2)
            read = fused_cross(q, kv, segments, scale=scale)
        return read.flatten(1)[None]

    def _heads(self, x: Float[Tensor, "1 T all"], parts: int) -> Float[Tensor, "T parts N K"]:
        return x[0].unflatten(-1, (parts, self.heads, -1))

    def _split(self, x: Float[Tensor, "B T inner"]) -> Float[Tensor, "B N T K"]:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)
