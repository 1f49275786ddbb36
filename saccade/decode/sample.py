"""Drawing the next word at random, more or less boldly."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from saccade.errors import ConfigError

COLDEST = 1e-30


@dataclass(frozen=True, kw_only=True)
class Sampler:
    """Draw from the model's distribution, sharpened and cut.

        p ∝ exp(logits / temperature), restricted to the `top_k` most probable words and to the
        smallest set of words whose probability reaches `top_p`

    `top_k` 0 and `top_p` 1 cut nothing. The generator is passed in and advances with each draw.
    """

    generator: torch.Generator
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        if self.temperature <= 0:
            raise ConfigError(
                f"temperature={self.temperature} must be above 0; for the best word use greedy"
            )
        if self.top_k < 0:
            raise ConfigError(f"top_k={self.top_k} must be 0 (no cut) or more")
        if not 0 < self.top_p <= 1:
            raise ConfigError(f"top_p={self.top_p} must be above 0 and at most 1")

    def __call__(self, logits: Float[Tensor, "R V"]) -> Int[Tensor, " R"]:
        logits = logits.float()
        # The best word at 0, and no colder than single precision can divide by: never ∞ − ∞.
        logits = (logits - logits.amax(dim=-1, keepdim=True)) / max(self.temperature, COLDEST)
        if 0 < self.top_k < logits.shape[-1]:
            least = logits.topk(self.top_k).values[:, -1:]
            logits = logits.masked_fill(logits < least, -torch.inf)
        if self.top_p < 1:
            ordered, order = logits.softmax(dim=-1).sort(descending=True)
            # A word is cut when those before it already hold top_p; the first always stays.
            spare = ordered.cumsum(dim=-1) - ordered >= self.top_p
            logits = logits.masked_fill(spare.scatter(1, order, spare), -torch.inf)
        p = logits.softmax(dim=-1)
        return torch.multinomial(p, 1, generator=self.generator)[:, 0]
