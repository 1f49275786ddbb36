"""Using a trained classifier: which classes an image has, and how sure the model is."""

import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from saccade.data.images.given import AnyImage, pixels_of
from saccade.data.images.square import fit_square
from saccade.models.inference.scores import KeptScores, ScorePrecision
from saccade.models.vision.image_encoder import ImageEncoder
from saccade.tasks.classification.data import Classes, ClassificationSettings
from saccade.tasks.classification.vary import Vary
from saccade.tasks.guesses import Guess, best_guesses, probabilities, said_classes

BATCH, GPU_BATCH = 64, 512  # images at a time


class ImageClassifier:
    """A model, its classes, and how images are made to fit."""

    def __init__(
        self, model: nn.Module, classes: Classes, settings: ClassificationSettings
    ) -> None:
        self.model, self.classes, self.settings = model.eval(), classes, settings
        self.device = next(model.parameters()).device
        assert isinstance(model, ImageEncoder)
        self.scores = KeptScores(model)
        self.vary = Vary(
            settings.vary, image=settings.image, kept=settings.kept, pixels=settings.pixels
        )

    @property
    def batch(self) -> int:
        """How many images are told apart at a time."""
        return GPU_BATCH if self.device.type == "cuda" else BATCH

    def prepare(self, image: AnyImage, *, name: str = "") -> UInt8[Tensor, "3 kept kept"]:
        """An image upright and square, just as those that were learnt from.

        `name` is for messages, where the image has none of its own.
        """
        kept = self.settings.kept
        return fit_square(pixels_of(image, name=name, short=2 * kept), kept, self.settings.fit)

    def shown(self, images: UInt8[Tensor, "B 3 kept kept"]) -> Float[Tensor, "B 3 H W"]:
        """Prepared images as the model is given them."""
        return self.vary.plain(images.to(self.device))

    def probabilities(
        self, images: UInt8[Tensor, "B 3 kept kept"], precision: ScorePrecision = "auto"
    ) -> Float[Tensor, "B C"]:
        """Of each class; of several each is a matter of its own. No image depends on another."""
        scores = [self.scores(self.shown(some), precision) for some in images.split(self.batch)]
        return self.as_probabilities(torch.cat(scores)).cpu()

    def as_probabilities(self, scores: Float[Tensor, "B C"]) -> Float[Tensor, "B C"]:
        return probabilities(scores, several=self.classes.several)

    def guesses(self, chances: Float[Tensor, " C"], most: int) -> list[Guess]:
        """The best classes, the likeliest first."""
        return best_guesses(self.classes.names, chances, most)

    def said(self, chances: Float[Tensor, " C"]) -> list[str]:
        """The class, or all those of several that are likely there."""
        return said_classes(self.classes.names, chances, several=self.classes.several)
