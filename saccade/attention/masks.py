"""Who may look where. Boolean, True = may look, broadcast to (B, N, T, S); built only here."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor


def causal(
    queries: int, keys: int, *, device: torch.device | None = None
) -> Bool[Tensor, "1 1 T S"]:
    """A position sees itself and what came before.

    With fewer queries than keys, the queries are the last positions (decoding with a cache).
    """
    t = torch.arange(keys - queries, keys, device=device)[:, None]
    return (torch.arange(keys, device=device)[None, :] <= t)[None, None]


def not_itself(
    queries: int, keys: int, *, device: torch.device | None = None
) -> Bool[Tensor, "1 1 T S"]:
    """A position sees all others; the queries are the first positions."""
    return ~torch.eye(queries, keys, dtype=torch.bool, device=device)[None, None]


def padding(lengths: Int[Tensor, " B"], size: int) -> Bool[Tensor, "B 1 1 S"]:
    """The first `lengths[b]` keys are real, the rest is padding."""
    return (torch.arange(size, device=lengths.device) < lengths[:, None])[:, None, None]


def window(
    queries: int, keys: int, *, reach: int, device: torch.device | None = None
) -> Bool[Tensor, "1 1 T S"]:
    """A position sees at most `reach` positions to either side of itself."""
    t = torch.arange(keys - queries, keys, device=device)[:, None]
    return ((torch.arange(keys, device=device)[None, :] - t).abs() <= reach)[None, None]


def shifted_windows(
    height: int,
    width: int,
    window: tuple[int, int],
    shift: tuple[int, int],
    *,
    device: torch.device | None = None,
) -> Bool[Tensor, "windows 1 T T"]:
    """Cells of a window see one another where they lie together on the image.

    A grid, filled up to whole windows, is rolled by `shift` before it is cut into them. So a window
    at the end holds cells from the other side, which are not its neighbours, and cells that are
    none. Rows of windows go from top to bottom, each from left to right.
    """
    sides = [_side(*each, device) for each in zip((height, width), window, shift)]
    side = sides[0][:, None] * (1 + sides[1].max()) + sides[1][None, :]  # a number for each region
    real = (sides[0] > 0)[:, None] & (sides[1] > 0)[None, :]
    (high, wide), whole = window, torch.where(real, side, 0)
    cut = whole.unflatten(0, (-1, high)).unflatten(2, (-1, wide)).transpose(1, 2).flatten(0, 1)
    region = cut.flatten(1)  # (windows, T)
    return ((region[:, :, None] == region[:, None, :]) & (region > 0)[:, None, :])[:, None]


def _side(
    size: int, window: int, shift: int, device: torch.device | None
) -> Int[Tensor, " padded"]:
    """Along one side, after rolling: 1 for cells in their place, 2 for those that came round, 0
    for those that are none.
    """
    padded = -(-size // window) * window
    cells = torch.arange(padded, device=device).roll(-shift)
    return torch.where(cells < size, torch.where(cells < shift, 2, 1), 0)


def image_rows(
    text: int, side: int, *, device: torch.device | None = None
) -> Bool[Tensor, "1 1 T T"]:
    """Text, then the cells of a square grid, row by row. A cell sees all of the text, and back as
    far as the cell above it: a row's worth of cells, across the end of the row before.
    """
    back = torch.arange(side * side, device=device)
    return _text_then_cells(text, back <= side)


def image_columns(
    text: int, side: int, *, device: torch.device | None = None
) -> Bool[Tensor, "1 1 T T"]:
    """The same, but a cell sees those above it in its column."""
    back = torch.arange(side * side, device=device)
    return _text_then_cells(text, back % side == 0)


def image_neighbours(
    text: int, side: int, kernel: int, *, device: torch.device | None = None
) -> Bool[Tensor, "1 1 T T"]:
    """The same, but a cell sees what of `kernel` × `kernel` cells around it came before, where the
    ends of rows do not count.
    """
    reach = kernel // 2
    rows = torch.arange(reach + 1, device=device)[:, None] * side
    back = (rows + torch.arange(-reach, reach + 1, device=device)).flatten()
    near = torch.zeros(side * side, dtype=torch.bool, device=device)
    near[back[(back >= 0) & (back < side * side)]] = True
    return _text_then_cells(text, near)


def _text_then_cells(text: int, near: Bool[Tensor, " cells"]) -> Bool[Tensor, "1 1 T T"]:
    """`near` says how many cells back one may look; nobody sees what comes later."""
    t = torch.arange(text + len(near), device=near.device)
    back = t[:, None] - t[None, :]
    cells = (t >= text)[:, None] & (t >= text)[None, :]
    return ((back >= 0) & (~cells | near[back.clamp(0, len(near) - 1)]))[None, None]


def both(
    one: Bool[Tensor, "..."] | None, other: Bool[Tensor, "..."] | None
) -> Bool[Tensor, "..."] | None:
    """What both allow; None allows everything."""
    if one is None or other is None:
        return one if other is None else other
    return one & other
