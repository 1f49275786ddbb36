"""The sizes of a DETR, and which of what was learnt since it has."""

from dataclasses import dataclass

from torch import nn

from saccade.config import ModelConfig, check_fraction, check_positive
from saccade.errors import ConfigError
from saccade.models.vision.encoders import encoder_config


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

    def build(self) -> nn.Module:
        from saccade.models.detection.detr import Detr

        return Detr(self)
