"""What all captioners share: an image encoder that reads an image once, and words about it."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from saccade.attention.axes import Axis
from saccade.blocks.output import OutputLayer
from saccade.config import WordModelConfig
from saccade.data.batching.rows import Rows
from saccade.errors import ConfigError
from saccade.models.vision.encoders import encoder_config
from saccade.models.vision.grid_encoder import GridEncoder


@dataclass(frozen=True, kw_only=True)
class CaptionerConfig(WordModelConfig):
    """How a captioner reads images.

    Args:
        encoder: the image encoder, such as resnet-18, mobilenet-v2, convnext-t, vit-b-16 or swin-t.
        stage: which of its stages is read, counted from 1; 0 is the last.
        weights: a file of published weights that the encoder starts from; none: fresh ones.
        frozen: keep the encoder as it is.
    """

    shows_attention: ClassVar[bool] = False  # while it is trained, for losses that ask

    encoder: str = "resnet-nano"
    stage: int = 0
    weights: str = ""
    frozen: bool = False

    def __post_init__(self) -> None:
        encoder_config(self.encoder)
        if self.stage < 0:
            raise ConfigError(f"stage={self.stage} must be 0 (the last) or more")

    @property
    def hard(self) -> bool:
        """Whether it looks at a single cell for each word."""
        return False


class Glances(NamedTuple):
    """What was drawn where a model looks at one cell at a time.

    `hard` is 1 where it did, and 0 in a batch in which it looked at all of them softly.
    """

    log_chance: Float[Tensor, "R T"]  # of the cell that was drawn for each word
    hard: Float[Tensor, ""]


class CaptionHidden(NamedTuple):
    """The hidden state after each word of all captions, end to end; `output` scores the next word.

    `looked` says where attention fell for each word, for losses that ask; T is the longest caption.
    """

    hidden: Float[Tensor, "words D"]
    looked: Float[Tensor, "R T cells"] | None = None
    glances: Glances | None = None


class Captioner(nn.Module, ABC):
    """Image → image encoder → decoder of words."""

    config: CaptionerConfig
    image_encoder: GridEncoder
    longest: int | None = None  # captions of any length
    capturable = True  # the same kernels for as many images with as many captions of one length

    @abstractmethod
    def forward(
        self, images: UInt8[Tensor, "B 3 H W"], captions: Rows, of: Int[Tensor, " R"], /
    ) -> CaptionHidden:
        """Read captions about images; caption i is about image `of[i]`, in that order."""

    def teacher_forced(
        self, images: UInt8[Tensor, "B 3 H W"], tokens: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T D"]:
        """The hidden state at each word of captions of equal length, one to an image."""
        B, T = tokens.shape
        captions = Rows.of(tokens.flatten().cpu(), torch.full((B,), T)).to(tokens.device)
        of = torch.arange(B, device=tokens.device)
        return self(images, captions, of).hidden.unflatten(0, (B, T))

    @abstractmethod
    def start(self, images: UInt8[Tensor, "B 3 H W"], /) -> Any:
        """Look at the images once; no word yet."""

    @abstractmethod
    def step(self, tokens: Int[Tensor, " R"], state: Any) -> tuple[Float[Tensor, "R V"], Any]:
        """One word further."""

    @property
    @abstractmethod
    def output(self) -> OutputLayer: ...

    @property
    def slow_part(self) -> nn.Module:
        """The image encoder, which others may have trained."""
        return self.image_encoder.encoder

    @property
    def published(self) -> Path | None:
        """Where that encoder's published weights lie, if the config names any."""
        return Path(self.config.weights) if self.config.weights else None


IMAGE_GRID = Axis("source", "grid")  # before any was seen
