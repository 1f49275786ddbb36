"""Attention whose queries, keys and values are pooled first (MViT)."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from saccade.attention.attend import fused
from saccade.attention.axes import Axis
from saccade.attention.kernels.train.linear import Linear
from saccade.attention.look.view import Watcher
from saccade.attention.parameters import FREE, TABLE, Role
from saccade.attention.site import Site
from saccade.attention.tables import kept_table
from saccade.models.vision.image_encoder import image_axis

EPSILON = 1e-6
FIRST = 0.5  # where a convolution's first cell looks, in pixels
Shape = tuple[int, int]


class Pool(nn.Module):
    """Cells of a head become fewer: each channel looks around itself. Then they are normalised.

    y = norm(W ⊛ x), the same for all heads; a class token is not pooled
    """

    def __init__(self, width: int, *, stride: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, stride, 1, groups=width, bias=False)
        self.norm = nn.LayerNorm(width, EPSILON)

    def roles(self) -> dict[str, Role]:
        return {"conv.weight": TABLE}  # a filter for each channel, not a matrix between vectors

    def forward(
        self, x: Float[Tensor, "B N T K"], shape: Shape
    ) -> tuple[Float[Tensor, "B N T2 K"], Shape]:
        heads, extra = x.shape[1], x.shape[2] - shape[0] * shape[1]
        # All heads side by side are the channels of one map, which lie last: nothing is copied.
        maps = x[:, :, extra:].transpose(1, 2).flatten(2).mT.unflatten(2, shape)  # (B, N K, h, w)
        conv = self.conv
        weight = conv.weight.repeat(heads, 1, 1, 1)
        maps = F.conv2d(maps, weight, None, conv.stride, conv.padding, groups=len(weight))
        cells = maps.flatten(2).mT.unflatten(2, (heads, -1)).transpose(1, 2)
        y = torch.cat([x[:, :, :extra], cells], dim=2) if extra else cells
        return self.norm(y), (maps.shape[2], maps.shape[3])


class PoolingAttention(Site):
    """Attention whose queries, keys and values are pooled first.

        y = softmax(q kᵀ / √K + q · R) v + q        q, k, v = pooled(x Wq), pooled(x Wk), …

    R are vectors for how far down and how far across a key lies from a query.
    """

    def __init__(
        self,
        inputs: int,
        width: int,
        *,
        heads: int,
        strides: Shape,
        cells: Shape,
        pixels: int,
        relative: bool,
        residual: bool,
    ) -> None:
        """`pixels` lie between the cells that it is given; pooled ones lie on every so many."""
        super().__init__(Axis("image", "grid"), Axis("image", "grid"))
        self.heads, self.residual = heads, residual
        self.apart = tuple(float(pixels * stride) for stride in strides)  # queries and keys
        self.to_q, self.to_k, self.to_v = (Linear(inputs, width) for _ in range(3))
        self.to_output = Linear(width, width)
        head = width // heads
        self.pool_q = Pool(head, stride=strides[0])
        self.pool_k, self.pool_v = (Pool(head, stride=strides[1]) for _ in range(2))
        self.register_parameter("down", _offset_table(max(cells), head) if relative else None)
        self.register_parameter("across", _offset_table(max(cells), head) if relative else None)
        self.down: nn.Parameter | None
        self.across: nn.Parameter | None

    def roles(self) -> dict[str, Role]:
        return {} if self.down is None else {"down": FREE, "across": FREE}

    def forward(
        self, x: Float[Tensor, "B T D"], shape: Shape
    ) -> tuple[Float[Tensor, "B T2 E"], Shape]:
        """What each query reads, and the shape of the map of queries."""
        q, queries = self.pool_q(self._split(self.to_q(x)), shape)
        k, keys = self.pool_k(self._split(self.to_k(x)), shape)
        v, _ = self.pool_v(self._split(self.to_v(x)), shape)
        extra = q.shape[2] - queries[0] * queries[1]
        if self.watcher is not None:
            self.rows, self.columns = (
                image_axis(shape, (FIRST, apart), special=extra)
                for shape, apart in zip((queries, keys), self.apart)
            )
        if self.down is None:
            read = fused(q, k, v, watcher=self.watcher)  # (B, N, T2, K)
        else:
            offsets = self._offsets(q[:, :, extra:], queries, keys)
            read = with_offsets(q, k, v, offsets, keys, self.watcher)
        if self.residual:
            read = torch.cat([read[:, :, :extra], read[:, :, extra:] + q[:, :, extra:]], dim=2)
        return self.to_output(read.transpose(1, 2).flatten(2)), queries

    def _offsets(
        self, q: Float[Tensor, "B N cells K"], queries: Shape, keys: Shape
    ) -> Float[Tensor, "B N cells sides"]:
        """What is added to each score for the row of a key, then for its column."""
        assert self.down is not None
        assert self.across is not None
        grid = q.unflatten(2, queries)  # (B, N, h, w, K)
        tables = (
            resized_offsets(table, 2 * max(pair) - 1)[relative_index(*pair, q.device)]
            for table, pair in zip((self.down, self.across), zip(queries, keys))
        )
        down, across = tables
        by_row = torch.einsum("bnhwk,hrk->bnhwr", grid, down)
        by_column = torch.einsum("bnhwk,wck->bnhwc", grid, across)
        return torch.cat([by_row, by_column], dim=-1).flatten(2, 3)

    def _split(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B N T K"]:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)


def with_offsets(
    q: Float[Tensor, "B N T K"],
    k: Float[Tensor, "B N S K"],
    v: Float[Tensor, "B N S K"],
    offsets: Float[Tensor, "B N cells sides"],
    keys: Shape,
    watcher: Watcher | None,
) -> Float[Tensor, "B N T K"]:
    """Attention with a number of each query's for the row, and one for the column, of a key.

        softmax(q kᵀ / √K + b) v        b = offsets · [1 at the key's row; 1 at its column]

    On a GPU b is computed as a part of q kᵀ, of vectors that are longer: a kernel that takes no
    bias never holds T×S numbers. Class tokens, which come first, are neither nearer nor farther.
    """
    extra, scale = q.shape[2] - offsets.shape[2], q.shape[-1] ** -0.5
    if not widens(q):
        by_row, by_column = offsets.split(keys, dim=-1)
        bias = (by_row[..., :, None] + by_column[..., None, :]).flatten(3)  # (B, N, cells, cells)
        return fused(q, k, v, bias=F.pad(bias, (extra, 0, extra, 0)), watcher=watcher)
    places = one_hot(*keys, offsets.dtype, q.device)
    wide_q = _widened(q, offsets / scale, extra)
    wide_k = _widened(k, places.expand(*k.shape[:2], -1, -1), extra)
    wide_v = F.pad(v, (0, wide_q.shape[-1] - v.shape[-1]))  # kernels want all equally wide
    read = fused(wide_q, wide_k, wide_v, scale=scale, watcher=watcher)
    return read[..., : q.shape[-1]]


def widens(q: Tensor) -> bool:
    """Whether longer vectors cost less than a bias."""
    return q.device.type == "cuda"


@kept_table
def one_hot(
    rows: int, columns: int, dtype: torch.dtype, device: torch.device
) -> Float[Tensor, "cells sides"]:
    """Where each cell lies: a one at its row, and a one at its column."""
    row, column = (torch.eye(side, dtype=dtype, device=device) for side in (rows, columns))
    both = [row[:, None].expand(-1, columns, -1), column.expand(rows, -1, -1)]
    return torch.cat(both, dim=-1).flatten(0, 1)


def _widened(
    x: Float[Tensor, "B N T K"], beside: Float[Tensor, "B N cells sides"], extra: int
) -> Float[Tensor, "B N T wide"]:
    """More numbers beside those of each cell, none beside those of a class token.

    In all a multiple of 8, as kernels want it.
    """
    spare = -(x.shape[-1] + beside.shape[-1]) % 8
    return torch.cat([x, F.pad(beside, (0, spare, extra, 0))], dim=-1)


def _offset_table(cells: int, width: int) -> nn.Parameter:
    return nn.Parameter(nn.init.trunc_normal_(torch.empty(2 * cells - 1, width), std=0.02))


def resized_offsets(table: Float[Tensor, "offsets K"], count: int) -> Float[Tensor, "offsets2 K"]:
    """For a side of another number of cells, on a line between the learnt ones."""
    if len(table) == count:
        return table
    return F.interpolate(table.T[None], size=count, mode="linear")[0].T


@kept_table
def relative_index(queries: int, keys: int, device: torch.device) -> Int[Tensor, "T S"]:
    """Which offset lies between each query and each key of a side, counted in the finer of both.

    i · max(S/T, 1) − j · max(T/S, 1) + (S − 1) · max(T/S, 1)
    """
    i = torch.arange(queries, device=device)[:, None]
    j = torch.arange(keys, device=device)[None, :]
    coarse = max(queries / keys, 1.0)
    return (i * max(keys / queries, 1.0) - j * coarse + (keys - 1) * coarse).long()
