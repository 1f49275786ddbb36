"""A model as two functions of tensors alone, which is what ONNX can hold: read, and one step.

    encoder   source, lengths     → state
    decoder   tokens, state       → scores of the next word, state

A state is a list of tensors, each with a name and, as in `decode/protocol.py`, its rows first, so
that a search keeps rows by indexing. The functions are written anew from the formulas and share
only the weights with the models, whose own ways are full of what depends on device and size.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from saccade.blocks.positions import FixedPositions, LearnedPositions, fraction

FURTHEST = 2048  # positions of a computed encoding that are written out


@dataclass(frozen=True)
class Slot:
    """One tensor of a state. Named sizes are free; `past` is 0 before the first word.

    What `changes` comes out of every step; the rest stays as it was at the start.
    """

    name: str
    shape: tuple[str | int, ...]
    changes: bool = True
    dtype: Literal["float32", "bool", "int64"] = "float32"


class Graphs(NamedTuple):
    """What is written of a model; without an encoder every state starts as zeros."""

    encoder: nn.Module | None
    decoder: nn.Module
    state: list[Slot]


def source_mask(lengths: Int[Tensor, " B"], like: Int[Tensor, "B S"]) -> Bool[Tensor, "B S"]:
    """Which source words are real."""
    return torch.arange(like.shape[1]) < lengths[:, None]


def linear(layer: nn.Linear, x: Float[Tensor, "*batch D"]) -> Float[Tensor, "*batch E"]:
    """W x + b, whatever else the layer may do."""
    return F.linear(x, layer.weight, layer.bias)


class Positions(nn.Module):
    """An encoding that can be looked up at a place known only when the graph runs."""

    table: Float[Tensor, "positions D"]

    def __init__(self, kind: nn.Module, *, longest: int) -> None:
        super().__init__()
        self.is_fraction = isinstance(kind, FixedPositions) and kind.encoding is fraction
        if isinstance(kind, LearnedPositions):
            table = kind.table.detach()
        else:
            table = kind(0, max(longest, FURTHEST)).clone()
        self.register_buffer("table", table)

    def forward(self, start: int, count: int) -> Float[Tensor, "T D"]:
        t = torch.arange(start, start + count)
        if self.is_fraction:
            return (t / (start + count)).float()[:, None].expand(-1, self.table.shape[1])
        return F.embedding(t, self.table)
