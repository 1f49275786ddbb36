"""Drawing the next word at random, more or less boldly.

Chance is a table of numbers from 0 up to 1, one for each row and step, that is made before the
first step. A draw is a function of the scores and of one such number: so a captured step draws as
a plain one does, and a row's words do not depend on what is decoded beside it.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from saccade.errors import ConfigError

COLDEST = 1e-30


def widest(device: torch.device) -> torch.dtype:
    """The most exact arithmetic that a device has for sure."""
    return torch.float64 if device.type in ("cpu", "cuda") else torch.float32


def uniforms(seed: int, streams: Iterable[int], steps: int) -> Float[Tensor, "B T"]:
    """A number in [0, 1) for each stream and step: the first ones do not depend on the others."""
    keys = [np.random.SeedSequence((seed % 2**64, stream)) for stream in streams]
    rows = [np.random.Generator(np.random.PCG64(key)).random(steps) for key in keys]
    return torch.from_numpy(np.stack(rows))


@dataclass(frozen=True, kw_only=True)
class Sampler:
    """Draw from the model's distribution, sharpened and cut, by inverting its sum.

        p ∝ exp(logits / temperature), restricted to the `top_k` most probable words and to the
        smallest set of words whose probability reaches `top_p`
        word = the first w with Σ_{v ≤ w} p(v) ≥ 1 − u

    `top_k` 0 and `top_p` 1 cut nothing.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        if not self.temperature > 0:
            raise ConfigError(
                f"temperature={self.temperature} must be above 0; for the best word give top_k=1"
            )
        if self.top_k < 0:
            raise ConfigError(f"top_k={self.top_k} must be 0 (no cut) or more")
        if not 0 < self.top_p <= 1:
            raise ConfigError(f"top_p={self.top_p} must be above 0 and at most 1")

    @property
    def cuts(self) -> bool:
        """Whether it draws among some words only."""
        return self.top_k > 0 or self.top_p < 1

    @property
    def divisor(self) -> float:
        """The temperature, no colder than single precision can divide by."""
        return max(self.temperature, COLDEST)

    def __call__(self, logits: Float[Tensor, "R V"], u: Float[Tensor, " R"]) -> Int[Tensor, " R"]:
        p = self.probabilities(logits)
        # In double precision, for a GPU sums in an order of its own. Words that were cut are at
        # 0, which is never reached: 1 − u > 0.
        exact = widest(p.device)
        reached = p.cumsum(dim=-1, dtype=exact).masked_fill_(p == 0, 0.0)
        wanted = (1 - u.to(exact)).clamp_min(torch.finfo(exact).eps / 2) * reached.amax(dim=-1)
        return (reached >= wanted[:, None]).byte().argmax(dim=-1)

    def probabilities(self, logits: Float[Tensor, "R V"]) -> Float[Tensor, "R V"]:
        """What is drawn from."""
        logits = logits.float()
        # The best word at 0: never ∞ − ∞.
        logits = (logits - logits.amax(dim=-1, keepdim=True)) / self.divisor
        if 0 < self.top_k < logits.shape[-1]:
            least = logits.topk(self.top_k).values[:, -1:]
            logits = logits.masked_fill(logits < least, -torch.inf)
        if self.top_p < 1:
            ordered, order = logits.softmax(dim=-1).sort(descending=True, stable=True)
            # A word is cut when those before it already hold top_p; the first always stays.
            before = ordered.cumsum(dim=-1, dtype=widest(logits.device)) - ordered
            spare = before >= self.top_p
            logits = logits.masked_fill(spare.scatter(1, order, spare), -torch.inf)
        return logits.softmax(dim=-1)
