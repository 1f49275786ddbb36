"""What is counted in epochs becomes a number of updates once the data are known."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.errors import ConfigError
from saccade.train.events import Validated
from saccade.train.run import train
from saccade.train.settings import TrainSettings
from tests.train.small import small_recipe, write_corpus

counts = st.integers(1, 500)


@given(batches=counts, epochs=st.floats(0.5, 9), accumulate=st.integers(1, 4))
def test_epochs_are_so_many_passes_over_the_data(
    batches: int, epochs: float, accumulate: int
) -> None:
    asked = TrainSettings(steps=10**6, epochs=epochs, accumulate=accumulate)
    seen = asked.definite(batches).steps * accumulate
    assert abs(seen - epochs * batches) <= max(accumulate, 1)


@given(batches=counts, epochs=st.floats(0.1, 9), steps=st.integers(1, 99))
def test_steps_still_bound_what_epochs_ask_for(batches: int, epochs: float, steps: int) -> None:
    found = TrainSettings(steps=steps, epochs=epochs).definite(batches)
    assert 1 <= found.steps <= steps
    assert found.definite(batches) == found


@given(batches=counts, steps=st.integers(1, 999), warmup=st.integers(1, 99))
def test_without_epochs_nothing_changes(batches: int, steps: int, warmup: int) -> None:
    asked = TrainSettings(steps=steps, warmup=warmup, validate_every=7)
    assert asked.definite(batches) == asked


def test_a_share_of_warm_up_and_a_validation_after_each_epoch() -> None:
    found = TrainSettings(steps=10**6, epochs=3.0, warmup_share=0.1, validate_every=0).definite(100)
    assert (found.steps, found.warmup, found.validate_every) == (300, 30, 100)


def test_below_zero_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"epochs=-1\.0 must be 0 or more"):
        TrainSettings(epochs=-1.0)


def test_a_run_ends_after_its_epochs_and_can_be_started_again(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"steps": 10**6, "epochs": 2.0, "validate_every": 0, "accumulate": 1}
    recipe = small_recipe(write_corpus(tmp_path / "corpus"), **asked)
    steps: list[int] = []

    def watch(event: object) -> None:
        if isinstance(event, Validated):
            steps.append(event.step)

    outcome = train(recipe, tmp_path / "run", watch)
    assert len(steps) == 2
    assert steps[1] == 2 * steps[0] == outcome.step
    again = train(recipe, tmp_path / "run", watch)
    assert (again.step, len(steps)) == (outcome.step, 2)
