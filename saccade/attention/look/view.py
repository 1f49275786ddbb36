"""All that attention weights follow from, held without ever building them."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from saccade.attention import masks

UNSEEN = -1e30  # a score so low that its weight is 0, and unlike −∞ it can be multiplied by 0


@dataclass(frozen=True)
class View:
    """Queries, keys, and who may look where.

        eₜₛ = cap(scale · qₜ · kₛ) + biasₜₛ        lseₜ = log Σₛ exp eₜₛ
        aₜₛ = exp(eₜₛ − lseₜ)

    With fewer key heads than query heads, each serves a group of neighbours. `causal` takes the
    queries for the last positions of the keys; `reach` lets a position see so many to either side.
    `sink` is a learnt score per head that takes part in the sum but is read by nobody.
    `lse` is set when a fused kernel has given it away.
    """

    q: Float[Tensor, "B N T K"]
    k: Float[Tensor, "B M S K"]
    scale: float
    causal: bool = False
    reach: int | None = None
    mask: Bool[Tensor, "#B #N #T #S"] | None = None
    bias: Float[Tensor, "#B #N #T #S"] | None = None
    softcap: float | None = None
    sink: Float[Tensor, " N"] | None = None
    lse: Float[Tensor, "B N T"] | None = None

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Batch, query heads, queries, keys."""
        batch, heads, queries, _ = self.q.shape
        return batch, heads, queries, self.k.shape[2]

    @property
    def group(self) -> int:
        """How many query heads share a key head."""
        return self.q.shape[1] // self.k.shape[1]

    @property
    def precision(self) -> torch.dtype:
        """Single or better: what scores are computed in."""
        return torch.promote_types(self.q.dtype, torch.float32)

    def part(self, rows: list[int] | slice, queries: slice, keys: slice) -> "View":
        """Some rows of the batch, some of their queries and keys.

        Being causal or near is told from the end: the last query must stay beside the last key.
        """

        def some(side: Tensor | None) -> Tensor | None:
            if side is None:
                return None
            side = side[rows] if len(side) > 1 else side
            side = side[:, :, queries] if side.shape[2] > 1 else side
            return side[..., keys] if side.shape[3] > 1 else side

        mask = some(self.mask)
        return replace(
            self,
            q=self.q[rows][:, :, queries],
            k=self.k[rows][:, :, keys],
            mask=None if mask is None or bool(mask.all()) else mask,
            bias=some(self.bias),
            lse=None if self.lse is None else self.lse[rows][:, :, queries],
        )

    def scores(self) -> Float[Tensor, "B N T S"]:
        """Every score, UNSEEN where a query may not look; in single precision or better."""
        precision = self.precision
        keys = self.k.to(precision).repeat_interleave(self.group, dim=1)
        scores = self.q.to(precision) @ keys.mT * self.scale
        if self.softcap is not None:
            scores = self.softcap * (scores / self.softcap).tanh()
        if self.bias is not None:
            scores = scores + self.bias
        allowed = self.allowed()
        return scores if allowed is None else scores.masked_fill(~allowed, UNSEEN)

    def allowed(self) -> Bool[Tensor, "#B #N #T S"] | None:
        """True where a query may look; None where it may look everywhere."""
        _, _, queries, keys = self.shape
        device, allowed = self.q.device, self.mask
        if self.bias is not None:
            allowed = masks.both(allowed, self.bias > UNSEEN)
        if self.causal:
            allowed = masks.both(allowed, masks.causal(queries, keys, device=device))
        if self.reach is not None:
            window = masks.window(queries, keys, reach=self.reach, device=device)
            allowed = masks.both(allowed, window)
        return allowed

    def normaliser(
        self, scores: Float[Tensor, "b n t s"], *, heads: slice | Int[Tensor, " n"] = slice(None)
    ) -> Float[Tensor, "b n t"]:
        """The log-sum-exp of each query's scores; −∞ for a query that may look nowhere."""
        if self.sink is None:
            lse = scores.logsumexp(dim=-1)
        else:
            sink = self.sink[heads].to(scores).view(1, -1, 1, 1).expand(*scores.shape[:3], 1)
            lse = torch.cat([scores, sink], dim=-1).logsumexp(dim=-1)
        return lse.masked_fill(lse < UNSEEN / 2, -torch.inf)

    def weights(self) -> Float[Tensor, "B N T S"]:
        """Every weight: for short inputs, and for checking what is computed without them."""
        scores = self.scores()
        lse = self.normaliser(scores).unsqueeze(-1)
        return (scores - lse.masked_fill(lse == -torch.inf, 0.0)).exp()


# Who looks is shown what the weights follow from or, where no fused kernel knows the score, them.
# Shown a view, it may answer with weights, by which values are then read instead.
Watcher = Callable[[View | Float[Tensor, "B N T S"]], Float[Tensor, "B N T S"] | None]
