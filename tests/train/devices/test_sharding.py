"""Where weights lie, and what cannot be split or recomputed."""

from pathlib import Path

import pytest
import torch
from torch import nn

from saccade.errors import ConfigError
from saccade.models.text.gpt import GptConfig
from saccade.train.devices.distributed import World
from saccade.train.devices.sharding import (
    WholeWeights,
    check_layout,
    make_layout,
    recompute_blocks,
    separate_parts,
    shard_size,
)
from saccade.train.run import train
from saccade.train.settings import TrainSettings
from tests.train.small import ignore, small_recipe


@pytest.mark.parametrize(
    ("shard", "processes", "size"),
    [(1, 1, 1), (1, 8, 1), (0, 1, 1), (0, 8, 8), (2, 8, 2), (8, 8, 8)],
)
def test_so_many_processes_hold_the_weights_between_them(
    shard: int, processes: int, size: int
) -> None:
    assert shard_size(TrainSettings(shard=shard), processes) == size


@pytest.mark.parametrize(("shard", "processes"), [(2, 1), (3, 8), (16, 8)])
def test_what_does_not_go_up_is_refused(shard: int, processes: int) -> None:
    said = rf"shard={shard} does not divide the number of processes, {processes}; start a multiple"
    with pytest.raises(ConfigError, match=rf"{said} .*--nproc-per-node {shard}.*shard 0 for all"):
        shard_size(TrainSettings(shard=shard), processes)


@pytest.mark.parametrize("optimizer", ["muon", "lamb"])
def test_optimizers_that_need_whole_weights_are_refused(optimizer: str) -> None:
    settings = TrainSettings(shard=0, optimizer=optimizer)  # type: ignore[arg-type]
    assert shard_size(settings, 1) == 1
    said = rf"optimizer={optimizer} needs whole weights, .*; use --train.optimizer adamw"
    with pytest.raises(ConfigError, match=said):
        shard_size(settings, 2)


def test_it_is_refused_before_data_are_read_or_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="shard=2 does not divide"):
        train(small_recipe("/no/such/data", shard=2), tmp_path / "run", ignore)
    assert not (tmp_path / "run").exists()


def test_whole_weights_are_left_as_they_are() -> None:
    layout = make_layout(TrainSettings(), World(0, 1, torch.device("cpu")))
    assert isinstance(layout, WholeWeights)
    model = nn.Linear(2, 2)
    assert layout.wrap(layout.place(model), None) is model
    with layout.whole(model) as one:
        assert one is model
    assert layout.like(model.bias, model.weight) is model.bias


def test_a_weight_that_cannot_be_split_is_named() -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    model.register_parameter("heat", nn.Parameter(torch.ones(())))
    check_layout(model, TrainSettings(shard=0), 1)
    said = r"shard=0: heat of Sequential is a single number, .*; leave --train\.shard at 1"
    with pytest.raises(ConfigError, match=said):
        check_layout(model, TrainSettings(shard=0), 2)


def test_blocks_are_asked_to_recompute_and_who_has_none_is_refused() -> None:
    model = GptConfig(vocabulary=9, width=4, depth=3, heads=1, longest=4).build()
    assert separate_parts(model) == list(model.decoder)
    for share, count in ((0.0, 0), (0.5, 2), (1.0, 3)):
        recompute_blocks(model, share)
        assert [part.separate and part.recompute for part in separate_parts(model)] == [
            number < count for number in range(3)
        ]
    said = r"checkpoint_activations=1\.0: Linear has no blocks that could be .*; leave it at 0"
    with pytest.raises(ConfigError, match=said):
        check_layout(nn.Linear(2, 2), TrainSettings(checkpoint_activations=1.0), 1)
    check_layout(model, TrainSettings(checkpoint_activations=1.0), 1)
