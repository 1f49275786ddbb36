"""How to decode, in one place: greedy, beam or sampling, from the same few settings."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from jaxtyping import Float, Int
from torch import Tensor

from saccade.decode.beam import Beam
from saccade.decode.captured import CapturedDecoder
from saccade.decode.greedy import Greedy
from saccade.decode.protocol import Decodable, Hypothesis, OnStep, S
from saccade.decode.sample import Sampler, uniforms
from saccade.decode.search import search
from saccade.decode.search_state import SearchMethod
from saccade.errors import ConfigError

LARGEST_BEAM = 1000
SEEDS = 2**63
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
        capture: on a GPU, capture the step once and replay it.
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
        if not -SEEDS <= self.seed < SEEDS:
            raise ConfigError(f"seed={self.seed} must be from {-SEEDS} to {SEEDS - 1}")
        _ = self.method  # beam and sampler refuse what cannot be

    @property
    def method(self) -> SearchMethod:
        """How words are chosen; the seed of draws is not part of it."""
        beam = Beam(size=self.beam, length_penalty=self.length_penalty)
        sampler = Sampler(temperature=self.temperature, top_k=self.top_k, top_p=self.top_p)
        if self.sample or self.beam == 1:
            return Greedy(sampler=sampler if self.sample else None)
        return beam


def decode(
    model: Decodable[S],
    state: S,
    first: Int[Tensor, " B"],
    *,
    limits: Int[Tensor, " B"],
    end: int,
    how: Decoding,
    streams: Sequence[int] | None = None,
    on_step: OnStep | None = None,
    captured: CapturedDecoder | None = None,
) -> list[list[Hypothesis]]:
    """The `n_best` hypotheses of every row, best first; `end` is the word that ends one.

    Rows of the same seed and stream draw by the same numbers; without `streams` each row has its
    own. `captured` holds steps of the same model, which are replayed and say the same.
    """
    table: Float[Tensor, "B T"] | None = None
    if how.sample:
        table = uniforms(how.seed, streams or range(len(first)), int(limits.max()))
    replay = captured if how.capture else None
    run = partial(search, model) if replay is None else replay.search
    found = run(
        state, first, limits=limits, end=end, method=how.method, n_best=how.n_best,
        uniforms=table, on_step=on_step,
    )  # fmt: skip
    if how.beam > 1 and not how.sample:
        return found
    beam = Beam(length_penalty=how.length_penalty)
    return [[_scored(one, beam)] for (one,) in found]


def _scored(one: Hypothesis, beam: Beam) -> Hypothesis:
    """By the words chosen, the end included. Made anew, for `replace` takes three times as long."""
    score = one.log_probability / beam.penalty(len(one.tokens) + one.finished)
    return Hypothesis(one.tokens, score, one.log_probability, one.finished)
