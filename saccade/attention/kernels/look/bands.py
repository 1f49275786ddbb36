"""Matrices that differ near the diagonal from elsewhere."""

import torch
from jaxtyping import Float
from torch import Tensor

from saccade.attention.look.view import UNSEEN, View


class Bands:
    """Matrices that differ near the diagonal from elsewhere; many blocks share one."""

    def __init__(self, view: View) -> None:
        self._like = torch.empty(0, device=view.q.device, dtype=view.precision)
        self._made: dict[tuple[int, ...], Float[Tensor, "t s"]] = {}

    def outside(
        self, shape: torch.Size, offset: int, low: int | None, high: int
    ) -> Float[Tensor, "t s"]:
        """0 where low ≤ s − t + offset ≤ high, else UNSEEN or less."""
        least = -sum(shape) if low is None else low
        key = (*shape, offset, least, high)
        if key not in self._made:
            full = self._like.new_full(shape, UNSEEN)
            band = full.triu(high - offset + 1)
            self._made[key] = band if low is None else band.add_(full.tril_(low - offset - 1))
        return self._made[key]

    def inside(self, shape: torch.Size, offset: int, far: int) -> Float[Tensor, "t s"]:
        """1 where |s − t + offset| ≤ far, else 0."""
        key = (*shape, offset, far)
        if key not in self._made:
            band = self._like.new_ones(shape).tril_(far - offset)
            self._made[key] = band.triu_(-far - offset)
        return self._made[key]
