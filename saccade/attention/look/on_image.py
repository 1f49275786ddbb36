"""Attention put back on the image: windows un-shifted, pooled keys where they lie, layers followed.

Everything asks one question: if query t matters rₜ, how much does each key matter? A class token
asks it as a one-hot r, a mean over all cells as an even one. Followed from the last layer to the
first, only vectors are held: nothing of cells × cells, whatever the size of the map.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from saccade.attention.axes import Axis
from saccade.attention.look.view import View


class LayerWeights(NamedTuple):
    """What one layer's queries gave to its keys; images cut into windows lie one after another."""

    weights: Float[Tensor, "B N T S"]
    rows: Axis
    columns: Axis


def all_weights(seen: View | Float[Tensor, "B N T S"]) -> Float[Tensor, "B N T S"]:
    """Every weight of what a site shows, with its gradient."""
    return seen.weights() if isinstance(seen, View) else seen


def one_query(axis: Axis, query: int, batch: int) -> Float[Tensor, "B T"]:
    """Only one matters: a special token, or after these a cell of the whole map."""
    return F.one_hot(torch.tensor(query), positions(axis)).float().expand(batch, -1)


def positions(axis: Axis) -> int:
    """How many there are: special tokens and the cells of the whole map."""
    return axis.special + axis.whole.height * axis.whole.width


def read_class(axis: Axis, batch: int) -> Float[Tensor, "B T"]:
    """How a class is read after the last layer: at the class token, or from the mean of all cells.

    The class token is the first of the special tokens.
    """
    if axis.special:
        return one_query(axis, 0, batch)
    return torch.full((batch, positions(axis)), 1 / positions(axis))


def falls_on(reader: Float[Tensor, "B T"], layer: LayerWeights) -> Float[Tensor, "B N S"]:
    """How much each key matters to each head, by how much each query does.

        sₙⱼ = Σₜ rₜ Aₙₜⱼ

    Within windows too queries and keys are those of the whole map, in reading order.
    """
    windows, reader = layer.rows.windows, reader.to(layer.weights)
    if windows is None:
        return torch.einsum("bt,bnts->bns", reader, layer.weights)
    maps = reader.unflatten(1, (windows.height, windows.width))
    cut = windows.cut(maps[..., None])[..., 0]  # (B, windows, T)
    weights = layer.weights.unflatten(0, cut.shape[:2])
    onto = torch.einsum("bwt,bwnts->bwsn", cut, weights)
    return windows.joined(onto).flatten(1, 2).mT


def on_cells(values: Float[Tensor, "*batch S"], axis: Axis) -> Float[Tensor, "*batch h w"]:
    """As a map; what falls on special tokens is left out."""
    return values[..., axis.special :].unflatten(-1, (axis.whole.height, axis.whole.width))


def spread(values: Float[Tensor, "B S"], coarse: Axis, fine: Axis) -> Float[Tensor, "B S2"]:
    """What falls on pooled cells, over the cells that each of them was pooled from, evenly.

    These lie at most one fine cell away from its middle: four where neighbours are merged, nine
    where a 3×3 convolution looks around, however far it strides.
    """
    coarse, fine = coarse.whole, fine.whole
    if (coarse.height, coarse.width, coarse.pixels) == (fine.height, fine.width, fine.pixels):
        return values
    down, across = (
        _pooled_from(coarse, fine, side).to(values)
        for side in ((coarse.height, fine.height), (coarse.width, fine.width))
    )
    cells = down.mT @ on_cells(values, coarse) @ across  # (B, h, w)
    return torch.cat([values[:, : coarse.special], cells.flatten(1)], dim=1)


def _pooled_from(coarse: Axis, fine: Axis, counts: tuple[int, int]) -> Float[Tensor, "coarse fine"]:
    """Rows sum to one."""
    places = (
        axis.pixels * (axis.first + torch.arange(count))
        for axis, count in zip((coarse, fine), counts)
    )
    middles, others = places
    near = ((middles[:, None] - others).abs() <= 1.01 * fine.pixels).float()
    return near / near.sum(dim=1, keepdim=True)


def followed_back(
    reader: Float[Tensor, "B T"], at: Axis, layers: Sequence[LayerWeights]
) -> tuple[Float[Tensor, "B h w"], Axis]:
    """From how much each place matters after the last layer to how much each cell of the first.

        r ← Pᵀ r + Kᵀ Āᵀ r        Ā = meanₙ(Aₙ), from the last layer to the first

    The residual takes r along, attention hands it to the keys. P and K pool queries and keys from
    the cells of the layer below. With Ā the mean of weights, and half of the sum at each layer, it
    is the rollout of Abnar and Zuidema 2020 (arXiv:2005.00928); with Ā = meanₙ relu(∇Aₙ ⊙ Aₙ), the
    relevance of Chefer et al. 2021 (arXiv:2103.15679), R ← R + Ā R, read in one row.
    """
    below = [layers[0].rows, *(layer.rows for layer in layers[:-1])]
    for layer, under in zip(reversed(layers), reversed(below)):
        reader = spread(reader, at, layer.rows)
        onto = falls_on(reader, layer).mean(dim=1)
        reader = spread(reader, layer.rows, under) + spread(onto, layer.columns, under)
        at = under
    return on_cells(reader, at), at.whole


def followed_evenly(
    reader: Float[Tensor, "B T"], at: Axis, layers: Sequence[LayerWeights]
) -> tuple[Float[Tensor, "B h w"], Axis]:
    """The same, where what all layers hand on counts as much as what their residuals take along.

        r R̄        R̄ = I + (R − I) with rows that sum to one

    As Chefer et al. 2021 do it before one modality reads another, for places that something else
    reads in the end. Each of many has but a small part in the score, and so small slopes: its own
    place would hide all that it looked at.
    """
    still = [layer._replace(weights=torch.zeros_like(layer.weights)) for layer in layers]
    with torch.enable_grad():
        even = torch.ones_like(reader, requires_grad=True)
        total = followed_back(even, at, layers)[0].sum()
        (rows,) = torch.autograd.grad(total, even)  # the sums of R's rows
    share = torch.where(rows > 1, reader / (rows - 1), 0.0)
    stays, cells = followed_back(reader - share, at, still)
    return followed_back(share, at, layers)[0] + stays, cells
