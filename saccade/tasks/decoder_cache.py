"""The forms of a model that decode: in a precision of choice, its steps captured on a GPU.

Made when first needed and kept, for as long as the weights stay as they are.
"""

from typing import Any

from torch import nn

from saccade.attention.look.watching import sites
from saccade.blocks.inference.affine import Precision
from saccade.decode.captured import CapturedDecoder
from saccade.decode.engine import AnyPrecision
from saccade.errors import ConfigError
from saccade.models.inference.lean import lean, weight_marks


class DecoderCache:
    """What decodes in place of a model, by precision."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self._made: dict[Precision, Any] = {}
        self._captured: dict[Precision, CapturedDecoder] = {}
        self._weights: object = None

    def decoder(self, precision: AnyPrecision) -> Any:
        """The model stripped for decoding, or the model itself where that is not to be had."""
        return self._stripped(self._checked(precision)) or self._plain(precision)

    def captured(self, precision: AnyPrecision) -> CapturedDecoder | None:
        """Steps of the same that a GPU replays, where there is a GPU."""
        chosen = self._checked(precision)
        decoder = self._stripped(chosen)
        if decoder is None or not decoder.can_be_captured:
            return None
        if chosen not in self._captured:
            self._captured[chosen] = CapturedDecoder(decoder)
        return self._captured[chosen]

    def _stripped(self, precision: Precision) -> Any:
        if precision not in self._made:
            self._made[precision] = lean(self.model, precision)
        return self._made[precision]

    def _plain(self, precision: AnyPrecision) -> nn.Module:
        if precision in ("bfloat16", "int8"):
            raise ConfigError(
                f"precision={precision!r} is not to be had: {type(self.model).__name__} decodes in "
                "float32"
            )
        return self.model

    def _checked(self, precision: AnyPrecision) -> Precision:
        if any(site.watcher is not None for site in sites(self.model).values()):
            raise ConfigError(
                "a search cannot be watched, for its hypotheses change places as it goes; look at "
                "what it found: predict(…, look=True), or the result's look()"
            )
        marks = weight_marks(self.model)
        if marks != self._weights:  # the model was trained on, or moved
            self._made, self._captured, self._weights = {}, {}, marks
        on_cpu = next(self.model.parameters()).device.type == "cpu"
        if precision == "int8" and not on_cpu:
            raise ConfigError("precision='int8' is for the CPU; on a GPU use bfloat16")
        return ("float32" if on_cpu else "bfloat16") if precision == "auto" else precision
