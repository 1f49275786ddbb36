"""Beam search: keep the `size` best beginnings, not just one.

    score = log p(words) / ((5 + length) / 6)^α        (Wu et al. 2016, arXiv:1609.08144)

A sentence is done when `size` endings are kept and no live beginning, ending now, would beat the
worst of them. A beam of one is greedy decoding; a beam as wide as the language is exhaustive.
"""

from dataclasses import dataclass

import torch

from saccade.decode.beam_state import BeamState
from saccade.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Beam:
    """How wide to search, and how much longer sentences are favoured; a `SearchMethod`."""

    size: int = 5
    length_penalty: float = 1.0

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ConfigError(f"beam size={self.size} must be at least 1")
        if not 0 <= self.length_penalty < float("inf"):
            raise ConfigError(f"length_penalty={self.length_penalty} must be 0 or more")

    def penalty(self, length: int) -> float:
        """What a sum of log-probabilities over `length` words is divided by."""
        return ((5 + length) / 6) ** self.length_penalty

    def state(self, rows: int, longest: int, end: int, device: torch.device) -> BeamState:
        shape, counts = (rows, self.size), torch.zeros(rows, dtype=torch.long, device=device)
        floats = ("log_p", "ending_log_p", "scores", "done_log_p")
        integers = ("ending_parents", "sizes", "slots")
        return BeamState(
            end=end,
            length_penalty=self.length_penalty,
            time=counts.new_zeros(1),
            limits=counts,
            over=counts.bool(),
            uniforms=torch.zeros(rows, 0, device=device),
            words=counts.new_zeros(rows, longest, self.size),
            parents=counts.new_zeros(rows, longest, self.size),
            ended=counts.new_zeros(shape, dtype=torch.bool),
            **{name: torch.zeros(shape, device=device) for name in floats},
            **{name: counts.new_zeros(shape) for name in integers},
        )
