"""Guidance: rows by turns, with the text and without."""

from dataclasses import dataclass

import torch
from torch import Tensor

from saccade.decode.guided import Guided, GuidedState


@dataclass
class Remembered:
    """A state of nothing but numbers, a row each."""

    numbers: Tensor

    def select(self, rows: Tensor) -> "Remembered":
        return Remembered(self.numbers[rows])


class Saying:
    """The logits are what is remembered."""

    def step(self, tokens: Tensor, state: Remembered) -> tuple[Tensor, Remembered]:
        assert len(tokens) == len(state.numbers)
        return state.numbers, state


def guided(rows: int, scale: float) -> tuple[Tensor, GuidedState, Guided]:
    numbers = torch.randn(2 * rows, 5, generator=torch.Generator().manual_seed(0))
    return numbers, GuidedState(Remembered(numbers)), Guided(Saying(), torch.tensor(scale))


def test_logits_move_from_those_without_the_text_through_those_with_it() -> None:
    numbers, state, model = guided(3, 2.5)
    logits, _ = model.step(torch.zeros(3, dtype=torch.long), state)
    with_text, without = numbers[0::2], numbers[1::2]
    torch.testing.assert_close(logits, without + 2.5 * (with_text - without))


def test_a_scale_of_one_is_the_model_itself_and_none_hears_no_text() -> None:
    for scale, first in ((1.0, 0), (0.0, 1)):
        numbers, state, model = guided(3, scale)
        logits, _ = model.step(torch.zeros(3, dtype=torch.long), state)
        torch.testing.assert_close(logits, numbers[first::2])


def test_rows_that_stay_keep_both_of_their_halves() -> None:
    _, state, model = guided(3, 2.5)
    every, _ = model.step(torch.zeros(3, dtype=torch.long), state)
    kept = state.select(torch.tensor([2, 0]))
    some, _ = model.step(torch.zeros(2, dtype=torch.long), kept)
    torch.testing.assert_close(some, every[[2, 0]])
