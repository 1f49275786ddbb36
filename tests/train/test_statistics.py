"""Statistics: taken back, followed, and in as few launches for many as for few."""

import copy

import torch
from torch import nn

from saccade.train.optimizers.average import Average
from saccade.train.statistics import Statistics
from tests.launches import launches


def norms(count: int) -> nn.Sequential:
    return nn.Sequential(*(nn.BatchNorm1d(2 + i) for i in range(count)), nn.Linear(2, 2))


def disturb(model: nn.Module) -> None:
    for buffer in model.buffers():
        buffer.add_(3)


def same(one: nn.Module, other: nn.Module) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one.buffers(), other.buffers(), strict=True))


def test_a_skipped_update_leaves_them_as_they_were_and_another_does_not() -> None:
    model = norms(3)
    before, statistics = copy.deepcopy(model), Statistics(model)
    for skip in (True, False):
        old = statistics.copied()
        disturb(model)
        disturbed = copy.deepcopy(model)
        statistics.take_back(old, torch.tensor(skip))
        assert same(model, before if skip else disturbed)
        assert model.state_dict()["0.num_batches_tracked"] == (0 if skip else 3)


def test_what_is_not_finite_goes_without_a_trace() -> None:
    model = norms(2)
    before, statistics = copy.deepcopy(model), Statistics(model)
    old = statistics.copied()
    next(model.buffers()).fill_(torch.nan)
    statistics.take_back(old, torch.tensor(True))
    assert same(model, before)


def test_an_average_has_the_statistics_of_its_model_and_its_own_weights() -> None:
    model = norms(3)
    average = Average(model, decay=0.9)
    disturb(model)
    weights = [parameter.clone() for parameter in model.parameters()]
    for parameter in model.parameters():
        nn.init.zeros_(parameter)
    average.follow(model, torch.tensor(0.0))
    assert same(average.model, model)
    assert all(torch.equal(a, b) for a, b in zip(average.model.parameters(), weights, strict=True))


def test_more_of_them_launch_no_more() -> None:
    def update(count: int) -> int:
        model, skip = norms(count), torch.tensor(False)
        statistics, average = Statistics(model), Average(model, decay=0.9)

        def call() -> None:
            statistics.take_back(statistics.copied(), skip)
            average.follow(model, torch.tensor(0.5))

        return launches(call).total()

    assert update(1) == update(9) < 20
