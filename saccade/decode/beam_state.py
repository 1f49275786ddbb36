"""What a beam search knows of its sentences: who lives, who ended, and who came from whom.

No hypothesis is copied when beams change places. Each step notes the word and the parent of every
beam, and what was said is found by following parents back from the end.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from saccade.blocks.inference.slots import Places
from saccade.decode.protocol import Candidate, Hypothesis
from saccade.decode.search_state import Expansion, SearchState
from saccade.decode.top import Continuations, best_continuations, top

UNFINISHED = 1e9  # what ranks those that were cut off behind those that ended
MOST_IN_KERNEL = 8  # beams that one kernel advances


@dataclass(kw_only=True)
class BeamState(SearchState):
    """B sentences with k beams each, and the k best of those that are done."""

    length_penalty: float
    log_p: Float[Tensor, "B k"]
    words: Int[Tensor, "B T k"]
    parents: Int[Tensor, "B T k"]
    ending_log_p: Float[Tensor, "B k"]  # of the k best continuations, those that ended just now
    ending_parents: Int[Tensor, "B k"]
    scores: Float[Tensor, "B k"]
    done_log_p: Float[Tensor, "B k"]
    ended: Bool[Tensor, "B k"]
    sizes: Int[Tensor, "B k"]  # how many words, the end included
    slots: Int[Tensor, "B k"]  # the beam that said the last of them

    def reset(self) -> None:
        """At first there is one beginning."""
        super().reset()
        for x in (self.log_p, self.scores, self.done_log_p):
            x.fill_(-torch.inf)
        self.log_p[:, 0] = 0.0

    def advance(self, logits: Float[Tensor, "R V"]) -> Expansion:
        # Twice as many as live, for some will end.
        return self.expand(best_continuations(logits, self.log_p, 2 * self.log_p.shape[1]))

    def advance_at(self, slots: Places, logits: Float[Tensor, "R V"]) -> None:
        beams = self.log_p.shape[1]
        if beams > MOST_IN_KERNEL:
            slots.go_on(*self.advance(logits))
        else:
            from saccade.decode.kernels.advance import advance_beams

            advance_beams(self, slots, top(logits, 2 * beams))

    def expand(self, best: Continuations) -> Expansion:
        """One word further, by the best continuations."""
        ends = best.words == self.end
        # Those that go on before those that end, both in their order.
        live = ends.to(torch.uint8).argsort(dim=1, stable=True)[:, : self.log_p.shape[1]]
        log_p, parents, words, live_ends = (x.gather(1, live) for x in (*best, ends))
        self.log_p.copy_(log_p.masked_fill_(live_ends, -torch.inf))
        self.words.index_copy_(1, self.time, words[:, None])
        self.parents.index_copy_(1, self.time, parents[:, None])
        self.time += 1
        divisor = ((5 + self.time) / 6) ** self.length_penalty
        at_limit = self.limits == self.time
        self._collect(best, ends, at_limit, divisor)
        self.over |= at_limit | (self.scores[:, -1] >= self.log_p[:, 0] / divisor)
        return Expansion(words, parents)

    def _collect(
        self,
        best: Continuations,
        ends: Bool[Tensor, "B c"],
        at_limit: Bool[Tensor, " B"],
        divisor: Float[Tensor, " 1"],
    ) -> None:
        """Of those kept, those that end here, and at the limit those cut off: the best."""
        size = self.log_p.shape[1]
        ends = ends[:, :size] & ~self.over[:, None]
        self.ending_log_p.copy_(best.log_p[:, :size].masked_fill(~ends, -torch.inf))
        self.ending_parents.copy_(best.parents[:, :size])
        cut = (at_limit & ~self.over)[:, None].expand(-1, size)
        log_p = torch.cat([self.done_log_p, best.log_p[:, :size], self.log_p], dim=1)
        scores = log_p / divisor
        fresh = torch.cat([ends, cut], dim=1)
        scores[:, size:].masked_fill_(~fresh, -torch.inf)
        scores[:, :size] = self.scores
        ended = torch.cat([self.ended, fresh & ends.repeat(1, 2)], dim=1)
        ended[:, 2 * size :] = False
        slots = torch.arange(size, device=log_p.device).expand(len(log_p), -1)
        slots = torch.cat([self.slots, best.parents[:, :size], slots], dim=1)
        sizes = torch.cat([self.sizes, self.time.expand(len(log_p), 2 * size)], dim=1)
        rank = torch.where(ended, scores, scores - UNFINISHED)
        order = rank.argsort(dim=1, descending=True, stable=True)[:, :size]
        for kept, new in zip(self._done, (scores, log_p, ended, sizes, slots)):
            kept.copy_(new.gather(1, order))

    def candidates(self, t: int) -> list[list[Candidate]]:
        beams = self.log_p.shape[1]
        log_p = torch.cat([self.log_p, self.ending_log_p], dim=1)
        words = F.pad(self.words[:, t], (0, beams), value=self.end)
        parents = torch.cat([self.parents[:, t], self.ending_parents], dim=1)
        return [
            [Candidate(w, i, p, w == self.end) for w, i, p in zip(*row) if p > -torch.inf]
            for row in zip(*torch.stack([words, parents]).tolist(), log_p.tolist())
        ]

    def give_up(self, places: list[int]) -> None:
        """Nothing that was found remains."""
        super().give_up(places)
        self.scores[places] = -torch.inf

    def hypotheses(self, rows: Int[Tensor, " B2"], n_best: int) -> list[list[Hypothesis]]:
        """Empty places, whose score is −∞, are left out."""
        scores, log_p, ended, sizes, slots = (x[rows, :n_best].cpu().numpy() for x in self._done)
        longest, lengths = int(sizes.max(initial=0)), sizes - ended
        words, parents = (x[rows, :longest].cpu().numpy() for x in (self.words, self.parents))
        every = (_follow_back(words, parents, lengths, slots), lengths, scores, log_p, ended)
        return [
            [
                Hypothesis(words[:length], score, p, end)
                for words, length, score, p, end in zip(*row)
                if score > -torch.inf
            ]
            for row in zip(*(x.tolist() for x in every))
        ]

    @property
    def _done(self) -> tuple[Tensor, ...]:
        """What is kept of hypotheses that are done."""
        return self.scores, self.done_log_p, self.ended, self.sizes, self.slots


def _follow_back(words: Any, parents: Any, lengths: Any, slots: Any) -> Any:
    """The words of every hypothesis, from the last to the first.

    In numpy, whose small operations start sooner than torch's. The end itself is no beam: it was
    said by the parent that `slots` holds.
    """
    longest, sentence = words.shape[1], np.arange(len(words))[:, None]
    said = np.zeros((*slots.shape, longest), dtype=words.dtype)
    for t in range(longest - 1, -1, -1):
        said[:, :, t] = words[sentence, t, slots]
        slots = np.where(t < lengths, parents[sentence, t, slots], slots)
    return said
