"""A model stripped for decoding: the same function of the same weights, packed once.

`step` gives what the model's own gives, to rounding or to the precision asked for.
"""

from typing import Any

from saccade.blocks.inference.affine import Precision
from saccade.models.protocol import HasDecodingForm


def lean(model: object, precision: Precision) -> Any:
    """The model stripped for decoding; None if it is one that cannot be."""
    return model.for_decoding(precision) if isinstance(model, HasDecodingForm) else None
