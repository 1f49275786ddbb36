"""The sizes of a ViLBERT: two streams, and where they meet."""

from dataclasses import dataclass
from typing import Literal

from torch import nn

from saccade.config import WordModelConfig, check_fraction, check_positive
from saccade.errors import ConfigError
from saccade.models.text.bert import BertConfig
from saccade.models.vision.encoders import encoder_config

RegionKind = Literal["cells", "boxes"]
JointHead = Literal["pretraining", "answers", "fit", "regions"]


@dataclass(frozen=True, kw_only=True)
class VilbertConfig(WordModelConfig):
    """Sizes of a ViLBERT.

    Args:
        width: of a word's hidden state.
        depth: layers of words, the last `joins` of which follow a meeting with the regions.
        heads: of attention among words.
        hidden: width inside the MLP of a layer of words.
        longest: how many tokens a text may have.
        region_width: of a region's hidden state.
        region_depth: layers of regions, the last `joins` of which follow a meeting with the words.
        region_heads: of attention among regions.
        region_hidden: width inside the MLP of a layer of regions.
        joins: how often words and regions look at one another.
        join_width: of all heads by which they do, together.
        join_heads: how many those are.
        dropout: share of a sublayer's output that is dropped in training.
        encoder: the image encoder whose grid regions are read from.
        stage: which of its stages, counted from 1; 0 is the last.
        weights: a file of published weights that the encoder starts from; none: fresh ones.
        frozen: keep the encoder as it is.
        regions: the cells of its grid, or boxes that the data give, each the mean of its part.
        bins: a box is cut into so many parts across and down, each with a mean of its own.
        contrast: also compare texts and images before they meet, by the angle between them; finds
            the wrong texts that are hardest to tell, and the few images worth a closer look.
        head: what it tells: hidden words and regions and whether a text fits (`pretraining`), the
            answer to a question (`answers`), whether a text fits (`fit`), or which region a phrase
            means (`regions`).
        labels: how many answers; training takes as many as the data have.
        region_classes: how many kinds of regions the data tell apart; 0: none.
    """

    vocabulary: int = 30522
    width: int = 768
    depth: int = 12
    heads: int = 12
    hidden: int = 3072
    longest: int = 512
    region_width: int = 1024
    region_depth: int = 6
    region_heads: int = 8
    region_hidden: int = 1024
    joins: int = 6
    join_width: int = 1024
    join_heads: int = 8
    dropout: float = 0.1
    encoder: str = "resnet-101"
    stage: int = 0
    weights: str = ""
    frozen: bool = False
    regions: RegionKind = "cells"
    bins: int = 1
    contrast: bool = False
    head: JointHead = "pretraining"
    labels: int = 2
    region_classes: int = 0

    def __post_init__(self) -> None:
        encoder_config(self.encoder)
        positive = ("width", "depth", "heads", "hidden", "longest", "region_width", "region_depth")
        check_positive(self, "vocabulary", *positive, "region_heads", "region_hidden", "labels")
        check_positive(self, "joins", "join_width", "join_heads", "bins")
        check_fraction(self, "dropout")
        for width, heads in (("region_width", "region_heads"), ("join_width", "join_heads")):
            if vars(self)[width] % vars(self)[heads]:
                found = f"{width}={vars(self)[width]} does not divide into"
                raise ConfigError(f"{found} {heads}={vars(self)[heads]}")
        if self.joins > min(self.depth, self.region_depth):
            raise ConfigError(
                f"joins={self.joins}: a layer of words and one of regions follow each; depth="
                f"{self.depth} and region_depth={self.region_depth} must be as many at least"
            )
        if min(self.stage, self.region_classes) < 0:
            found = f"stage={self.stage}, region_classes={self.region_classes}"
            raise ConfigError(f"{found} must be 0 or more")
        _ = self.text

    @property
    def most_words(self) -> int | None:
        return self.longest

    @property
    def text(self) -> BertConfig:
        """The stream of words by itself."""
        names = ("vocabulary", "width", "depth", "heads", "hidden", "longest", "dropout")
        return BertConfig(**{name: vars(self)[name] for name in names})

    def build(self) -> nn.Module:
        from saccade.models.joint.vilbert import Vilbert

        return Vilbert(self)
