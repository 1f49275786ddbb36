"""What a beam search knows of its sentences: who lives, who ended, and who came from whom.

No hypothesis is copied when beams change places. Each step notes the word and the parent of every
beam, and what was said is found by following parents back from the end. All tensors keep their
shape and place while steps go by, and the time is one of them, so that a step may be captured.
"""

from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from saccade.data.vocabulary import END
from saccade.decode.top import Best

UNFINISHED = 1e9  # what ranks those that were cut off behind those that ended


class Grown(NamedTuple):
    """The best continuations of a step in falling order, and which of them go on as beams."""

    log_p: Float[Tensor, "B c"]
    parents: Int[Tensor, "B c"]
    words: Int[Tensor, "B c"]
    live: Int[Tensor, "B k"]

    @property
    def next_words(self) -> Int[Tensor, "B k"]:
        return self.words.gather(1, self.live)

    @property
    def next_parents(self) -> Int[Tensor, "B k"]:
        return self.parents.gather(1, self.live)


class Found(NamedTuple):
    """Hypotheses of some sentences, best first; −∞ is an empty place. Everything on the CPU."""

    scores: Float[Tensor, "B k"]
    log_p: Float[Tensor, "B k"]
    ended: Bool[Tensor, "B k"]
    sizes: Int[Tensor, "B k"]
    words: Int[Tensor, "B k T"]
    rows: Int[Tensor, "B k T"]  # the beam that each word was said by


@dataclass
class Book:
    """B sentences with k beams each, and the k best of those that are over."""

    time: Int[Tensor, " 1"]
    limits: Int[Tensor, " B"]
    over: Bool[Tensor, " B"]
    log_p: Float[Tensor, "B k"]
    words: Int[Tensor, "B T k"]
    parents: Int[Tensor, "B T k"]
    scores: Float[Tensor, "B k"]
    done_log_p: Float[Tensor, "B k"]
    ended: Bool[Tensor, "B k"]
    sizes: Int[Tensor, "B k"]  # how many words, the end included
    slots: Int[Tensor, "B k"]  # the beam that said the last of them

    @classmethod
    def fresh(cls, limits: Int[Tensor, " B"], size: int, longest: int) -> "Book":
        """Nothing said yet."""
        shape, device = (len(limits), size), limits.device
        history = torch.zeros(len(limits), longest, size, dtype=torch.long, device=device)
        zeros = torch.zeros(shape, dtype=torch.long, device=device)
        book = cls(
            time=torch.zeros(1, dtype=torch.long, device=device),
            limits=limits.clone(),
            over=limits <= 0,
            log_p=torch.empty(shape, device=device),
            words=history,
            parents=history.clone(),
            scores=torch.empty(shape, device=device),
            done_log_p=torch.empty(shape, device=device),
            ended=zeros.bool(),
            sizes=zeros,
            slots=zeros.clone(),
        )
        book.begin(limits)
        return book

    def begin(self, limits: Int[Tensor, " B"]) -> None:
        """Forget everything, for a batch that may be smaller; at first there is one beginning."""
        for x in (self.time, self.limits, self.ended, self.sizes, self.slots):
            x.zero_()
        self.limits[: len(limits)] = limits
        self.over.copy_(self.limits <= 0)
        for x in (self.log_p, self.scores, self.done_log_p):
            x.fill_(-torch.inf)
        self.log_p[:, 0] = 0.0

    def select(self, sentences: Int[Tensor, " B2"]) -> "Book":
        """Some of the sentences."""
        kept = {f.name: getattr(self, f.name)[sentences] for f in fields(self) if f.name != "time"}
        return Book(time=self.time, **kept)

    def advance(self, best: Best, penalty: float) -> Grown:
        """One word further, by the best continuations: twice as many as live, for some will end."""
        ends = best.words == END
        # Those that go on before those that end, both in their order.
        live = ends.to(torch.uint8).argsort(dim=1, stable=True)[:, : self.log_p.shape[1]]
        grown = Grown(*best, live)
        live_ends = ends.gather(1, grown.live)
        self.log_p.copy_(grown.log_p.gather(1, grown.live).masked_fill_(live_ends, -torch.inf))
        self.words.index_copy_(1, self.time, grown.next_words[:, None])
        self.parents.index_copy_(1, self.time, grown.next_parents[:, None])
        self.time += 1
        divisor = ((5 + self.time) / 6) ** penalty
        at_limit = self.limits == self.time
        self._collect(grown, ends, at_limit, divisor)
        self.over |= at_limit | (self.scores[:, -1] >= self.log_p[:, 0] / divisor)
        return grown

    def _collect(
        self,
        grown: Grown,
        ends: Bool[Tensor, "B c"],
        at_limit: Bool[Tensor, " B"],
        divisor: Float[Tensor, " 1"],
    ) -> None:
        """Of those kept, those that end here, and at the limit those cut off: the best."""
        size = self.log_p.shape[1]
        ends = ends[:, :size] & ~self.over[:, None]
        cut = (at_limit & ~self.over)[:, None].expand(-1, size)
        log_p = torch.cat([self.done_log_p, grown.log_p[:, :size], self.log_p], dim=1)
        scores = log_p / divisor
        fresh = torch.cat([ends, cut], dim=1)
        scores[:, size:].masked_fill_(~fresh, -torch.inf)
        scores[:, :size] = self.scores
        ended = torch.cat([self.ended, fresh & ends.repeat(1, 2)], dim=1)
        ended[:, 2 * size :] = False
        slots = torch.arange(size, device=log_p.device).expand(len(log_p), -1)
        slots = torch.cat([self.slots, grown.parents[:, :size], slots], dim=1)
        sizes = torch.cat([self.sizes, self.time.expand(len(log_p), 2 * size)], dim=1)
        rank = torch.where(ended, scores, scores - UNFINISHED)
        best = rank.argsort(dim=1, descending=True, stable=True)[:, :size]
        for kept, new in (
            (self.scores, scores),
            (self.done_log_p, log_p),
            (self.ended, ended),
            (self.sizes, sizes),
            (self.slots, slots),
        ):
            kept.copy_(new.gather(1, best))

    def found(self, sentences: Int[Tensor, " B2"], n_best: int) -> Found:
        """What is known of sentences that are over: every word by following parents back."""
        best = (self.scores, self.done_log_p, self.ended, self.sizes, self.slots)
        scores, log_p, ended, sizes, slots = (x[sentences, :n_best].cpu() for x in best)
        longest = int(sizes.max()) if sizes.numel() else 0
        history = (self.words, self.parents)
        words, parents = (x[sentences, :longest].cpu().numpy() for x in history)
        said, rows = _followed(words, parents, ended.numpy(), sizes.numpy(), slots.numpy())
        return Found(scores, log_p, ended, sizes, torch.from_numpy(said), torch.from_numpy(rows))


def _followed(words: Any, parents: Any, ended: Any, sizes: Any, slots: Any) -> tuple[Any, Any]:
    """Words and the beams that said them, from the last to the first.

    In numpy, whose small operations start sooner than torch's. The end itself is no beam: it was
    said by the parent that `slots` holds.
    """
    longest, sentence = words.shape[1], np.arange(len(words))[:, None]
    said = np.full((*slots.shape, longest), END)
    rows = np.zeros_like(said)
    spoken = sizes - ended
    for t in range(longest - 1, -1, -1):
        inside = t < spoken
        said[:, :, t] = np.where(inside, words[sentence, t, slots], END)
        slots = np.where(inside, parents[sentence, t, slots], slots)
        rows[:, :, t] = slots
    return said, rows
