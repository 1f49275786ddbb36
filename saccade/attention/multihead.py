"""Multi-head attention: N small attentions side by side (Vaswani et al. 2017, arXiv:1706.03762)."""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from saccade.attention.attend import fused
from saccade.attention.axes import TEXT, Axis
from saccade.attention.cache import KeyValues
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
        self.to_q = nn.Linear(width, inner)
        self.to_k = nn.Linear(key_width or width, inner)
        self.to_v = nn.Linear(value_width or key_width or width, inner)
        self.to_output = nn.Linear(inner, width)

    def forward(
        self,
        x: Float[Tensor, "B T Dq"],
        y: Float[Tensor, "B S Dk"],
        z: Float[Tensor, "B S Dv"] | None = None,
        *,
        mask: Bool[Tensor, "#B #N #T S"] | None = None,
        causal: bool = False,
        cache: KeyValues | None = None,
    ) -> Float[Tensor, "B T Dq"]:
        """With a `cache`, `y` holds only the new positions, and the old ones are seen as well."""
        k, v = self.memory(y, z)
        if cache is not None:
            k, v = cache.append(k, v)
        return self.read(x, k, v, mask=mask, causal=causal)

    def memory(
        self, y: Float[Tensor, "B S Dk"], z: Float[Tensor, "B S Dv"] | None = None
    ) -> tuple[Float[Tensor, "B N S K"], Float[Tensor, "B N S K"]]:
        """Keys and values of what is looked at: computed once when it does not change."""
        return self._split(self.to_k(y)), self._split(self.to_v(y if z is None else z))

    def read(
        self,
        x: Float[Tensor, "B T Dq"],
        k: Float[Tensor, "B N S K"],
        v: Float[Tensor, "B N S K"],
        *,
        mask: Bool[Tensor, "#B #N #T S"] | None = None,
        causal: bool = False,
    ) -> Float[Tensor, "B T Dq"]:
        """Attend to keys and values that are already there."""
        q = self._split(self.to_q(x))
        heads = fused(q, k, v, mask=mask, causal=causal, watcher=self.watcher)  # (B, N, T, K)
        return self.to_output(heads.transpose(1, 2).flatten(2))  # (B, T, D)

    def _split(self, x: Float[Tensor, "B T inner"]) -> Float[Tensor, "B N T K"]:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)
