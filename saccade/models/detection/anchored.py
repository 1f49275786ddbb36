"""Queries that are boxes: what was learnt since DETR about finding objects with little data.

A query of DETR must learn from scratch where to look. Here it is a box from the start, and each
layer mends the one before it (Liu et al. 2022, DAB-DETR, arXiv:2201.12329). Attention is biased
towards cells by where they lie to the box's edges (Lin et al. 2023, arXiv:2308.01904), and the
first boxes may be those cells of the image that look most like an object (Zhu et al. 2021,
arXiv:2010.04159; Zhang et al. 2023, arXiv:2203.03605).
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from saccade.attention.kernels.train.linear import Linear
from saccade.blocks.positions import sinusoids
from saccade.data.boxes import to_corners
from saccade.models.detection.heads import Mlp, exactly

NEAREST = 1e-5  # a share is kept so far from 0 and 1 that its logit stays finite
FINEST = 8.0  # the log-scale of distances tells them apart down to an eighth of an image
FIRST_SIZE = 0.1  # of the box around a cell, before anything is known of its object


def to_logits(shares: Float[Tensor, "*batch 4"]) -> Float[Tensor, "*batch 4"]:
    """The inverse of the sigmoid."""
    return shares.clamp(NEAREST, 1 - NEAREST).logit()


class BoxPlaces(nn.Module):
    """Where a query looks: sines of its box's four numbers, and an MLP.

    p = MLP([sinusoids(2π cx); sinusoids(2π cy); sinusoids(2π w); sinusoids(2π h)])
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.mlp = Mlp(2 * width, width, width, layers=2)
        self.each = width // 2

    def forward(self, boxes: Float[Tensor, "B Q 4"]) -> Float[Tensor, "B Q D"]:
        with exactly(boxes) as exact:
            angles = (2 * math.pi * exact).flatten()
            return self.mlp(sinusoids(angles, self.each).unflatten(0, boxes.shape).flatten(2))


class BoxBias(nn.Module):
    """Scores of cells by where they lie to the edges of a query's box, for each head.

        B(i, j) = MLP_y(Δtop, Δbottom) + MLP_x(Δleft, Δright)        Δ on a log scale

    Rows and columns are scored by themselves, so there are h + w values for a box, not h × w.
    """

    def __init__(self, heads: int, hidden: int = 64) -> None:
        super().__init__()
        self.of_rows, self.of_columns = (Mlp(2, hidden, heads, layers=2) for _ in range(2))

    def forward(
        self,
        boxes: Float[Tensor, "B Q 4"],
        down: Float[Tensor, "#B h"],
        across: Float[Tensor, "#B w"],
    ) -> Float[Tensor, "B N Q cells"]:
        with exactly(to_corners(boxes)[..., None]) as edges:
            left, top, right, bottom = edges.unbind(dim=2)  # (B, Q, 1) each
            rows = self.of_rows(_logarithmic(down[:, None], top, bottom))  # (B, Q, h, N)
            columns = self.of_columns(_logarithmic(across[:, None], left, right))  # (B, Q, w, N)
        return (rows[:, :, :, None] + columns[:, :, None]).flatten(2, 3).permute(0, 3, 1, 2)


def _logarithmic(
    places: Float[Tensor, "#B 1 n"], first: Float[Tensor, "B Q 1"], last: Float[Tensor, "B Q 1"]
) -> Float[Tensor, "B Q n 2"]:
    """How far each place lies from two edges; near ones are told apart more finely."""
    apart = torch.stack([places - first, places - last], dim=-1)
    return apart.sign() * (apart.abs() * FINEST + 1).log2() / math.log2(FINEST)


class Proposed(NamedTuple):
    """The cells that look most like objects: their scores, and a box for each."""

    scores: Float[Tensor, "B Q C"]
    boxes: Float[Tensor, "B Q 4"]


class Proposals(nn.Module):
    """Every cell says what it may show, and where; the best become the first boxes.

    box = σ(logit(cell, size) + MLP(z))        z = norm(W memory)
    """

    def __init__(self, width: int, scores: int) -> None:
        super().__init__()
        self.project, self.norm = Linear(width, width), nn.LayerNorm(width)
        self.to_scores, self.to_boxes = nn.Linear(width, scores), Mlp(width, width, 4, layers=3)

    def forward(
        self,
        memory: Float[Tensor, "B cells D"],
        within: Bool[Tensor, "B cells"] | None,
        down: Float[Tensor, "#B h"],
        across: Float[Tensor, "#B w"],
        queries: int,
    ) -> Proposed:
        with exactly(self.norm(self.project(memory))) as z:
            return self._best(z, within, _cells(down, across).to(z), queries)

    def _best(
        self,
        z: Float[Tensor, "B cells D"],
        within: Bool[Tensor, "B cells"] | None,
        cells: Float[Tensor, "#B cells 4"],
        queries: int,
    ) -> Proposed:
        scores = self.to_scores(z)  # (B, cells, C)
        likely = scores.detach().amax(dim=-1)
        if within is not None:
            likely = likely.masked_fill(~within, -torch.inf)
        best = likely.topk(min(queries, likely.shape[1]), dim=1).indices
        turns = torch.arange(queries, device=best.device) % best.shape[1]  # where cells are few
        best = best[:, turns, None]  # (B, Q, 1)
        z, scores = (x.gather(1, best.expand(-1, -1, x.shape[2])) for x in (z, scores))
        first = to_logits(cells).expand(len(z), -1, -1)
        moved = first.gather(1, best.expand(-1, -1, 4)) + self.to_boxes(z)
        return Proposed(scores, moved.sigmoid())


def _cells(down: Float[Tensor, "#B h"], across: Float[Tensor, "#B w"]) -> Float[Tensor, "B n 4"]:
    """A box around each cell of a grid, row by row."""
    y, x = torch.broadcast_tensors(down[:, :, None], across[:, None])  # (B, h, w)
    size = torch.full_like(x, FIRST_SIZE)
    return torch.stack([x, y, size, size], dim=-1).flatten(1, 2)
