"""Scores of a text-to-image model on held-out data."""

from dataclasses import replace
from math import exp

import pytest

from saccade.errors import DataError
from saccade.tasks.text_to_image.data import read_texts
from saccade.tasks.text_to_image.evaluate import coded_split, evaluate_drawer
from saccade.tasks.text_to_image.task import mean_losses, validation_batches
from tests.tasks.text_to_image.drawers import TINY_TASK, tiny_drawer


@pytest.fixture(autouse=True)
def few_scenes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saccade.tasks.captioning.data.HELD_BACK", 9)


def test_losses_are_those_of_validation_and_perplexity_follows_from_them() -> None:
    drawer, steps = tiny_drawer(), list[tuple[int, int | None]]()
    read = read_texts(TINY_TASK, "test")
    found = evaluate_drawer(drawer, read, progress=lambda done, of: steps.append((done, of)))
    data, left_out = coded_split(drawer, read)
    batches = validation_batches(data, drawer.vocabulary, drawer.model.config.text)
    expected = mean_losses(drawer.model, batches, drawer.device)
    assert found["images"] == len(data.codes)
    assert found["left_out"] == left_out
    assert found["per_word"]["loss"] == pytest.approx(expected["words"], rel=1e-5)
    assert found["per_code"]["loss"] == pytest.approx(expected["codes"], rel=1e-5)
    assert found["per_code"]["perplexity"] == pytest.approx(exp(expected["codes"]), rel=1e-4)
    assert found["per_code"]["without_text"] != pytest.approx(expected["codes"], rel=1e-4)
    total = expected["words"] / 8 + expected["codes"] * 7 / 8
    assert found["loss"] == pytest.approx(total, rel=1e-5)
    assert steps[-1] == (2 * len(data.codes), 2 * len(data.codes))


def test_texts_that_are_all_too_long_are_refused() -> None:
    drawer = tiny_drawer()
    drawer.model.config = replace(drawer.model.config, text=5)
    with pytest.raises(DataError, match="none of the texts has at most 2 tokens, and more are not"):
        coded_split(drawer, read_texts(TINY_TASK, "test"))
