"""One word after another, each chosen from the scores by a function: the best, or a sample."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from saccade.attention.looking import Trace
from saccade.data.vocabulary import END, PAD
from saccade.decode.protocol import Decodable, Hypothesis, S

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
) -> list[Hypothesis]:
    """Decode until each row has ended or reached its limit; finished rows leave the batch."""
    rows = torch.arange(len(first), device=first.device)  # which input each live row belongs to
    tokens = first.new_full((len(first), int(limits.max())), PAD)
    totals = torch.zeros(len(first), device=first.device)
    ended = torch.zeros(len(first), dtype=torch.bool, device=first.device)
    looks = _Looks(trace)
    limits, last = limits.to(first.device), first
    for t in range(tokens.shape[1]):
        logits, state = model.step(last, state)
        last = choose(logits)
        log_p = logits.float().log_softmax(dim=-1).gather(1, last[:, None])[:, 0]
        tokens[rows, t] = last
        totals[rows] += log_p
        looks.take(rows)
        ended[rows] = last == END
        alive = (last != END) & (limits[rows] > t + 1)
        if not alive.all():
            keep = alive.nonzero()[:, 0]
            if len(keep) == 0:
                break
            rows, last, state = rows[keep], last[keep], state.select(keep)
    said = [row[:limit] for row, limit in zip(tokens.tolist(), limits.tolist())]
    return [
        _hypothesis(row, total, end, looks.of(i))
        for i, (row, total, end) in enumerate(zip(said, totals.tolist(), ended.tolist()))
    ]


def _hypothesis(
    row: list[int], total: float, ended: bool, attention: dict[str, Tensor]
) -> Hypothesis:
    words = row[: row.index(END)] if ended else row
    return Hypothesis(words, total, total, ended, attention)


class _Looks:
    """Attention of every step, with the rows that took it."""

    def __init__(self, trace: Trace | None) -> None:
        self._trace = trace
        self._steps: list[tuple[list[int], dict[str, Float[Tensor, "R N S"]]]] = []

    def take(self, rows: Int[Tensor, " R"]) -> None:
        if self._trace is not None:
            seen = {site: calls[-1][:, :, -1] for site, calls in self._trace.take().items()}
            self._steps.append((rows.tolist(), {site: w.cpu() for site, w in seen.items()}))

    def of(self, row: int) -> dict[str, Float[Tensor, "N T S"]]:
        mine = [
            {site: weights[rows.index(row)] for site, weights in seen.items()}
            for rows, seen in self._steps
            if row in rows
        ]
        return {
            site: stack_rows([step[site] for step in mine]) for site in (mine[0] if mine else {})
        }


def stack_rows(rows: list[Float[Tensor, "N _"]]) -> Float[Tensor, "N T S"]:
    """One row of attention per word; a self-attention row is shorter the earlier it was taken."""
    widest = max(row.shape[-1] for row in rows)
    padded = [torch.nn.functional.pad(row, (0, widest - row.shape[-1])) for row in rows]
    return torch.stack(padded, dim=1)
