"""The form for inference of a model of images: made when first needed, and kept.

It is made anew where the weights have changed. A GPU computes in bfloat16, its kernels captured.
"""

from collections.abc import Callable
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from saccade.attention.look.watching import sites
from saccade.blocks.inference.affine import Precision
from saccade.blocks.stack import packable
from saccade.models.inference.encoder import (
    CapturedReading,
    ClassScores,
    EncoderForInference,
    ReadsImages,
)
from saccade.models.inference.lean import weight_marks
from saccade.models.inference.lean_vit import LeanVit
from saccade.models.vision.image_encoder import ImageEncoder
from saccade.models.vision.vit import Vit

ScorePrecision = Literal["auto", "float32", "bfloat16"]


def for_inference(model: ImageEncoder, precision: Precision) -> ClassScores:
    """The same scores, its weights packed once; a ViT's blocks are packed as a decoder's are."""
    if isinstance(model, Vit) and packable(model.class_sublayers()):
        return LeanVit(model, precision)
    return EncoderForInference(model, precision)


class KeptForm:
    """Images to what a model says of them, by its form for inference."""

    def __init__(self, model: nn.Module, make: Callable[[Any, Precision], ReadsImages]) -> None:
        self.model, self.make = model, make
        self._made: dict[Precision, CapturedReading] = {}
        self._weights: object = None

    @torch.inference_mode()
    def __call__(self, image: Float[Tensor, "B 3 H W"], precision: ScorePrecision = "auto") -> Any:
        if any(site.watcher is not None for site in sites(self.model).values()):
            return self.model(image)  # nobody can look into the form for inference
        marks = weight_marks(self.model)
        if marks != self._weights:
            self._made, self._weights = {}, marks
        half = precision == "bfloat16" or (precision == "auto" and image.is_cuda)
        chosen: Precision = "bfloat16" if half else "float32"
        if chosen not in self._made:
            self._made[chosen] = CapturedReading(self.make(self.model, chosen))
        return self._made[chosen](image)


class KeptScores(KeptForm):
    """Images to class scores."""

    def __init__(self, model: ImageEncoder) -> None:
        super().__init__(model, for_inference)

    def __call__(
        self, image: Float[Tensor, "B 3 H W"], precision: ScorePrecision = "auto"
    ) -> Float[Tensor, "B classes"]:
        return super().__call__(image, precision).float()
