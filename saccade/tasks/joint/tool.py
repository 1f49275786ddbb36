"""Using a trained joint model: images with their regions, and texts about them, read together."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from saccade.data.batching.rows import Rows
from saccade.data.images.given import AnyImage, pixels_of
from saccade.data.images.regions import fitted_boxes
from saccade.data.images.square import fit_square
from saccade.data.tokens.reading import Reading
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.models.joint.vilbert import Vilbert
from saccade.tasks.base import OpenRun, no_runs
from saccade.tasks.joint.batch import Glimpse
from saccade.tasks.joint.boxes import RegionPlaces
from saccade.tasks.joint.data import JointSettings
from saccade.tasks.joint.read_texts import check_length, read_text, reading_rows

BATCH, GPU_BATCH = 16, 128  # images at a time
DETECTOR = "the detector that the run was trained with, which must stay where it was"


class SightedImage(NamedTuple):
    """An image as the model is given it, and its regions by their corners, as shares."""

    pixels: UInt8[Tensor, "3 side side"]
    boxes: Float[Tensor, "R 4"]


class JointTool:
    """A model that reads images and texts together, and how both are made to fit."""

    def __init__(
        self,
        model: nn.Module,
        vocabulary: Vocabulary,
        settings: JointSettings,
        open_run: OpenRun = no_runs,
    ) -> None:
        assert isinstance(model, Vilbert)
        self.model, self.vocabulary, self.settings = model.eval(), vocabulary, settings
        self.places = RegionPlaces(settings, open_run, DETECTOR)
        self.device = next(model.parameters()).device

    @property
    def batch(self) -> int:
        """How many images are looked at together."""
        return GPU_BATCH if self.device.type == "cuda" else BATCH

    @property
    def wants_boxes(self) -> bool:
        """Whether somebody must say where its regions are."""
        return self.model.config.regions == "boxes"

    def prepare(
        self, image: AnyImage, boxes: Float[Tensor, "R 4"] | None = None, *, name: str = ""
    ) -> SightedImage:
        """An image upright and square, just as those that were learnt from; boxes with it.

        Boxes are corners as shares of the image as it was given; `name` is for messages.
        """
        side, fit = self.settings.image, self.settings.fit
        pixels = pixels_of(image, name=name, short=2 * side)
        given = torch.zeros(0, 4) if boxes is None else boxes.float().view(-1, 4)
        placed = fitted_boxes(given, pixels.shape[1], pixels.shape[2], fit).clamp(0, 1)
        return SightedImage(fit_square(pixels, side, fit), placed)

    def reading(self, text: str) -> Reading:
        """A text as tokens; what is empty or too long is refused."""
        return read_text(self.vocabulary, text, self.model.longest)

    def check_length(self, tokens: int) -> None:
        """Refuse a text of more tokens than the model reads."""
        check_length(tokens, self.model.longest)

    def glimpse(self, images: Sequence[SightedImage]) -> Glimpse:
        """Images with their regions, side by side."""
        counts = torch.tensor([len(one.boxes) for one in images])
        boxes = torch.zeros(len(images), int(counts.max()), 4)
        for row, one in enumerate(images):
            boxes[row, : len(one.boxes)] = one.boxes
        pixels = torch.stack([one.pixels for one in images])
        return Glimpse.of(pixels, boxes, counts).to(self.device)

    def rows(self, texts: Sequence[Reading]) -> tuple[Rows, Int[Tensor, " words"]]:
        """Texts end to end, and the types of their tokens."""
        return reading_rows(texts, self.device)
