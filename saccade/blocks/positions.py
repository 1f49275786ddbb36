"""Where a vector stands in its sequence: attention itself cannot tell.

What a good encoding must have: a unique value for each position, distances that mean the same in
sentences of any length, bounded values beyond the training length, and no randomness.
"""

from collections.abc import Callable
from typing import Literal, Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from saccade.attention.parameters import FREE, Role
from saccade.errors import ConfigError

Encoding = Callable[[Float[Tensor, " T"], int], Float[Tensor, "T D"]]


def sinusoids(t: Float[Tensor, " T"], width: int, slowest: float = 10000.0) -> Float[Tensor, "T D"]:
    """Sines and cosines of falling frequency (Vaswani et al. 2017).

    p(t) = [sin ω₀t, cos ω₀t, sin ω₁t, cos ω₁t, …]        ωₖ = slowest^(−2k/D)
    """
    k = torch.arange((width + 1) // 2, device=t.device, dtype=t.dtype)
    angle = t[:, None] * slowest ** (-2 * k / width)  # (T, D/2)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, :width]


def sinusoids_2d(
    height: int, width: int, channels: int, slowest: float = 10000.0
) -> Float[Tensor, "H W D"]:
    """Half of the channels tell the row, half the column.

    p(i, j) = [sinusoids(i); sinusoids(j)]        each D/2 wide
    """
    if channels % 2:
        raise ConfigError(f"channels={channels} must be even: half for rows, half for columns")
    down, across = (
        sinusoids(torch.arange(count).float(), channels // 2, slowest) for count in (height, width)
    )
    rows, columns = down[:, None].expand(-1, width, -1), across[None].expand(height, -1, -1)
    return torch.cat([rows, columns], dim=-1)


# The rejected ideas, kept as contrasts: each breaks one of the desiderata above.


def raw_index(t: Float[Tensor, " T"], width: int) -> Float[Tensor, "T D"]:
    """The index itself: unbounded, it drowns the words of a long sentence."""
    return t[:, None].expand(-1, width)


def fraction(t: Float[Tensor, " T"], width: int) -> Float[Tensor, "T D"]:
    """The index over the length: the same position means another value in another sentence."""
    return (t / (t.max() + 1))[:, None].expand(-1, width)


def saturating(t: Float[Tensor, " T"], width: int) -> Float[Tensor, "T D"]:
    """A bounded rising function: soon all positions look the same."""
    return t.tanh()[:, None].expand(-1, width)


def one_sinusoid(t: Float[Tensor, " T"], width: int) -> Float[Tensor, "T D"]:
    """A single sine: two positions share a value within every period."""
    return t.sin()[:, None].expand(-1, width)


ENCODINGS: dict[str, Encoding] = {
    "sinusoids": sinusoids,
    "raw-index": raw_index,
    "fraction": fraction,
    "saturating": saturating,
    "one-sinusoid": one_sinusoid,
}
PositionKind = Literal[
    "sinusoids", "learned", "raw-index", "fraction", "saturating", "one-sinusoid", "none"
]


class FixedPositions(nn.Module):
    """A fixed function of the position, computed once and kept while it is long enough."""

    table: Float[Tensor, "T D"]

    def __init__(self, encoding: Encoding, width: int) -> None:
        super().__init__()
        self.encoding, self.width = encoding, width
        self.register_buffer("table", torch.empty(0, width), persistent=False)
        self._outgrown: list[Tensor] = []  # a captured step goes on reading them

    @property
    def depends_on_length(self) -> bool:
        """Whether a position means another value in another sentence."""
        return self.encoding is fraction

    def forward(self, start: int, count: int) -> Float[Tensor, "T D"]:
        length = start + count
        if self.depends_on_length:
            return self._encode(count, first=start)
        if torch.compiler.is_exporting():
            return _rows(self.table, start, count)
        self._reach(length)
        return self.table[start:length]

    def at(self, places: Int[Tensor, "*batch"], longest: int) -> Float[Tensor, "*batch D"]:
        """The encoding of each of some positions, all below `longest`."""
        assert not self.depends_on_length
        self._reach(longest)
        return self.table[places]

    def _reach(self, length: int) -> None:
        if length > len(self.table):
            self._outgrown.append(self.table)
            self.table = self._encode(1 << (length - 1).bit_length())

    def _encode(self, count: int, *, first: int = 0) -> Float[Tensor, "T D"]:
        where = self.table.device
        exact = where if where.type == "cuda" else "cpu"  # no other device need have float64
        t = torch.arange(count, device=exact, dtype=torch.float64) + first
        return self.encoding(t.flatten(), self.width).to(self.table)


def _rows(table: Float[Tensor, "positions D"], start: int, count: int) -> Float[Tensor, "T D"]:
    """Rows of a table for an exported graph, where a slice would bound sizes that are free."""
    return F.embedding(torch.arange(count, device=table.device) + start, table)


class GridPositions(nn.Module):
    """The two-dimensional sinusoids of a grid's cells, row by row; the last grid's are kept."""

    table: Float[Tensor, "cells D"]

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width, self.shape = width, (0, 0)
        self.register_buffer("table", torch.empty(0, width), persistent=False)

    def forward(self, shape: tuple[int, int]) -> Float[Tensor, "cells D"]:
        if shape != self.shape:
            self.table = sinusoids_2d(*shape, self.width).flatten(0, 1).to(self.table)
            self.shape = shape
        return self.table


class LearnedPositions(nn.Module):
    """A table of parameters, one row for each position up to `longest`."""

    depends_on_length = False

    def __init__(self, longest: int, width: int) -> None:
        super().__init__()
        self.table = nn.Parameter(0.02 * torch.randn(longest, width))

    def roles(self) -> dict[str, Role]:
        return {"table": FREE}

    def forward(self, start: int, count: int) -> Float[Tensor, "T D"]:
        if torch.compiler.is_exporting():
            return _rows(self.table, start, count)
        self.check(start + count)
        return self.table[start : start + count]

    def check(self, count: int) -> None:
        """Refuse more positions than were learnt."""
        if count > len(self.table):
            raise ConfigError(
                f"{count} positions, but the model learnt only {len(self.table)}; "
                "give it less text, or train with a larger --model.longest"
            )

    def at(self, places: Int[Tensor, "*batch"], longest: int) -> Float[Tensor, "*batch D"]:
        """The encoding of each of some positions."""
        if len(self.table) < longest and not torch.compiler.is_compiling():
            self.check(int(places.max()) + 1)  # `longest` is but a bound
        return self.table[places]


@runtime_checkable
class Positions(Protocol):
    """Any encoding of places in a sequence."""

    @property
    def depends_on_length(self) -> bool: ...

    def __call__(self, start: int, count: int, /) -> Float[Tensor, "T D"]: ...

    def at(self, places: Int[Tensor, "*batch"], longest: int, /) -> Float[Tensor, "*batch D"]: ...


def make_positions(
    kind: PositionKind, *, longest: int, width: int
) -> FixedPositions | LearnedPositions | None:
    """The encoding by its name; `longest` matters only to the learned table."""
    if kind == "none":
        return None
    if kind == "learned":
        return LearnedPositions(longest, width)
    return FixedPositions(ENCODINGS[kind], width)


class Added(nn.Module):
    """Words plus positions: no extra width.

    h = x + p(t)
    """

    def __init__(self, positions: Positions) -> None:
        super().__init__()
        self.positions = positions

    def forward(self, x: Float[Tensor, "B T D"], *, start: int = 0) -> Float[Tensor, "B T D"]:
        return x + self.positions(start, x.shape[1])

    def at(
        self, x: Float[Tensor, "B T D"], places: Int[Tensor, "B T"], longest: int
    ) -> Float[Tensor, "B T D"]:
        """For words that do not stand in order: each says which place is its own."""
        return x + self.positions.at(places, longest)


class Concatenated(nn.Module):
    """Words beside positions: the meaning of the words is left alone, at the price of width.

    h = W [x; p(t)]
    """

    def __init__(self, positions: nn.Module, *, width: int, position_width: int) -> None:
        super().__init__()
        self.positions = positions
        self.mix = nn.Linear(width + position_width, width)

    def forward(self, x: Float[Tensor, "B T D"], *, start: int = 0) -> Float[Tensor, "B T D"]:
        p = self.positions(start, x.shape[1]).expand(len(x), -1, -1)  # (B, T, P)
        return self.mix(torch.cat([x, p], dim=-1))
