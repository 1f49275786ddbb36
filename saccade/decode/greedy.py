"""One word after another, each chosen from the scores by a function: the best, or a sample."""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from saccade.attention.looking import Trace
from saccade.data.vocabulary import END, PAD
from saccade.decode.looks import Looks
from saccade.decode.protocol import Candidate, Decodable, Hypothesis, OnStep, S

Choose = Callable[[Float[Tensor, "R V"]], Int[Tensor, " R"]]


def best(logits: Float[Tensor, "R V"]) -> Int[Tensor, " R"]:
    """The most probable word: greedy decoding."""
    return logits.argmax(dim=-1)


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
    rows = torch.arange(len(first), device=first.device)  # which input each live row belongs to
    tokens = first.new_full((len(first), int(limits.max())), PAD)
    trails = torch.zeros_like(tokens)
    totals = torch.zeros(len(first), device=first.device)
    ended = torch.zeros(len(first), dtype=torch.bool, device=first.device)
    lengths = torch.zeros_like(first)  # in words, the end included
    looks = Looks(trace)
    limits, last = limits.to(first.device), first
    for t in range(tokens.shape[1]):
        logits, state = model.step(last, state)
        looks.take()
        last = choose(logits)
        totals[rows] += logits.float().log_softmax(dim=-1).gather(1, last[:, None])[:, 0]
        tokens[rows, t] = last
        trails[rows, t] = torch.arange(len(rows), device=rows.device)
        lengths[rows] = t + 1
        ended[rows] = last == END
        alive = (last != END) & (limits[rows] > t + 1)
        if on_step is not None:
            alive &= ~_unwanted(on_step, rows, last, totals)
        if not alive.all():
            keep = alive.nonzero()[:, 0]
            if len(keep) == 0:
                break
            rows, last, state = rows[keep], last[keep], state.select(keep)
    found = zip(tokens.tolist(), trails.tolist(), lengths.tolist(), totals.tolist(), ended.tolist())
    return [
        Hypothesis(row[: size - end], total, total, end, looks.along(trail[:size]))
        for row, trail, size, total, end in found
    ]


def _unwanted(
    on_step: OnStep, rows: Int[Tensor, " R"], last: Int[Tensor, " R"], totals: Float[Tensor, " B"]
) -> Bool[Tensor, " R"]:
    """Tell what was chosen, and hear whose rows are to be given up."""
    words = zip(rows.tolist(), last.tolist(), totals[rows].tolist())
    given_up = on_step({row: [Candidate(word, 0, p, word == END)] for row, word, p in words})
    return torch.isin(rows, torch.tensor(list(given_up), dtype=rows.dtype, device=rows.device))
