"""How to decode, in one place: greedy, beam or sampling, from the same few settings."""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Int
from torch import Tensor

from saccade.attention.look.looking import Trace
from saccade.decode.beam import Beam, search
from saccade.decode.captured import Captured
from saccade.decode.greedy import best, extend
from saccade.decode.protocol import Decodable, Hypothesis, OnStep, S
from saccade.decode.sample import Sampler
from saccade.errors import ConfigError

LARGEST_BEAM = 1000
AnyPrecision = Literal["auto", "float32", "bfloat16", "int8"]


@dataclass(frozen=True, kw_only=True)
class Decoding:
    """How the next word is chosen.

    Args:
        beam: hypotheses kept at each step; 1 is greedy.
        length_penalty: 0 ranks by probability alone, more favours longer sentences.
        n_best: how many of the beam to give back.
        sample: draw each word at random instead of searching.
        temperature: below 1 draws more carefully, above 1 more boldly.
        top_k: draw only among this many best words; 0 among all.
        top_p: draw only among the best words that together reach this probability.
        seed: of the draws.
        precision: of weights and products; auto is bfloat16 on a GPU and float32 on a CPU, where
            int8 is faster still.
        capture: on a GPU, record the step of a search once and replay it.
    """

    beam: int = 5
    length_penalty: float = 1.0
    n_best: int = 1
    sample: bool = False
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0
    precision: AnyPrecision = "auto"
    capture: bool = True

    def __post_init__(self) -> None:
        if not 1 <= self.beam <= LARGEST_BEAM:
            raise ConfigError(f"beam={self.beam} must be from 1 to {LARGEST_BEAM}")
        if not 1 <= self.n_best <= self.beam:
            raise ConfigError(f"n_best={self.n_best} must be from 1 to beam={self.beam}")
        if self.sample and self.n_best > 1:
            raise ConfigError("n_best needs a beam; to sample several, ask several times")
        Beam(size=self.beam, length_penalty=self.length_penalty)
        self.sampler(torch.device("cpu"))

    def sampler(self, device: torch.device) -> Sampler:
        """A fresh source of draws: the same seed gives the same words."""
        return Sampler(
            generator=torch.Generator(device).manual_seed(self.seed),
            temperature=self.temperature,
            top_k=self.top_k,
            top_p=self.top_p,
        )


def decode(
    model: Decodable[S],
    state: S,
    first: Int[Tensor, " B"],
    *,
    limits: Int[Tensor, " B"],
    how: Decoding,
    sampler: Sampler | None = None,
    trace: Trace | None = None,
    on_step: OnStep | None = None,
    captured: Captured | None = None,
) -> list[list[Hypothesis]]:
    """The `n_best` hypotheses of every row, best first.

    `captured` holds steps of the same model. They are replayed when it is searched without anyone
    looking on, and say the same.
    """
    watch: dict[str, Any] = {"trace": trace, "on_step": on_step}
    beam = Beam(size=how.beam, length_penalty=how.length_penalty)
    alone = trace is None and on_step is None and not how.sample
    if captured is not None and how.capture and alone:
        if how.beam > 1:
            return captured.search(state, first, limits, beam, how.n_best)
        found = captured.greedy(state, first, limits)
    elif how.sample:
        chosen = sampler or how.sampler(first.device)
        found = extend(model, state, first, limits=limits, choose=chosen, **watch)
    elif how.beam == 1:
        found = extend(model, state, first, limits=limits, choose=best, **watch)
    else:
        return search(model, state, first, limits=limits, beam=beam, n_best=how.n_best, **watch)
    return [[_scored(one, beam)] for one in found]


def _scored(one: Hypothesis, beam: Beam) -> Hypothesis:
    """By the words chosen, the end included. Made anew, for `replace` takes three times as long."""
    score = one.log_probability / beam.penalty(len(one.tokens) + one.finished)
    return Hypothesis(one.tokens, score, one.log_probability, one.finished, one.attention)
