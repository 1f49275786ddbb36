"""DETR: objects as a set, each found by a query that looks at the image (Carion et al. 2020,
arXiv:2005.12872), and what makes it learn from few images, each a switch of the config.

Weights are not dropped inside attention, which fused kernels dislike; else it is as published.
"""

import math
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from saccade.attention.axes import Axis
from saccade.attention.parameters import FREE, Role
from saccade.blocks.decoder import DecoderLayer
from saccade.blocks.encoder import EncoderLayer
from saccade.blocks.kernels import HAS_TRITON
from saccade.blocks.placed import Placed, places_within
from saccade.blocks.stack import run_blocks
from saccade.config import ModelConfig
from saccade.models.detection.anchored import BoxBias, BoxPlaces, Proposals, to_logits
from saccade.models.detection.backbone import DetectorBackbone
from saccade.models.detection.config import DetrConfig
from saccade.models.detection.heads import Mlp, exactly

RARE = 0.01  # how likely an object is thought at first, where each class is scored by itself
OBJECTS = Axis("objects")
IMAGE = Axis("image", "grid")  # before any was seen


class Detections(NamedTuple):
    """What every pass over the queries says: logits of classes, and boxes as cx, cy, w, h.

    The last pass is the answer. The others, earlier layers and further groups, are there while the
    model is trained, each to be matched by itself; `weights` says how much each counts.
    """

    scores: Float[Tensor, "passes B Q C"]
    boxes: Float[Tensor, "passes B Q 4"]
    weights: tuple[float, ...]


class Pass(NamedTuple):
    """What one layer says of all queries; groups of them lie one after another."""

    scores: Float[Tensor, "B Q C"]
    boxes: Float[Tensor, "B Q 4"]
    groups: int


class Seen(NamedTuple):
    """An image as queries find it: its cells, and where each lies."""

    memory: Float[Tensor, "B cells D"]
    places: Float[Tensor, "#B cells D"]
    within: Bool[Tensor, "B cells"] | None  # which are image; None: all
    down: Float[Tensor, "#B h"]  # the middle of each row, as a share of the image's height
    across: Float[Tensor, "#B w"]

    @property
    def mask(self) -> Bool[Tensor, "B 1 1 cells"] | None:
        return None if self.within is None else self.within[:, None, None]


class Detr(nn.Module):
    """Image → image encoder → encoder → memory; queries + memory → decoder → objects.

    class = W x        box = σ(MLP(x)),  or anchored: σ(logit(the box before) + MLP(x))
    """

    capturable = HAS_TRITON  # else objects are matched on the CPU in the middle of an update

    def __init__(self, config: DetrConfig) -> None:
        super().__init__()
        self.config = config
        names = ("width", "heads", "hidden", "dropout")
        width, sizes = config.width, {name: vars(config)[name] for name in names}
        self.image_encoder = DetectorBackbone(config)
        self.encoder = nn.ModuleList(
            EncoderLayer(**sizes, axis=IMAGE) for _ in range(config.encoder_depth)
        )
        self.decoder = nn.ModuleList(
            DecoderLayer(**sizes, source=IMAGE) for _ in range(config.depth)
        )
        self.decoder_norm = nn.LayerNorm(width)
        self.queries = nn.Embedding(config.groups * config.queries, width)
        self.to_scores = nn.Linear(width, config.scores)
        self.to_boxes = Mlp(width, width, 4, layers=3)
        learnt = config.anchored and not config.proposed
        self.anchors = nn.Parameter(torch.empty(config.queries, 4)) if learnt else None
        self.box_places = BoxPlaces(width) if config.anchored else None
        self.proposals = Proposals(width, config.scores) if config.proposed else None
        self.box_bias = (
            nn.ModuleList(BoxBias(config.heads) for _ in range(config.depth))
            if config.box_bias
            else None
        )
        self._initialise()

    def _initialise(self) -> None:
        for part in (self.encoder, self.decoder, self.to_boxes):
            for parameter in part.parameters():
                if parameter.dim() > 1:
                    nn.init.xavier_uniform_(parameter)
        heads = [(self.to_scores, self.to_boxes)]
        if self.proposals is not None:
            heads.append((self.proposals.to_scores, self.proposals.to_boxes))
        for to_scores, to_boxes in heads:
            if not self.config.no_object:
                nn.init.constant_(to_scores.bias, math.log(RARE / (1 - RARE)))
            if self.config.anchored:  # a box begins as the one before it
                for parameter in to_boxes.layers[-1].parameters():
                    nn.init.zeros_(parameter)
        if self.anchors is not None:
            places = torch.rand(len(self.anchors), 2)
            sizes = torch.full_like(places, 0.2)
            self.anchors.data = to_logits(torch.cat([places, sizes], dim=1))

    def roles(self) -> dict[str, Role]:
        return {} if self.anchors is None else {"anchors": FREE}

    def forward(
        self, images: Float[Tensor, "B 3 H W"], inside: Bool[Tensor, "B H W"] | None = None
    ) -> Detections:
        """Standardised images; `inside` says which pixels are image, where not all are."""
        seen = self.see(images, inside)
        return self._all(self._mend_boxes(seen) if self.config.anchored else self._find(seen))

    def see(self, images: Float[Tensor, "B 3 H W"], inside: Bool[Tensor, "B H W"] | None) -> Seen:
        """The memory that queries look at."""
        if inside is not None:  # what convolutions see beside an image is always the same
            images = images.masked_fill(~inside[:, None], 0.0)
        grid = self.image_encoder(images)
        shape = (grid.shape[2], grid.shape[3])
        self._say_what_is_seen(shape)
        if inside is None:
            within = grid.new_ones(1, *shape, dtype=torch.bool)
        else:
            within = F.interpolate(inside[:, None].float(), shape)[:, 0] > 0.5
        places = places_within(within, self.config.width).to(grid)
        x = grid.flatten(2).mT
        down, across = (_middles(within.any(dim=along)) for along in (2, 1))
        seen = Seen(x, places, None if inside is None else within.flatten(1), down, across)
        read = run_blocks(self.encoder, nn.Identity(), x, Placed(places, seen.mask))
        return seen._replace(memory=read)

    def _find(self, seen: Seen) -> list[Pass]:
        """As published: a query is learnt, and says from what it has read where its object is."""
        places = self._queries[None]  # (1, Q, D)
        x = torch.zeros_like(places).expand(len(seen.memory), -1, -1).to(seen.memory)
        context, passes = _looking(seen, places, self._groups), list[Pass]()
        for layer in self.decoder:
            x = layer(x, context)
            with exactly(self.decoder_norm(x)) as z:
                passes.append(Pass(self.to_scores(z), self.to_boxes(z).sigmoid(), self._groups))
        return passes

    def _mend_boxes(self, seen: Seen) -> list[Pass]:
        """A query has a box, by which it looks, and which each layer mends."""
        first, passes = self._first_boxes(seen)
        before = first.repeat(1, self._groups, 1)
        x = self._queries.expand(len(before), -1, -1)
        assert self.box_places is not None
        for number, layer in enumerate(self.decoder):
            bias = None
            if self.box_bias is not None:
                bias = self.box_bias[number](before, seen.down, seen.across)
            x = layer(x, _looking(seen, self.box_places(before).to(x), self._groups, bias))
            with exactly(self.decoder_norm(x)) as z:
                boxes = (to_logits(before) + self.to_boxes(z)).sigmoid()
                passes.append(Pass(self.to_scores(z), boxes, self._groups))
            before = boxes.detach()
        return passes

    def _first_boxes(self, seen: Seen) -> tuple[Float[Tensor, "B Q 4"], list[Pass]]:
        """Learnt, or proposed by cells, whose proposals are judged as well."""
        if self.proposals is None:
            assert self.anchors is not None
            return self.anchors.sigmoid().expand(len(seen.memory), -1, -1), []
        found = self.proposals(
            seen.memory, seen.within, seen.down, seen.across, self.config.queries
        )
        return found.boxes.detach(), [Pass(found.scores, found.boxes, 1)]

    def _all(self, passes: list[Pass]) -> Detections:
        """In order; while training, the groups of each one after another."""
        if not self.training:
            return Detections(passes[-1].scores[None], passes[-1].boxes[None], (1.0,))
        scores = [part for one in passes for part in one.scores.chunk(one.groups, dim=1)]
        boxes = [part for one in passes for part in one.boxes.chunk(one.groups, dim=1)]
        weights = [1 / one.groups for one in passes for _ in range(one.groups)]
        return Detections(torch.stack(scores), torch.stack(boxes), tuple(weights))

    def exact_parts(self) -> list[nn.Module]:
        """What says which class and where a box lies: in float32, whatever the rest is in."""
        found = [self.to_scores, self.to_boxes, self.box_places, self.box_bias]
        if self.proposals is not None:
            found += [self.proposals.to_scores, self.proposals.to_boxes]
        return [part for part in found if part is not None]

    @property
    def _groups(self) -> int:
        return self.config.groups if self.training else 1

    @property
    def _queries(self) -> Float[Tensor, "Q D"]:
        return self.queries.weight[: self._groups * self.config.queries]

    @property
    def slow_part(self) -> nn.Module:
        """The image encoder, which others may have trained."""
        return self.image_encoder.encoder

    @property
    def published(self) -> Path | None:
        """Where that encoder's published weights lie, if the config names any."""
        return Path(self.config.weights) if self.config.weights else None

    def _say_what_is_seen(self, shape: tuple[int, int]) -> None:
        """Who watches is told the image's grid."""
        grid = self.image_encoder.axis(shape)
        for layer in self.encoder:
            assert isinstance(layer, EncoderLayer)
            layer.self_attention.rows = layer.self_attention.columns = grid
        for layer in self.decoder:
            assert isinstance(layer, DecoderLayer)
            layer.self_attention.rows = layer.self_attention.columns = OBJECTS
            layer.cross_attention.rows, layer.cross_attention.columns = OBJECTS, grid


def _looking(
    seen: Seen,
    places: Float[Tensor, "#B Q D"],
    groups: int,
    bias: Float[Tensor, "B N Q cells"] | None = None,
) -> Placed:
    """Where queries that lie there look."""
    return Placed(
        places,
        groups=groups,
        source=seen.memory,
        source_places=seen.places,
        source_mask=seen.mask,
        bias=bias,
    )


def _middles(there: Bool[Tensor, "B n"]) -> Float[Tensor, "B n"]:
    """Of each row of an image, as a share of its height; rows beside it lie at its edges."""
    count = there.cumsum(dim=1).float()
    return ((count - 0.5) / count[:, -1:]).clamp(0, 1)


PRESETS: dict[str, ModelConfig] = {
    "detr-nano": DetrConfig(
        encoder="resnet-mini",
        stage=4,
        finer=3,
        classes=8,
        no_object=False,
        queries=16,
        width=128,
        encoder_depth=1,
        depth=3,
        heads=4,
        hidden=256,
        dropout=0.0,
        anchored=True,
        proposed=True,
        box_bias=True,
        groups=4,
    ),
    "detr-mobilenet": DetrConfig(
        encoder="mobilenet-v2",
        finer=4,
        frozen_norms=True,
        classes=3,
        no_object=False,
        encoder_depth=2,
        depth=4,
        hidden=1024,
        dropout=0.0,
        anchored=True,
        proposed=True,
        box_bias=True,
        groups=4,
    ),
    "detr-r50": DetrConfig(frozen=2, frozen_norms=True),
    "detr-r50-dc5": DetrConfig(encoder="resnet-50-dilated", frozen=2, frozen_norms=True),
    "detr-r101": DetrConfig(encoder="resnet-101", frozen=2, frozen_norms=True),
    "detr-r101-dc5": DetrConfig(encoder="resnet-101-dilated", frozen=2, frozen_norms=True),
}
