"""Texts and the images that they tell of, each image as the codes of a discrete VAE."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from jaxtyping import Int
from torch import Tensor

from saccade.config import ModelConfig, check_fraction, check_positive
from saccade.data.images.square import Fit
from saccade.data.shapes import ShapesSettings
from saccade.data.tokens.vocabulary import Level
from saccade.errors import ConfigError, DataError
from saccade.models.image_tokens.dalle import DalleConfig
from saccade.models.image_tokens.dvae import Dvae
from saccade.printable import printable
from saccade.tasks.base import Preparation, Progress, Task, TextSettings, silent
from saccade.tasks.captioning.data import Captioned, CaptioningSettings, read_both, read_captioned
from saccade.tasks.images import ImageSource
from saccade.tasks.reconstruction.asset import ASSET, read_dvae_asset

AT_ONCE = 128  # images that become codes together
SAME = ("data", "image", "fit", "level", "vocabulary", "lowercase", "skip_bad", "scenes", "shapes")


@dataclass(frozen=True, kw_only=True)
class TextToImageSettings(TextSettings):
    """Which texts become which images. Without `data`: the built-in shapes and their captions.

    Args:
        data: folder with metadata.jsonl or COCO JSON, such a file, or a .tar or .zip of one.
        dvae: the run of a discrete VAE, whose codes are learnt; without, one is trained first.
        image: side of the images in pixels.
        fit: how an image becomes square: cut, squeezed, or filled up with grey.
        level: tokens are words, byte pairs trained on the texts, or characters.
        vocabulary: how many tokens at most.
        lowercase: read texts in lower case.
        bpe_dropout: share of the merges of byte pairs that are left out in training, other ones
            each time, so that words are met in other pieces too; 0: none.
        text_weight: share of the loss that is about words; the rest is about codes.
        dropped: share of the texts that are hidden in training, so that a text can be told from
            none (--guidance).
        skip_bad: this many bad rows are skipped and counted; one more stops.
        scenes: how many of shapes to train on.
    """

    budget_unit: ClassVar[str] = "images"
    example: ClassVar[str] = '"a red circle left of a blue square" -o images.png'
    fitted: ClassVar[frozenset[str]] = frozenset({"vocabulary", "codes", "grid"})
    places: ClassVar[frozenset[str]] = frozenset({"data", "dvae"})
    lower_is_better: ClassVar[frozenset[str]] = frozenset({"loss", "codes", "words"})

    dvae: str = ""
    image: int = 64
    fit: Fit = "crop"
    level: Level = "words"
    vocabulary: int = 10_000
    lowercase: bool = True
    bpe_dropout: float = 0.0
    text_weight: float = 1 / 8
    dropped: float = 0.1
    skip_bad: int = 0
    scenes: int = 20_000
    shapes: ShapesSettings = field(default_factory=ShapesSettings)

    def __post_init__(self) -> None:
        check_positive(self, "image", "vocabulary", "scenes")
        check_fraction(self, "text_weight")
        check_fraction(self, "dropped")
        check_fraction(self, "bpe_dropout")
        if self.bpe_dropout and self.level != "bpe":
            raise ConfigError(
                f"bpe_dropout={self.bpe_dropout} is of byte pairs, and level={self.level} has "
                "none; pass --level bpe, or --bpe-dropout 0"
            )

    @property
    def announcement(self) -> str:
        return self.captioning.announcement

    @property
    def captioning(self) -> CaptioningSettings:
        """The same data, as a captioner reads them."""
        return CaptioningSettings(**{name: vars(self)[name] for name in SAME})

    def check(self, model: ModelConfig) -> None:
        if not isinstance(model, DalleConfig):
            raise ConfigError(
                f"{type(model).__name__} writes no images; take one that does: dalle-nano"
            )

    def fitted_sizes(self) -> dict[str, Any]:
        return self.captioning.fitted_sizes()

    def prepare(self, how: Preparation) -> Task[Any]:
        from saccade.tasks.text_to_image.task import TextToImage

        return TextToImage(self, how)


def read_texts(
    settings: TextToImageSettings, split: str | None, progress: Progress = silent
) -> Captioned:
    """A split of the user's images and texts, or of shapes; None is all of a single file."""
    return read_captioned(settings.captioning, split, progress)


def read_both_texts(
    settings: TextToImageSettings, progress: Progress
) -> tuple[Captioned, Captioned]:
    """What is learnt from and what is validated on."""
    return read_both(settings.captioning, progress)


def image_tokenizer(settings: TextToImageSettings, how: Preparation) -> Dvae:
    """The discrete VAE that a run keeps, else the one that its settings name."""
    kept = how.asset(ASSET)
    if kept is not None:
        try:
            return read_dvae_asset(kept.read_bytes()).to(how.device)
        except ValueError as error:
            raise DataError(
                f"{printable(kept)} is no discrete VAE ({printable(error)}); copy the run again as "
                "a whole, or train anew with --start-over"
            ) from None
    if not settings.dvae:
        raise ConfigError("--dvae names no run; train one, `saccade train dvae`, and name it")
    network = how.open_run(settings.dvae, "--dvae").network
    if not isinstance(network, Dvae):
        raise ConfigError(
            f"--dvae {settings.dvae} is a run of {type(network).__name__}, which has no codes; "
            "name one of a discrete VAE, such as `saccade train dvae` makes"
        )
    if network.config.image != settings.image:
        raise ConfigError(
            f"image={settings.image}, but the discrete VAE of --dvae {settings.dvae} has images of "
            f"{network.config.image} pixels; pass --image {network.config.image}"
        )
    return network


@torch.no_grad()
def image_codes(
    dvae: Dvae, images: ImageSource, progress: Progress = silent
) -> Int[Tensor, "I cells"]:
    """The codes of all images, row by row."""
    device, found = next(dvae.parameters()).device, list[Tensor]()
    for numbers in torch.arange(len(images)).split(AT_ONCE):
        found.append(dvae.codes(images[numbers].to(device)).to("cpu", torch.int32))
        progress(int(numbers[-1]) + 1, len(images))
    return torch.cat(found)


def sizes_of(dvae: Dvae) -> Mapping[str, int]:
    """What a discrete VAE decides of a model that writes its codes."""
    return {"codes": dvae.config.codes, "grid": dvae.config.grid}
