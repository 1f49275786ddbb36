"""Attention rollout from the words told down to what was read: a picture's cells, or a source.

Words that look back mix what each other know of it, and words that look across add more.
"""

from collections.abc import Generator
from contextlib import contextmanager

import torch
from jaxtyping import Float
from torch import Tensor, nn

from saccade.attention.axes import Axis
from saccade.attention.rollout import one_hot, read, roll
from saccade.attention.view import View
from saccade.attention.watching import sites, watching
from saccade.errors import ConfigError

DECODER = "decoder."  # where the names of sites begin at which words look


class RolloutAcross:
    """What each word was told from; `mixture` is (B, T, buckets).

        C ← ½ C + ½ meanₙ(Aₙ) C, where inputs look at one another, from C₀ = their buckets
        M ← ½ M + ½ meanₙ(Aₙ) M, where words look back, from M₀ = 0
        M ← ½ M + ½ meanₙ(Aₙ) C, where words look across

    What a row lacks to one came from the words themselves. `axis` says what the inputs are: of a
    ViT, the class token before the patches. Captions end to end are rows of one long text.
    """

    def __init__(self, model: nn.Module, buckets: int) -> None:
        self.buckets, self._sites = buckets, sites(model)
        self.axis: Axis | None = None
        self.inputs: Float[Tensor, "B S G"] | None = None
        self.words: Float[Tensor, "B T G"] | None = None

    @property
    def mixture(self) -> Float[Tensor, "B T G"]:
        if self.words is None:
            raise ConfigError("no word has looked across yet: run the model inside the block")
        return self.words

    @torch.no_grad()
    def record(self, name: str, seen: View | Float[Tensor, "B N T S"]) -> None:
        """Mix once more; sites come in the order in which layers run."""
        if name.startswith(DECODER) and name.endswith("cross"):
            self._look_across(name, seen)
        elif name.startswith(DECODER):
            if self.words is not None:  # before, words know nothing of the inputs
                self.words = roll(seen, self.words)
        else:
            self.inputs = roll(seen, self._known(name, seen))

    def _look_across(self, name: str, seen: View | Float[Tensor, "B N T S"]) -> None:
        told = 0.5 * read(seen, self._known(name, seen))
        self.words = told if self.words is None else 0.5 * self.words + told

    def _known(self, name: str, seen: View | Float[Tensor, "B N T S"]) -> Float[Tensor, "B S G"]:
        """The inputs' mixture at the keys that are looked at."""
        keys = seen.shape[-1]
        if self.inputs is None:
            self.axis = self._sites[name].columns
            self.inputs = one_hot(seen, self.buckets)
        known, batch = self.inputs, seen.shape[0]
        if batch < len(known):  # those of several pictures lie end to end
            known = known[:, known.shape[1] - keys // len(known) :].flatten(0, 1)[None]
        return known[:, known.shape[1] - keys :]  # class tokens come first and may be left behind


@contextmanager
def rolling_across(
    model: nn.Module, *, buckets: int = 1024
) -> Generator[RolloutAcross, None, None]:
    """Follow what words are told from while the block runs one pass over all of them."""
    rollout = RolloutAcross(model, buckets)
    with watching(model, rollout.record):
        yield rollout
