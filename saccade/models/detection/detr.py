"""DETR: objects as a set, each found by a query that looks at the image (Carion et al. 2020,
arXiv:2005.12872), and what makes it learn from few images, each a switch of the config.

Weights are not dropped inside attention, which fused kernels dislike; else it is as published.
"""

import math
from dataclasses import dataclass, replace
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
from saccade.blocks.placed import Placed, places_within
from saccade.blocks.stack import stacked, sublayers
from saccade.config import ModelConfig, check_fraction, check_positive
from saccade.errors import ConfigError
from saccade.models.detection.anchored import BoxBias, BoxPlaces, Proposals, to_logits
from saccade.models.detection.heads import Mlp
from saccade.models.vision.encoders import encoder_config
from saccade.models.vision.image_encoder import image_axis

RARE = 0.01  # how likely an object is thought at first, where each class is scored by itself
OBJECTS = Axis("objects")
IMAGE = Axis("image", "grid")  # before any was seen


@dataclass(frozen=True, kw_only=True)
class DetrConfig(ModelConfig):
    """Sizes of a DETR.

    Args:
        encoder: the image encoder, such as resnet-50, mobilenet-v2, convnext-t, vit-b-16 or swin-t.
        stage: which of its stages is read, counted from 1; 0 is the last.
        finer: an earlier stage, onto whose finer grid what `stage` sees is laid; 0: none.
        weights: a file of published weights that the encoder starts from; none: fresh ones.
        frozen: so many stages of the encoder are kept as they are.
        frozen_norms: keep its BatchNorm as it is; right where batches are small.
        classes: how many kinds of objects; training takes as many as the data have.
        no_object: queries without an object say so by a class of their own, as published; without,
            each class is scored by itself, and such a query by none.
        queries: how many objects an image may have at most.
        width: of a hidden state.
        encoder_depth: layers in which the cells of the image look at one another.
        depth: layers in which queries look at the image.
        heads: of attention in a layer.
        hidden: width inside the MLP of a layer.
        dropout: share of a sublayer's output that is dropped in training.
        anchored: a query is a box, and each layer mends the one before it.
        proposed: the first boxes are those of the cells that look most like objects.
        box_bias: cells are scored by where they lie to the edges of a query's box, too.
        groups: so many sets of queries are trained beside one another, each finding all objects by
            itself; one is used (Chen et al. 2022, Group DETR, arXiv:2207.13085).
    """

    encoder: str = "resnet-50"
    stage: int = 0
    finer: int = 0
    weights: str = ""
    frozen: int = 0
    frozen_norms: bool = False
    classes: int = 91
    no_object: bool = True
    queries: int = 100
    width: int = 256
    encoder_depth: int = 6
    depth: int = 6
    heads: int = 8
    hidden: int = 2048
    dropout: float = 0.1
    anchored: bool = False
    proposed: bool = False
    box_bias: bool = False
    groups: int = 1

    def __post_init__(self) -> None:
        encoder_config(self.encoder)
        check_positive(self, "classes", "queries", "width", "depth", "heads", "hidden", "groups")
        check_fraction(self, "dropout")
        for name in ("stage", "finer", "frozen", "encoder_depth"):
            if vars(self)[name] < 0:
                raise ConfigError(f"{name}={vars(self)[name]} must be 0 or more")
        if self.width % self.heads or self.width % 4:
            raise ConfigError(
                f"width={self.width} must divide into heads={self.heads}, and into 4 for positions"
            )
        for name in ("proposed", "box_bias"):
            if vars(self)[name] and not self.anchored:
                raise ConfigError(f"{name} needs queries that are boxes; add --model.anchored")
        if self.finer and self.stage and self.finer >= self.stage:
            raise ConfigError(
                f"finer={self.finer} must be below stage={self.stage}, or 0 for that stage alone"
            )

    @property
    def scores(self) -> int:
        """How many a query gives."""
        return self.classes + self.no_object

    def build(self) -> "Detr":
        return Detr(self)


class Detections(NamedTuple):
    """What every pass over the queries says: logits of classes, and boxes as cx, cy, w, h.

    The last pass is the answer. The others, earlier layers and further groups, are there while the
    model is trained, each to be matched by itself; `weights` says how much each counts.
    """

    scores: Float[Tensor, "passes B Q C"]
    boxes: Float[Tensor, "passes B Q 4"]
    weights: tuple[float, ...]


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


class DetectorEye(nn.Module):
    """An image as a grid of vectors of the model's width.

    z = W₅ c₅        or        z = conv(W₄ c₄ + upsampled(W₅ c₅))

    The second is the top of a feature pyramid (Lin et al. 2017, arXiv:1612.03144).
    """

    def __init__(self, config: DetrConfig) -> None:
        super().__init__()
        self.encoder = replace(encoder_config(config.encoder), classes=0).build()
        self.stage = self.encoder.checked(config.stage or None)
        self.finer = self.encoder.checked(config.finer) if config.finer else 0
        self.encoder.drop_after(self.stage)
        if config.frozen:
            self.encoder.freeze_below(self.encoder.checked(config.frozen))
        if config.frozen_norms:
            norms = (m for m in self.encoder.modules() if isinstance(m, nn.BatchNorm2d))
            self.encoder.freeze(*norms)
        width = config.width
        self.project = nn.Conv2d(self.encoder.channels(self.stage), width, 1)
        if self.finer:
            self.project_finer = nn.Conv2d(self.encoder.channels(self.finer), width, 1)
            self.smooth = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, images: Float[Tensor, "B 3 H W"]) -> Float[Tensor, "B D h w"]:
        pixels = images.contiguous(memory_format=torch.channels_last)
        if not self.finer:
            return self.project(self.encoder.grid(pixels, self.stage))
        fine = self.encoder.grid(pixels, self.finer)
        coarse = self.project(self.encoder.onward(fine, self.finer, self.stage))
        return self.smooth(self.project_finer(fine) + F.interpolate(coarse, fine.shape[2:]))

    def axis(self, shape: tuple[int, int]) -> Axis:
        """Where the cells lie."""
        return image_axis(shape, self.encoder.cells(self.finer or self.stage))


class Detr(nn.Module):
    """Image → image encoder → encoder → memory; queries + memory → decoder → objects.

    class = W x        box = σ(MLP(x)),  or anchored: σ(logit(the box before) + MLP(x))
    """

    capturable = True  # the same kernels for as many images of a size

    def __init__(self, config: DetrConfig) -> None:
        super().__init__()
        self.config = config
        names = ("width", "heads", "hidden", "dropout")
        width, sizes = config.width, {name: vars(config)[name] for name in names}
        self.eye = DetectorEye(config)
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
                last: nn.Linear = to_boxes.layers[-1]  # type: ignore[assignment]
                nn.init.zeros_(last.weight)
                nn.init.zeros_(last.bias)
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
        if self.config.anchored:
            return self._mend_boxes(seen)
        return self._find(seen)

    def see(self, images: Float[Tensor, "B 3 H W"], inside: Bool[Tensor, "B H W"] | None) -> Seen:
        """The memory that queries look at."""
        if inside is not None:  # what convolutions see beside an image is always the same
            images = images.masked_fill(~inside[:, None], 0.0)
        grid = self.eye(images)
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
        read = stacked(sublayers(self.encoder), nn.Identity(), x)(x, Placed(places, seen.mask))
        return seen._replace(memory=read)

    def _find(self, seen: Seen) -> Detections:
        """As published: a query is learnt, and says from what it has read where its object is."""
        groups, B = self._groups, len(seen.memory)
        places = self._queries[None]  # (1, Q, D)
        x = torch.zeros_like(places).expand(B, -1, -1).to(seen.memory)
        context = _looking(seen, places, groups)
        scores, boxes = list[Tensor](), list[Tensor]()
        for layer in self.decoder:
            x = layer(x, context)
            read = self.decoder_norm(x)
            scores.append(self.to_scores(read))
            boxes.append(self.to_boxes(read).float().sigmoid())
        return self._all(scores, boxes, groups)

    def _mend_boxes(self, seen: Seen) -> Detections:
        """A query has a box, by which it looks, and which each layer mends."""
        groups, B = self._groups, len(seen.memory)
        before, scores, boxes = self._first_boxes(seen)
        before = before.repeat(1, groups, 1)
        x = self._queries.expand(B, -1, -1)
        assert self.box_places is not None
        for number, layer in enumerate(self.decoder):
            bias = None
            if self.box_bias is not None:
                bias = self.box_bias[number](before, seen.down, seen.across)
            x = layer(x, _looking(seen, self.box_places(before).to(x), groups, bias))
            read = self.decoder_norm(x)
            mended = (to_logits(before) + self.to_boxes(read).float()).sigmoid()
            scores.append(self.to_scores(read))
            boxes.append(mended)
            before = mended.detach()
        return self._all(scores, boxes, groups)

    def _first_boxes(self, seen: Seen) -> tuple[Float[Tensor, "B Q 4"], list[Tensor], list[Tensor]]:
        """Learnt, or proposed by cells, whose proposals are judged as well."""
        if self.proposals is None:
            assert self.anchors is not None
            return self.anchors.sigmoid().expand(len(seen.memory), -1, -1), [], []
        found = self.proposals(
            seen.memory, seen.within, seen.down, seen.across, self.config.queries
        )
        return found.boxes.detach(), [found.scores], [found.boxes]

    def _all(self, scores: list[Tensor], boxes: list[Tensor], groups: int) -> Detections:
        """Passes in order, the groups of a layer after one another."""
        if not self.training:
            return Detections(scores[-1].float()[None], boxes[-1][None], (1.0,))
        weights = [weight for one in scores for weight in self._weights(one, groups)]
        apart = ([y for x in many for y in self._apart(x, groups)] for many in (scores, boxes))
        all_scores, all_boxes = (torch.stack(each) for each in apart)
        return Detections(all_scores.float(), all_boxes, tuple(weights))

    def _apart(self, x: Float[Tensor, "B Q n"], groups: int) -> list[Tensor]:
        return list(x.chunk(max(1, groups if x.shape[1] > self.config.queries else 1), dim=1))

    def _weights(self, x: Float[Tensor, "B Q n"], groups: int) -> list[float]:
        parts = len(self._apart(x, groups))
        return [1 / parts] * parts

    @property
    def _groups(self) -> int:
        return self.config.groups if self.training else 1

    @property
    def _queries(self) -> Float[Tensor, "Q D"]:
        return self.queries.weight[: self._groups * self.config.queries]

    @property
    def slow_part(self) -> nn.Module:
        """The image encoder, which others may have trained."""
        return self.eye.encoder

    @property
    def published(self) -> Path | None:
        """Where that encoder's published weights lie, if the config names any."""
        return Path(self.config.weights) if self.config.weights else None

    def _say_what_is_seen(self, shape: tuple[int, int]) -> None:
        """Who watches is told the image's grid."""
        grid = self.eye.axis(shape)
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
    count = there.cumsum(dim=1, dtype=torch.float32)
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
    "detr-r50": DetrConfig(frozen=2, frozen_norms=True),
    "detr-r50-dc5": DetrConfig(encoder="resnet-50-dilated", frozen=2, frozen_norms=True),
    "detr-r101": DetrConfig(encoder="resnet-101", frozen=2, frozen_norms=True),
    "detr-r101-dc5": DetrConfig(encoder="resnet-101-dilated", frozen=2, frozen_norms=True),
}
