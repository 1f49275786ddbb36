"""Translators whose decoder is one function of words and state: for one word or for all of them."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from saccade.blocks.inference.affine import Affine, affine
from saccade.blocks.output import OutputLayer


@dataclass(kw_only=True)
class StepState:
    """What a state holds beside a model's own: the output layer, packed for many steps."""

    output: Affine | None = None


S = TypeVar("S", bound=StepState)


class StepwiseTranslator(nn.Module, ABC, Generic[S]):
    """Training decodes the whole target from the first state, decoding one word at a time."""

    readout: nn.Linear
    longest: int | None = None  # sentences of any length

    @abstractmethod
    def start(self, source: Int[Tensor, "B S"], lengths: Int[Tensor, " B"]) -> S:
        """Read the source; nothing decoded yet."""

    @abstractmethod
    def decode(self, target: Int[Tensor, "R T"], state: S) -> tuple[Float[Tensor, "R T D"], S]:
        """The hidden state after each of the next target words, and the state after the last."""

    def forward(
        self,
        source: Int[Tensor, "B S"],
        lengths: Int[Tensor, " B"],
        target: Int[Tensor, "B T"],
    ) -> Float[Tensor, "B T D"]:
        """The hidden state after each target word; `output` turns it into logits of the next."""
        return self.decode(target, self.start(source, lengths))[0]

    @property
    def output(self) -> OutputLayer:
        return OutputLayer(self.readout.weight, self.readout.bias)

    def step(self, tokens: Int[Tensor, " R"], state: S) -> tuple[Float[Tensor, "R V"], S]:
        features, after = self.decode(tokens[:, None], state)
        after.output = state.output or packed(self.output)
        return (after.output or self.output)(features[:, 0]), after


def packed(output: OutputLayer) -> Affine | None:
    """The output layer for as long as its weights stay as they are; autocast makes others."""
    changes = torch.is_grad_enabled() or torch.compiler.is_compiling()
    changes = changes or torch.is_autocast_enabled(output.weight.device.type)
    return None if changes else affine(*output, precision="float32")
