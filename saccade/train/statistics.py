"""What a model remembers besides its parameters, such as the means and variances of BatchNorm."""

from collections import defaultdict
from typing import Any

import torch
from jaxtyping import Bool, Num
from torch import Tensor, nn


class Statistics:
    """All of a model's, of each type end to end: a few launches, however many there are."""

    def __init__(self, model: nn.Module) -> None:
        self._alike: dict[torch.dtype, list[Tensor]] = defaultdict(list)
        parameters = set(model.parameters())
        for tensor in model.state_dict(keep_vars=True).values():
            if tensor not in parameters:
                self._alike[tensor.dtype].append(tensor)

    def copied(self) -> list[Num[Tensor, " _"]]:
        """As they are now."""
        return [torch.cat([x.flatten() for x in same]) for same in self._alike.values()]

    @torch.no_grad()
    def take_back(self, before: list[Num[Tensor, " _"]], skip: Bool[Tensor, ""]) -> None:
        """What they were before, where an update is skipped."""
        each: Any = torch  # its functions over many tensors at once have no public name
        for same, old, now in zip(self._alike.values(), before, self.copied()):
            parts = old.where(skip, now).split([x.numel() for x in same])
            each._foreach_copy_(same, [part.view_as(x) for part, x in zip(parts, same)])

    @torch.no_grad()
    def follow(self, others: "Statistics") -> None:
        """Become those of another model of this kind."""
        each: Any = torch
        for dtype, same in self._alike.items():
            each._foreach_copy_(same, others._alike[dtype])
