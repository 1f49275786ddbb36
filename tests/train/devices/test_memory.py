"""Sizes that this machine cannot train are refused in one line, before anything is allocated."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from saccade.errors import ConfigError
from saccade.models import PRESETS
from saccade.train.devices.memory import check_memory, count_parameters
from saccade.train.run import train
from saccade.train.settings import TrainSettings
from tests.train.small import ignore, small_recipe, write_corpus

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        (
            {"width": 1_000_000},
            r"24,0\d\d,\d{3},\d{3},\d{3} weights: .* is 447,\d{3}\.\d GiB, and cpu has",
        ),
        ({"width": 10**9}, r"weights: with gradients and the optimizer that is .* GiB"),
        ({"width": 10**12}, "no model of such sizes can be made .*overflow"),
        ({"hidden": 10**18}, "no model of such sizes can be made"),
        ({"depth": 10**7}, "over 1,000 tensors of weights"),
    ],
)
def test_a_model_too_large_is_refused_before_data_are_read(
    sizes: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("saccade.models.outline.MOST_TENSORS", 1000)
    recipe = small_recipe("/no/such/data")
    model = replace(PRESETS["transformer-nano"], **sizes)
    with pytest.raises(ConfigError, match=message) as raised:
        train(replace(recipe, model=model), tmp_path / "run", ignore)
    assert "lower --model.width, --model.depth" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_rates_by_layer_are_refused_before_data_are_read(tmp_path: Path) -> None:
    recipe = small_recipe("/no/such/data", layer_decay=0.8)
    with pytest.raises(ConfigError, match=r"layer_decay=0\.8: Transformer .*; leave it at 1"):
        train(recipe, tmp_path / "run", ignore)


@pytest.mark.parametrize(
    ("settings", "copies"),
    [
        ({}, 4),
        ({"ema": 0.9}, 5),
        ({"optimizer": "muon"}, 3),
        ({"optimizer": "lamb"}, 4),
        ({"precision": "float64"}, 8),
    ],
)
def test_what_is_needed_is_counted_in_copies_of_the_weights(
    settings: dict[str, Any], copies: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, how = PRESETS["rnn-lm-nano"], TrainSettings(**settings)
    needs = count_parameters(config) * 4 * copies
    monkeypatch.setattr("saccade.train.devices.memory.device_memory", lambda device: needs)
    check_memory(config, how, CPU)
    monkeypatch.setattr("saccade.train.devices.memory.device_memory", lambda device: needs - 1)
    with pytest.raises(ConfigError, match=f"{needs / (1 << 30):,.1f} GiB"):
        check_memory(config, how, CPU)


def test_where_weights_are_split_each_process_needs_its_share_and_once_all_weights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config, how = PRESETS["rnn-lm-nano"], TrainSettings(shard=4)
    count = count_parameters(config)
    needs = (count * 4 // 4 + count) * 4
    monkeypatch.setattr("saccade.train.devices.memory.device_memory", lambda device: needs)
    check_memory(config, how, CPU, 8)
    monkeypatch.setattr("saccade.train.devices.memory.device_memory", lambda device: needs - 1)
    said = r"GiB in each of 4 processes, .*; or split it over more processes \(--train.shard 0\)"
    with pytest.raises(ConfigError, match=said):
        check_memory(config, how, CPU, 8)
    with pytest.raises(ConfigError, match=r"GiB, and cpu has .*--model.depth[^;]*$"):
        check_memory(config, TrainSettings(), CPU)


@pytest.mark.parametrize("seed", [-1, 1 << 32, 1 << 64])
def test_a_seed_out_of_range_is_refused(seed: int) -> None:
    with pytest.raises(ConfigError, match=f"seed={seed} must be at least 0 and below 4294967296"):
        TrainSettings(seed=seed)


@pytest.mark.parametrize("seed", [0, (1 << 32) - 1])
def test_every_seed_in_range_trains(seed: int, tmp_path: Path) -> None:
    recipe = small_recipe(write_corpus(tmp_path / "data"), steps=1, seed=seed)
    assert train(recipe, tmp_path / "run", ignore).step == 1
