"""One word after another, each chosen from the scores by a function: the best, or a sample."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, fields, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from saccade.attention.look.looking import Trace
from saccade.data.vocabulary import END
from saccade.decode.beams import Beams
from saccade.decode.leaving import enough_gone
from saccade.decode.looks import Looks
from saccade.decode.protocol import Candidate, Decodable, Hypothesis, OnStep, S
from saccade.decode.top import top

Choose = Callable[[Float[Tensor, "R V"]], Int[Tensor, " R"]]


def best(logits: Float[Tensor, "R V"]) -> Int[Tensor, " R"]:
    """The most probable word: greedy decoding."""
    return logits.argmax(dim=-1)


@dataclass
class Lines:
    """What each row has said; all tensors keep shape and place, so that a step may be captured."""

    time: Int[Tensor, " 1"]
    limits: Int[Tensor, " B"]
    over: Bool[Tensor, " B"]
    words: Int[Tensor, "B T"]
    log_p: Float[Tensor, " B"]
    ended: Bool[Tensor, " B"]
    sizes: Int[Tensor, " B"]  # in words, the end included

    @classmethod
    def fresh(cls, limits: Int[Tensor, " B"], longest: int) -> "Lines":
        """Nothing said yet."""
        zeros = torch.zeros_like(limits)
        return cls(
            time=torch.zeros(1, dtype=torch.long, device=limits.device),
            limits=limits.clone(),
            over=limits <= 0,
            words=limits.new_zeros(len(limits), longest),
            log_p=torch.zeros(len(limits), device=limits.device),
            ended=zeros.bool(),
            sizes=zeros,
        )

    def begin(self, limits: Int[Tensor, " B"]) -> None:
        """Forget everything, for a batch that may be smaller."""
        for x in (self.time, self.limits, self.log_p, self.ended, self.sizes):
            x.zero_()
        self.limits[: len(limits)] = limits
        self.over.copy_(self.limits <= 0)

    def select(self, rows: Int[Tensor, " B2"]) -> "Lines":
        """Some of the rows."""
        kept = {f.name: getattr(self, f.name)[rows] for f in fields(self) if f.name != "time"}
        return Lines(time=self.time, **kept)

    def advance(self, words: Int[Tensor, " B"], log_p: Float[Tensor, " B"]) -> None:
        """Note the next word of every row; rows that are over stay as they are."""
        going = ~self.over
        self.words.index_copy_(1, self.time, words[:, None])
        self.time += 1
        self.log_p += log_p.where(going, 0.0)
        self.sizes += going
        ends = going & (words == END)
        self.ended |= ends
        self.over |= ends | (self.limits == self.time)


def chosen(
    logits: Float[Tensor, "R V"], choose: Choose
) -> tuple[Int[Tensor, " R"], Float[Tensor, " R"]]:
    """The next words and their log-probabilities."""
    if choose is best:
        scores, words, total = top(logits, 1)
        return words[:, 0], scores[:, 0] - total
    words, logits = choose(logits), logits.float()
    return words, logits.gather(1, words[:, None])[:, 0] - logits.logsumexp(dim=-1)


@torch.inference_mode()
def extend(
    model: Decodable[S],
    state: S,
    first: Int[Tensor, " B"],
    *,
    limits: Int[Tensor, " B"],
    choose: Choose = best,
    trace: Trace | None = None,
    on_step: OnStep | None = None,
) -> list[Hypothesis]:
    """Decode until each row has ended or reached its limit; finished rows leave the batch."""
    rows, longest = list(range(len(first))), int(limits.max())
    lines = Lines.fresh(limits.to(first.device), longest)
    beams, looks, last = Beams.of(state, len(first), 1, first.device), Looks(trace), first
    found, trails = dict[int, Hypothesis](), [list[int]() for _ in rows]
    for _ in range(longest):
        logits, beams.state = model.step(last, beams.state)
        looks.take()
        for place, row in enumerate(rows):
            trails[row].append(place)
        last, log_p = chosen(logits, choose)
        told = [] if on_step is None else _told(rows, lines.over, last, lines.log_p + log_p)
        lines.advance(last, log_p)
        if on_step is not None:
            given_up = on_step(dict(told))
            lines.over[[i for i, row in enumerate(rows) if row in given_up]] = True
        over = lines.over.tolist()
        if not enough_gone(over):
            continue
        gone, stay = (_places(over, which, first.device) for which in (True, False))
        for i, one in zip(gone.tolist(), hypotheses(lines.select(gone))):
            attention = looks.along(trails[rows[i]][: len(one.tokens) + one.finished])
            found[rows[i]] = replace(one, attention=attention)
        if len(stay) == 0:
            break
        beams.keep(stay)
        rows, lines, last = [rows[i] for i in stay.tolist()], lines.select(stay), last[stay]
    return [found[row] for row in range(len(first))]


def hypotheses(lines: Lines) -> list[Hypothesis]:
    """What was said, as lists."""
    sizes, log_p, ended = (x.tolist() for x in (lines.sizes, lines.log_p, lines.ended))
    words = lines.words[:, : max(sizes, default=0)].tolist()
    return [
        Hypothesis(said[: size - end], p, p, end)
        for said, size, p, end in zip(words, sizes, log_p, ended)
    ]


def _places(over: list[bool], which: bool, device: torch.device) -> Int[Tensor, " B"]:
    places = [i for i, one in enumerate(over) if one is which]
    return torch.tensor(places, dtype=torch.long, device=device)


def _told(
    rows: Collection[int],
    over: Bool[Tensor, " B"],
    words: Int[Tensor, " B"],
    log_p: Float[Tensor, " B"],
) -> list[tuple[int, list[Candidate]]]:
    """What was chosen for each row that is not over."""
    every = zip(rows, over.tolist(), words.tolist(), log_p.tolist())
    return [(row, [Candidate(word, 0, p, word == END)]) for row, done, word, p in every if not done]
