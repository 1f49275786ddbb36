"""A model stripped for decoding: the same function of the same weights, packed once.

`step` gives what the model's own gives, to rounding or to the precision asked for.
"""

from typing import Any

from torch import nn

from saccade.blocks.inference.affine import Precision
from saccade.models.protocol import HasDecodingForm


def lean(model: object, precision: Precision) -> Any:
    """The model stripped for decoding; None if it is one that cannot be."""
    return model.for_decoding(precision) if isinstance(model, HasDecodingForm) else None


def weight_marks(model: nn.Module) -> list[tuple[int, int]]:
    """Others than before once a model was trained on, or moved: what was packed is then stale."""
    return [(p.data_ptr(), _version(p)) for p in model.parameters()]


def _version(parameter: nn.Parameter) -> int:
    return 0 if parameter.is_inference() else parameter._version
