"""Translators whose decoder is one function of words and state: for one word or for all of them."""

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from jaxtyping import Float, Int
from torch import Tensor, nn

S = TypeVar("S")


class StepwiseTranslator(nn.Module, ABC, Generic[S]):
    """Training decodes the whole target from the first state, decoding one word at a time."""

    readout: nn.Linear

    @abstractmethod
    def start(self, source: Int[Tensor, "B S"], lengths: Int[Tensor, " B"]) -> S:
        """Read the source; nothing decoded yet."""

    @abstractmethod
    def decode(self, target: Int[Tensor, "R T"], state: S) -> tuple[Float[Tensor, "R T D"], S]:
        """What is known after each of the next target words, and the state after the last."""

    def forward(
        self,
        source: Int[Tensor, "B S"],
        lengths: Int[Tensor, " B"],
        target: Int[Tensor, "B T"],
    ) -> Float[Tensor, "B T D"]:
        """What is known after each target word; `output` turns it into scores of the next."""
        return self.decode(target, self.start(source, lengths))[0]

    def output(self, features: Float[Tensor, "*batch D"]) -> Float[Tensor, "*batch V"]:
        return self.readout(features)

    def step(self, tokens: Int[Tensor, " R"], state: S) -> tuple[Float[Tensor, "R V"], S]:
        features, state = self.decode(tokens[:, None], state)
        return self.output(features[:, 0]), state
