"""One word after another: the most probable each time, or one drawn by a sampler."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from saccade.blocks.inference.slots import Places
from saccade.decode.protocol import Candidate, Hypothesis
from saccade.decode.sample import Sampler, widest
from saccade.decode.search_state import Expansion, SearchState
from saccade.decode.top import top


@dataclass(kw_only=True)
class GreedyState(SearchState):
    """What each row has said; without a sampler, the most probable words."""

    words: Int[Tensor, "B T"]
    log_p: Float[Tensor, " B"]
    ended: Bool[Tensor, " B"]
    sizes: Int[Tensor, " B"]  # in words, the end included
    sampler: Sampler | None

    def advance(self, logits: Float[Tensor, "R V"]) -> Expansion:
        words, log_p = self.choose(logits)
        self.append(words, log_p)
        return Expansion(words[:, None])

    def advance_at(self, slots: Places, logits: Float[Tensor, "R V"]) -> None:
        from saccade.decode.kernels.advance import advance_rows

        advance_rows(self, slots, *self._choose_at(logits))

    def _choose_at(
        self, logits: Float[Tensor, "R V"]
    ) -> tuple[Int[Tensor, " R"], Float[Tensor, " R"]]:
        """The same as `choose`, by one kernel where it can."""
        if self.sampler is None or self.sampler.cuts:
            return self.choose(logits)
        from saccade.decode.kernels.draw import draw_rows

        return draw_rows(logits, self.uniforms, self.time, self.sampler.divisor)

    def choose(self, logits: Float[Tensor, "R V"]) -> tuple[Int[Tensor, " R"], Float[Tensor, " R"]]:
        """The next words and their log-probabilities."""
        if self.sampler is None:
            return most_probable(logits)
        words = self.sampler(logits, self.uniforms.index_select(1, self.time)[:, 0])
        logits = logits.float()
        return words, logits.gather(1, words[:, None])[:, 0] - logits.logsumexp(dim=-1)

    def append(self, words: Int[Tensor, " B"], log_p: Float[Tensor, " B"]) -> None:
        """Note the next word of every row; rows that are over stay as they are."""
        going = ~self.over
        self.words.index_copy_(1, self.time, words[:, None])
        self.time += 1
        self.log_p += log_p.where(going, 0.0)
        self.sizes += going
        ends = going & (words == self.end)
        self.ended |= ends
        self.over |= ends | (self.limits == self.time)

    def candidates(self, t: int) -> list[list[Candidate]]:
        every = zip(self.words[:, t].tolist(), self.log_p.tolist())
        return [[Candidate(word, 0, p, word == self.end)] for word, p in every]

    def hypotheses(self, rows: Int[Tensor, " B2"], n_best: int) -> list[list[Hypothesis]]:
        sizes, log_p, ended = (x[rows].tolist() for x in (self.sizes, self.log_p, self.ended))
        words = self.words[rows, : max(sizes, default=0)].tolist()
        return [
            [Hypothesis(said[: size - end], p, p, end)]
            for said, size, p, end in zip(words, sizes, log_p, ended)
        ]


@dataclass(frozen=True, kw_only=True)
class Greedy:
    """Implements `SearchMethod`."""

    sampler: Sampler | None = None

    @property
    def size(self) -> int:
        return 1

    def state(self, rows: int, longest: int, end: int, device: torch.device) -> GreedyState:
        zeros = torch.zeros(rows, dtype=torch.long, device=device)
        drawn = 0 if self.sampler is None else longest
        return GreedyState(
            end=end,
            time=torch.zeros(1, dtype=torch.long, device=device),
            limits=zeros,
            over=zeros.bool(),
            words=zeros.new_zeros(rows, longest),
            log_p=torch.zeros(rows, device=device),
            ended=zeros.bool(),
            sizes=zeros.clone(),
            sampler=self.sampler,
            uniforms=torch.zeros(rows, drawn, dtype=widest(device), device=device),
        )


def most_probable(
    logits: Float[Tensor, "R V"],
) -> tuple[Int[Tensor, " R"], Float[Tensor, " R"]]:
    """ŷ = argmax p, and log p(ŷ)."""
    scores, words, total = top(logits, 1)
    return words[:, 0], scores[:, 0] - total
