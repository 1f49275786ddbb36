"""Multi-head attention: N small attentions side by side (Vaswani et al. 2017, arXiv:1706.03762)."""

from jaxtyping import Float
from torch import Tensor

from saccade.attention.attend import Mask, fused
from saccade.attention.axes import TEXT, Axis
from saccade.attention.cache import KeyValues
from saccade.attention.kernels.train.linear import Linear, sums_later, together
from saccade.attention.kernels.train.packed import packed_cross_attention, packed_self_attention
from saccade.attention.segments import Segments
from saccade.attention.site import Site
from saccade.errors import ConfigError


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
    ) -> None:
        super().__init__(rows, columns)
        if head_width is None and width % heads:
            raise ConfigError(f"width={width} does not divide into heads={heads}")
        self.heads = heads
        self.head_width = head_width or width // heads
        inner = heads * self.head_width
        self.to_q = Linear(width, inner)
        self.to_k = Linear(key_width or width, inner)
        self.to_v = Linear(value_width or key_width or width, inner)
        self.to_output = Linear(inner, width)

    def forward(
        self,
        x: Float[Tensor, "B T Dq"],
        y: Float[Tensor, "B S Dk"],
        z: Float[Tensor, "B S Dv"] | None = None,
        *,
        mask: Mask = None,
        causal: bool = False,
        cache: KeyValues | None = None,
        owed: bool = False,
    ) -> Float[Tensor, "B T Dq"]:
        """With a `cache`, `y` holds only the new positions, and the old ones are seen as well.

        With `owed`, the caller gives the gradient of `to_output.bias`.
        """
        if isinstance(mask, Segments) and self.watcher is None and z is None and cache is None:
            return self._read_packed(x, y, mask, causal=causal, owed=owed)
        if x is y and z is None:
            q, k, v = self._joint(x)
        else:
            q, (k, v) = self._split(self.to_q(x)), self.memory(y, z)
        if cache is not None:
            k, v = cache.append(k, v)
        return self._read(q, k, v, mask=mask, causal=causal, owed=owed)

    def _joint(self, x: Float[Tensor, "B T D"]) -> tuple[Float[Tensor, "B N T K"], ...]:
        layers = self.to_q, self.to_k, self.to_v
        if sums_later(x):
            from saccade.attention.kernels.train.fused_qkv import apart

            joint = together(x, *layers, owed=True)
            return apart(joint, self.heads, *(layer.bias for layer in layers))
        return tuple(map(self._split, together(x, *layers).chunk(3, dim=-1)))

    def memory(
        self, y: Float[Tensor, "B S Dk"], z: Float[Tensor, "B S Dv"] | None = None
    ) -> tuple[Float[Tensor, "B N S K"], Float[Tensor, "B N S K"]]:
        """Keys and values of what is looked at: computed once when it does not change."""
        if z is None and self.to_v.in_features == self.to_k.in_features:
            k, v = together(y, self.to_k, self.to_v).chunk(2, dim=-1)
        else:
            k, v = self.to_k(y), self.to_v(y if z is None else z)
        return self._split(k), self._split(v)

    def read(
        self,
        x: Float[Tensor, "B T Dq"],
        k: Float[Tensor, "B N S K"],
        v: Float[Tensor, "B N S K"],
        *,
        mask: Mask = None,
        causal: bool = False,
    ) -> Float[Tensor, "B T Dq"]:
        """Attend to keys and values that are already there."""
        return self._read(self._split(self.to_q(x)), k, v, mask=mask, causal=causal)

    def _read(
        self,
        q: Float[Tensor, "B N T K"],
        k: Float[Tensor, "B N S K"],
        v: Float[Tensor, "B N S K"],
        *,
        mask: Mask,
        causal: bool,
        owed: bool = False,
    ) -> Float[Tensor, "B T Dq"]:
        heads = fused(q, k, v, mask=mask, causal=causal, watcher=self.watcher)  # (B, N, T, K)
        return self._output(heads.transpose(1, 2).flatten(2), owed)  # (B, T, D)

    def _output(self, joined: Float[Tensor, "B T inner"], owed: bool) -> Float[Tensor, "B T Dq"]:
        return together(joined, self.to_output, owed=True) if owed else self.to_output(joined)

    def _read_packed(
        self,
        x: Float[Tensor, "1 T Dq"],
        y: Float[Tensor, "1 S Dk"],
        segments: Segments,
        *,
        causal: bool,
        owed: bool,
    ) -> Float[Tensor, "1 T Dq"]:
        """Of sequences end to end, by kernels that take the products as they lie."""
        scale = self.head_width**-0.5
        if x is y:
            qkv = self._heads(together(x, self.to_q, self.to_k, self.to_v), 3)
            read = packed_self_attention(qkv, segments, causal=causal, scale=scale)
        else:
            assert not causal
            q = self._heads(self.to_q(x), 1)[:, 0]
            kv = self._heads(together(y, self.to_k, self.to_v), 2)
            read = packed_cross_attention(q, kv, segments, scale=scale)
        return self._output(read.flatten(1)[None], owed)

    def _heads(self, x: Float[Tensor, "1 T all"], parts: int) -> Float[Tensor, "T parts N K"]:
        return x[0].unflatten(-1, (parts, self.heads, -1))

    def _split(self, x: Float[Tensor, "B T inner"]) -> Float[Tensor, "B N T K"]:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)
