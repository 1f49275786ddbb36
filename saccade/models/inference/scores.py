"""The form of an image classifier that scores: made when first needed, and kept.

It is made anew where the weights have changed. A GPU computes in bfloat16, its kernels captured.
"""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from saccade.attention.look.watching import sites
from saccade.blocks.inference.affine import Precision
from saccade.blocks.stack import packable
from saccade.models.inference.encoder import CapturedScores, ClassScores, EncoderForInference
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


class KeptScores:
    """Images to class scores, by the form for inference of a model."""

    def __init__(self, model: ImageEncoder) -> None:
        self.model = model
        self._made: dict[Precision, CapturedScores] = {}
        self._weights: object = None

    @torch.inference_mode()
    def __call__(
        self, image: Float[Tensor, "B 3 H W"], precision: ScorePrecision = "auto"
    ) -> Float[Tensor, "B classes"]:
        if any(site.watcher is not None for site in sites(self.model).values()):
            return self.model(image)  # nobody can look into the form for inference
        marks = weight_marks(self.model)
        if marks != self._weights:
            self._made, self._weights = {}, marks
        half = precision == "bfloat16" or (precision == "auto" and image.is_cuda)
        chosen: Precision = "bfloat16" if half else "float32"
        if chosen not in self._made:
            self._made[chosen] = CapturedScores(for_inference(self.model, chosen))
        return self._made[chosen](image).float()
