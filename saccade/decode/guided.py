"""Guidance without a classifier: what is said with a text, away from what is said without one.

Ho and Salimans 2022, arXiv:2207.12598. Every row is decoded twice at once, with its text and with
an empty one, and both go on by the same token.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from saccade.blocks.inference.slots import DecoderShape, Places


@dataclass
class GuidedState:
    """Rows by turns: with the text, without it."""

    both: Any

    def select(self, rows: Int[Tensor, " R2"]) -> "GuidedState":
        pairs = 2 * rows[:, None] + torch.arange(2, device=rows.device)
        return GuidedState(self.both.select(pairs.flatten()))


class GuidedPlaces(Places):
    """The last tokens and the time once more, for twice as many rows."""

    def __init__(self, room: DecoderShape, both: Any) -> None:
        super().__init__(room, both.tokens.device)
        self.both = both

    @property
    def bytes(self) -> int:
        return self.both.bytes


class Guided:
    """Implements `Decodable` and `FixedStep` around a model that does.

        z = z(∅) + s (z(text) − z(∅))

    With s = 1 it is the model itself; more follows the text more closely. It lies on the device, so
    that a captured step goes on with another s.
    """

    def __init__(self, model: Any, scale: Float[Tensor, ""]) -> None:
        self.model, self.scale = model, scale

    def step(
        self, tokens: Int[Tensor, " R"], state: GuidedState
    ) -> tuple[Float[Tensor, "R V"], GuidedState]:
        logits, state.both = self.model.step(tokens.repeat_interleave(2), state.both)
        return self._guided(logits), state

    def _guided(self, logits: Float[Tensor, "twice V"]) -> Float[Tensor, "R V"]:
        with_text, without = logits.float().unflatten(0, (-1, 2)).unbind(dim=1)
        return without + self.scale * (with_text - without)

    def sizes(self, state: GuidedState) -> dict[str, int]:
        return self.model.sizes(state.both)

    def slots(self, room: DecoderShape) -> GuidedPlaces:
        assert room.beams == 1, "guided rows have no beams"
        return GuidedPlaces(room, self.model.slots(replace(room, sentences=2 * room.sentences)))

    def fill(self, slots: GuidedPlaces, first: Int[Tensor, " B"], state: GuidedState) -> None:
        self.model.fill(slots.both, first.repeat_interleave(2), state.both)
        slots.begin(first)
        slots.clock.copy_(slots.both.clock)

    def at(self, slots: GuidedPlaces) -> Float[Tensor, "R V"]:
        slots.both.tokens.copy_(slots.tokens.repeat_interleave(2))
        slots.both.clock.copy_(slots.clock)
        return self._guided(self.model.at(slots.both))
