"""A DETR as `predict` runs it: the same function, derived from the model itself."""

import copy

import torch
from jaxtyping import Float
from torch import Tensor

from saccade.blocks.inference.affine import Precision
from saccade.models.detection.detr import Detections, Detr
from saccade.models.inference.encoder import fold_norms, fuse_blocks


class DetectorForInference:
    """What a DETR finds, to rounding or to the precision asked for.

    What says where a box lies stays in float32: bfloat16 cannot tell neighbouring pixels apart.
    """

    def __init__(self, model: Detr, precision: Precision) -> None:
        self.dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
        own = copy.deepcopy(model).eval().requires_grad_(False)
        fold_norms(own.image_encoder)
        fuse_blocks(own.image_encoder)
        own.to(dtype=self.dtype)
        own.image_encoder.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        for part in own.exact_parts():
            part.float()
        self.model = own

    @torch.no_grad()
    def __call__(self, image: Float[Tensor, "B 3 H W"], /) -> Detections:
        return self.model(image.to(self.dtype))
