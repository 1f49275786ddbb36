"""Images and captions to learn which belong together from: the user's, or the built-in shapes."""

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from saccade.config import ModelConfig, check_positive
from saccade.errors import ConfigError
from saccade.models.joint.clip import ClipConfig
from saccade.models.vision.encoders import encoder_config
from saccade.printable import printable
from saccade.tasks.base import Preparation, Progress, Task
from saccade.tasks.joint.captions import read_both_captions, read_captions
from saccade.tasks.joint.data import JointSettings
from saccade.tasks.joint.task import TextsOfImages
from saccade.tasks.matching.same import marks


@dataclass(frozen=True, kw_only=True)
class MatchingSettings(JointSettings):
    """Which images and texts belong together, by vectors. Without `data`: shapes and captions.

    Args:
        data: folder with metadata.jsonl or COCO JSON, such a file, or a .tar or .zip of one.
        validated: so many images of the validation data are searched.
    """

    example: ClassVar[str] = 'photo.jpg --text "a dog" --text "a cat"'
    decides: ClassVar[Mapping[str, Any]] = {}

    texts: int = 1
    validated: int = 1000

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self, "validated")

    def check(self, model: ModelConfig) -> None:
        if not isinstance(model, ClipConfig):
            raise ConfigError(
                f"{type(model).__name__} does not compare images with texts; take one that does: "
                "clip-nano"
            )
        for name in ("boxes", "detector"):
            if vars(self)[name]:
                raise ConfigError(
                    f"{name}={printable(vars(self)[name])} says where regions are, and "
                    f"{type(model).__name__} compares whole images; leave --{name} out"
                )
        self.check_mirrored()

    def sized_for(self, model: ModelConfig) -> "MatchingSettings":
        """With images as large as the encoder is made for, if it is made for any size."""
        assert isinstance(model, ClipConfig)
        sized = super().sized_for(model)
        return replace(sized, image=encoder_config(model.encoder).expects or self.image)

    def prepare(self, how: Preparation) -> Task[Any]:
        from saccade.tasks.matching.task import Matching

        return Matching(self, how)


def read_matches(
    settings: MatchingSettings, split: str | None, progress: Progress
) -> TextsOfImages:
    """Images and captions; what is known of each caption is what it says, as a number."""
    return _compared(read_captions(settings, split, progress))


def read_both_matches(
    settings: MatchingSettings, progress: Progress
) -> tuple[TextsOfImages, TextsOfImages]:
    """What is learnt from and what is validated on."""
    train, valid = map(_compared, read_both_captions(settings, progress))
    return train, valid


def _compared(read: TextsOfImages) -> TextsOfImages:
    said = marks(text for some in read.texts for text in some)
    return read._replace(truth=array("q", said))
