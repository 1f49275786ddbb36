"""A state is taken apart into named tensors and put together again, whatever it is made of."""

from dataclasses import dataclass
from typing import Any

import pytest
import torch

from saccade.app.export.graphs import Slot, graphs_of, map_state, parts_of
from saccade.blocks.recurrent.rnn import RnnState
from tests.models import zoo


@dataclass
class Nested:
    rnn: RnnState
    layers: list[torch.Tensor]
    position: int = 7
    name: str = "no tensor"


def test_parts_are_named_by_their_fields_and_places() -> None:
    state = Nested(RnnState(torch.ones(2, 1, 3), None), [torch.zeros(2), torch.ones(2)])
    assert list(parts_of(state)) == ["hidden", "layers_0", "layers_1", "position"]


def test_a_state_of_the_same_parts_is_the_same_state() -> None:
    state = Nested(RnnState(torch.ones(2, 1, 3), torch.zeros(2, 1, 3)), [torch.zeros(2)])
    parts = iter(parts_of(state).values())
    again = map_state(state, lambda name, part: next(parts))
    assert again is not state
    assert again == state


@pytest.mark.parametrize(
    ("model", "slots"),
    [
        (
            zoo.TRANSLATORS["convolutional kernel=3 depth=2"],
            {
                Slot("source_keys", ("rows", "source", 8), changes=False),
                Slot("source_values", ("rows", "source", 8), changes=False),
                Slot("source_mask", ("rows", 1, "source"), changes=False, dtype="bool"),
                Slot("recent_0", ("rows", 2, 8)),
                Slot("recent_1", ("rows", 2, 8)),
                Slot("position", ("rows",), dtype="int64"),
            },
        ),
        (
            zoo.LANGUAGE["gpt-nano"],
            {
                Slot(f"past_{what}_{layer}", ("rows", 2, "past", 4))
                for what in ("keys", "values")
                for layer in (0, 1)
            },
        ),
    ],
)
def test_what_a_state_is_made_of_is_found_by_trying(model: Any, slots: set[Slot]) -> None:
    _, decoder = graphs_of(zoo.build(model, torch.float32))
    assert set(decoder.slots.values()) == slots
