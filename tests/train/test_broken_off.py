"""A signal in a validation ends it at once, and the run that goes on has the bits of another."""

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from saccade.tasks.translation.task import Translation
from saccade.train.events import Validated, ValidationProgress
from saccade.train.run import train
from tests.train.small import STEPS, HaltError, ignore, same_run, small_recipe, write_corpus

Interrupt = Callable[[int], None]


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Validations that a signal comes into, by their number from 1; and no work after it."""
    wanted, count, real = list[int](), [0], Translation.validate

    def validate(*arguments: Any) -> dict[str, float]:
        count[0] += 1
        if count[0] in wanted:
            signal.raise_signal(signal.SIGINT)
            raise AssertionError("went on after the signal")
        return real(*arguments)

    monkeypatch.setattr(Translation, "validate", validate)
    return wanted


def events(path: Path) -> list[tuple[int, tuple[str, ...]]]:
    """Of each line of a diary, its step and what it tells, but for how quick it was."""
    rows = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    return [(row["step"], tuple(sorted(row))) for row in rows]


def test_it_is_owed_and_made_by_the_next_start(tmp_path: Path, interrupted: list[int]) -> None:
    torch.set_num_threads(1)
    recipe = small_recipe(write_corpus(tmp_path / "data"))
    train(recipe, tmp_path / "alone", ignore)
    interrupted += range(9, 40, 2)  # every other one: the run before had eight
    run, stopped = tmp_path / "run", list[int]()
    while True:
        outcome = train(recipe, run, ignore)
        if not outcome.signal:
            break
        assert outcome.signal == signal.SIGINT
        stopped.append(outcome.step)
    assert stopped == list(range(5, STEPS + 1, 5))  # also the last: trained, but not validated
    assert same_run(run, tmp_path / "alone") == []
    assert events(run) == events(tmp_path / "alone")


def test_a_signal_before_it_leaves_it_to_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = small_recipe(write_corpus(tmp_path / "data"))
    asked = list[int]()

    def watch(event: object) -> None:
        if getattr(event, "step", 0) == 5 and not asked:
            asked.append(5)
            signal.raise_signal(signal.SIGTERM)

    def validate(*_: object) -> dict[str, float]:
        raise AssertionError("validated all the same")

    with monkeypatch.context() as patched:
        patched.setattr(Translation, "validate", validate)
        assert train(recipe, tmp_path / "run", watch).step == 5
    told = list[object]()

    def halt(event: object) -> None:
        if isinstance(event, Validated):
            raise HaltError

    with pytest.raises(HaltError):  # it is in the diary then, and not yet in a checkpoint
        train(recipe, tmp_path / "run", halt)
    train(recipe, tmp_path / "run", told.append)
    first = next(event for event in told if isinstance(event, ValidationProgress))
    assert 0 < first.done <= first.total
    steps = [step for step, names in events(tmp_path / "run") if "valid_loss" in names]
    assert steps == list(range(5, STEPS + 1, 5))
