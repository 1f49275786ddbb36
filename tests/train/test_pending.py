"""Updates handed over without waiting: when they are settled, all is as if one had waited."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from saccade.errors import RunError
from saccade.train.events import Skipped, Update
from saccade.train.fit import Trainer
from saccade.train.optimizers.optimizer import set_rate
from tests.marks import one_fast
from tests.train.small import write_corpus
from tests.train.test_fit import everything, trainer, weights

Spoil = Callable[..., Tensor]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("corpus"))


def same(one: Trainer, other: Trainer) -> bool:
    ours, theirs = everything(one), everything(other)
    return len(ours) == len(theirs) > 50 and all(a.equal(b) for a, b in zip(ours, theirs))


def bad_at(one: Trainer, *updates: int, gradient: bool = False) -> Trainer:
    """Its loss, or only its gradient, is not a number in some updates."""
    real, calls = one.task.losses, [0]

    def losses(model: nn.Module, batch: Any) -> dict[str, Tensor]:
        ((name, found),) = real(model, batch).items()
        calls[0] += 1
        if calls[0] not in updates:
            return {name: found}
        if not gradient:
            return {name: found * math.nan}
        found.register_hook(lambda flow: flow * math.nan)
        return {name: found}

    one.task.losses = losses  # type: ignore[method-assign]
    return one


@pytest.mark.slow
@pytest.mark.parametrize("piles", [[1] * 6, [6], [2, 3, 1]])
def test_settling_later_tells_and_learns_the_same(piles: list[int], data: Path) -> None:
    waits, hands_over = trainer(data), trainer(data)
    told = [waits.update() for _ in range(6)]
    events: list[Update | Skipped] = []
    for pile in piles:
        for _ in range(pile):
            hands_over.advance()
        events += hands_over.settle()
    assert events == told
    assert same(waits, hands_over)
    assert hands_over.settle() == []


@pytest.mark.slow
@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("bad", [[3], [1], [5], [2, 3], [2, 4]])
def test_skipping_leaves_out_exactly_what_is_not_finite(
    bad: list[int], gradient: bool, data: Path
) -> None:
    how: dict[str, Any] = {"bad_loss": "skip", "accumulate": 1}
    one = bad_at(trainer(data, **how), *bad, gradient=gradient)
    for _ in range(5):
        one.advance()
    events = one.settle()
    assert [event.step for event in events] == [1, 2, 3, 4, 5]
    skipped = [event for event in events if isinstance(event, Skipped)]
    assert skipped == [Skipped(step, [step - 1]) for step in bad]
    assert one.skipped == len(bad)
    patient = bad_at(trainer(data, **how), *bad, gradient=gradient)
    for step in range(1, 6):
        before = weights(patient.model) + weights(patient.kept)
        patient.update()
        after = weights(patient.model) + weights(patient.kept)
        unchanged = all(a.equal(b) for a, b in zip(before, after))
        assert unchanged == (step in bad)
    assert same(one, patient)


@pytest.mark.parametrize("optimizer", one_fast(["adamw", "muon"]))
@pytest.mark.parametrize("gradient", one_fast([False, True]))
@pytest.mark.parametrize("bad", one_fast([1, 2, 4]))
def test_stopping_leaves_the_weights_as_before_what_was_not_finite(
    bad: int, gradient: bool, optimizer: str, data: Path
) -> None:
    """However much was handed over after it."""
    how: dict[str, Any] = {"accumulate": 1, "optimizer": optimizer}
    one = bad_at(trainer(data, **how), bad, gradient=gradient)
    for _ in range(4):
        one.advance()
    with pytest.raises(RunError, match=rf"update {bad}: .*micro-batches \[{bad - 1}\]"):
        one.settle()
    good = trainer(data, **how)
    for _ in range(bad - 1):
        good.update()
    ours, theirs = one.checkpoint().tensors, good.checkpoint().tensors
    for part in ("model", "average"):
        assert all(ours[part][name].equal(value) for name, value in theirs[part].items())
    learnt = [t for name, t in ours["optimizer"].items() if not name.endswith("step")]
    if bad > 1:
        expected = [t for name, t in theirs["optimizer"].items() if not name.endswith("step")]
        assert all(a.equal(b) for a, b in zip(learnt, expected, strict=True))


def test_once_noticed_what_was_not_finite_no_longer_holds_learning_up(data: Path) -> None:
    one = bad_at(trainer(data, accumulate=1), 2)
    one.update()
    with pytest.raises(RunError, match="update 2: "):
        one.update()
    before = weights(one.model)
    assert isinstance(one.update(), Update)
    assert not any(a.equal(b) for a, b in zip(before, weights(one.model)))


def test_the_rate_of_an_optimizer_is_set_in_place_where_a_device_reads_it() -> None:
    weight = nn.Parameter(torch.ones(2))
    on_device = torch.optim.AdamW([weight], lr=torch.tensor(0.5), capturable=False)
    plain = torch.optim.AdamW([weight], lr=0.5)
    place = on_device.param_groups[0]["lr"]
    for optimizer in (on_device, plain):
        set_rate(optimizer, 0.125)
        assert float(optimizer.param_groups[0]["lr"]) == 0.125
    assert on_device.param_groups[0]["lr"] is place
    assert isinstance(plain.param_groups[0]["lr"], float)
