"""Regions of an image: what a grid shows in each, and how they lie end to end beside texts."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor, nn

from saccade.attention.axes import Axis
from saccade.attention.kernels.train.linear import Linear
from saccade.attention.segments import Segments
from saccade.blocks.dropout import Dropout
from saccade.data.batching.rows import Rows, few
from saccade.data.boxes import area
from saccade.data.images.constants import constant
from saccade.models.joint.config import VilbertConfig
from saccade.models.vision.grid_encoder import GridEncoder

WHOLE = (0.0, 0.0, 1.0, 1.0)  # the first region of every image
THINNEST = 1e-4  # sides of a box are at least so long, that each has a mean


class SeenRegions(NamedTuple):
    """The regions of images, the whole image first; boxes are left, top, right, bottom."""

    features: Float[Tensor, "B n F"]
    boxes: Float[Tensor, "B n 4"]
    axis: Axis

    @classmethod
    def recalled(
        cls, features: Float[Tensor, "B n F"], boxes: Float[Tensor, "B R 4"]
    ) -> "SeenRegions":
        """Regions of which the features are known; boxes are those of all but the whole image."""
        return cls(features, _with_whole(boxes), Axis("regions"))


class RegionRows(NamedTuple):
    """Regions end to end: those of image i are `starts[i]` up to `starts[i + 1]`.

    `slots` bounds how many an image has, where that is known beforehand; `equal` says that all
    have just so many.
    """

    features: Float[Tensor, "total F"]
    boxes: Float[Tensor, "total 4"]
    starts: Int[Tensor, " boundaries"]
    longest: int
    slots: int | None
    equal: bool

    @classmethod
    def of(cls, seen: SeenRegions, which: Rows | None, slots: int | None = None) -> "RegionRows":
        """Some of those that were seen, counted over all images; None: all."""
        features, boxes = (x.flatten(0, 1) for x in seen[:2])
        B, n = seen.features.shape[:2]
        if which is None or (which.rectangular and len(which.tokens) == B * n):
            starts = n * torch.arange(B + 1, dtype=torch.int32, device=features.device)
            return cls(features, boxes, starts, few(n), n, equal=True)
        if which.rectangular:
            slots = len(which.tokens) // B
        features, boxes = (x.index_select(0, which.tokens) for x in (features, boxes))
        return cls(features, boxes, which.starts, which.longest, slots, which.rectangular)

    def hidden(self, which: Bool[Tensor, " total"]) -> "RegionRows":
        """With nothing to be seen in some."""
        return self._replace(features=self.features.masked_fill(which[:, None], 0.0))


class Beside(NamedTuple):
    """Where the regions of each pair's image lie among those of all images, in the order in which
    they are beside the texts; those of pair i are `starts[i]` up to `starts[i + 1]`.

    `pair` is that of each region. Where the pairs have slots and not all are taken, the whole
    image fills them up, with the number after the last pair; within `ends` lie the regions and
    what fills up by turns, and neither looks at the other.
    """

    which: Int[Tensor, " total"]
    pair: Int[Tensor, " total"]
    starts: Int[Tensor, " boundaries"]
    ends: Int[Tensor, " stretches"] | None = None

    @classmethod
    def of(
        cls,
        starts: Int[Tensor, " boundaries"],
        images: Int[Tensor, " P"],
        slots: int | None = None,
        *,
        equal: bool = False,
    ) -> "Beside":
        """Of the image of each pair. With `slots` nobody need wait until the regions are counted;
        `equal` says that all are taken.
        """
        first, lengths = starts[:-1][images], starts.diff()[images]
        pairs = torch.arange(len(images), device=starts.device)
        if slots is None:
            ends = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)]).int()
            pair = pairs.repeat_interleave(lengths)
            which = torch.arange(len(pair), device=starts.device) + (first - ends[:-1])[pair]
            return cls(which, pair, ends)
        each = torch.arange(slots, device=starts.device)
        begin = slots * torch.arange(len(images) + 1, dtype=torch.int32, device=starts.device)
        if equal:
            return cls((first[:, None] + each).flatten(), pairs.repeat_interleave(slots), begin)
        there = each < lengths[:, None]
        which = first[:, None] + each * there
        pair = torch.where(there, pairs[:, None], len(images))
        by_turns = torch.stack([begin[:-1], begin[:-1] + lengths], dim=1).flatten().int()
        return cls(which.flatten(), pair.flatten(), begin, torch.cat([by_turns, begin[-1:]]))

    def segments(
        self, words: Int[Tensor, " boundaries"], longest: tuple[int, int]
    ) -> tuple[Segments, Segments]:
        """Words that look at their regions, and regions among themselves."""
        if self.ends is None:
            at = Segments(words, self.starts, *longest)
            return at, Segments.among(self.starts, longest[1])
        none = words.repeat_interleave(2)[1:]  # beside what fills up there are no words
        at = Segments(none, self.ends, *longest)
        return at, Segments.among(self.ends, longest[1])


class RegionFeatures(nn.Module):
    """Images → what is in each of their regions.

        f(box) = Σᵢⱼ aᵢ bⱼ z(i, j)        a, b: the shares of the box's height and width

    that lie in row i and column j. The cells of a grid are regions, too.
    """

    def __init__(self, config: VilbertConfig) -> None:
        super().__init__()
        self.grid = GridEncoder(config.encoder, stage=config.stage, frozen=config.frozen)
        self.bins = config.bins if config.regions == "boxes" else 1

    @property
    def fixed(self) -> bool:
        """Whether it sees the same in the same images for ever: no weight of it learns, and no
        part of it gathers statistics or drops anything.
        """
        parts, weights = self.grid.encoder.modules(), self.parameters()
        return not any(p.training for p in parts) and not any(w.requires_grad for w in weights)

    @property
    def features(self) -> int:
        """How many numbers say what is in a region."""
        return self.grid.channels * self.bins**2

    def forward(
        self, images: UInt8[Tensor, "B 3 H W"], boxes: Float[Tensor, "B R 4"] | None
    ) -> SeenRegions:
        """With no `boxes`, the cells."""
        cells, axis = self.grid(images)
        if boxes is None:
            places = cell_boxes(axis.height, axis.width, cells.device).expand(len(cells), -1, -1)
            found = torch.cat([cells.mean(dim=1, keepdim=True), cells], dim=1)
            return SeenRegions(found, _with_whole(places), _after_whole(axis))
        places = _with_whole(boxes)
        z = cells.unflatten(1, (axis.height, axis.width))
        rows, columns = (
            shares(places[..., side::2], size, self.bins).to(z)
            for side, size in ((1, axis.height), (0, axis.width))
        )
        means = torch.einsum("brsi,brtj,bijc->brstc", rows, columns, z)
        return SeenRegions(means.flatten(2), places, Axis("regions"))


def shares(ends: Float[Tensor, "B R 2"], cells: int, bins: int) -> Float[Tensor, "B R bins cells"]:
    """Of each part of a side, the shares that lie in each cell; they sum to one."""
    first, last = ends[..., :1], torch.maximum(ends[..., 1:], ends[..., :1] + THINNEST)
    edges = torch.linspace(0, 1, bins + 1, device=ends.device)
    edges = first + (last - first) * edges  # (B, R, bins + 1)
    cell = torch.linspace(0, 1, cells + 1, device=ends.device)
    begin = torch.maximum(edges[..., :-1, None], cell[:-1])
    end = torch.minimum(edges[..., 1:, None], cell[1:])
    common = (end - begin).clamp_min(0)
    return common / common.sum(dim=-1, keepdim=True).clamp_min(THINNEST**2)


def cell_boxes(height: int, width: int, device: torch.device) -> Float[Tensor, "cells 4"]:
    """Where the cells of a grid lie, row by row."""
    top, left = (torch.arange(n, device=device) / n for n in (height, width))
    y, x = torch.meshgrid(top, left, indexing="ij")
    return torch.stack([x, y, x + 1 / width, y + 1 / height], dim=-1).flatten(0, 1)


def _with_whole(boxes: Float[Tensor, "B R 4"]) -> Float[Tensor, "B n 4"]:
    whole = constant(WHOLE, boxes).expand(len(boxes), 1, 4)
    return torch.cat([whole, boxes], dim=1)


def _after_whole(axis: Axis) -> Axis:
    return Axis("regions", "grid", axis.height, axis.width, 1, first=axis.first, apart=axis.apart)


class RegionEmbeddings(nn.Module):
    """What a region shows, and where it lies.

    y = dropout(norm(W f + V [left, top, right, bottom, area]))
    """

    def __init__(self, features: int, config: VilbertConfig) -> None:
        super().__init__()
        self.shows = Linear(features, config.region_width)
        self.lies = Linear(5, config.region_width)
        self.norm = nn.LayerNorm(config.region_width, config.text.epsilon)
        self.dropout = Dropout(config.dropout)

    def forward(self, regions: RegionRows) -> Float[Tensor, "1 regions D"]:
        places = torch.cat([regions.boxes, area(regions.boxes)[:, None]], dim=1)
        y = self.shows(regions.features) + self.lies(places.to(regions.features))
        return self.dropout(self.norm(y))[None]
