"""The bench of ViLBERT: the plain one, with our weights, has our losses and our logits."""

import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
import torch

from saccade.app.bench import joint
from saccade.app.bench.floor import Machine, hidden_flops, joint_flops
from saccade.app.bench.joint import SMALL, GivenPairs, JointBench, Pretrain
from saccade.app.bench.peers.vilbert import PlainPretraining, PlainVilbert, copy_weights
from saccade.app.cli.bench import bench_command
from saccade.errors import ConfigError
from saccade.models.joint.vilbert import Vilbert
from tests.models import zoo

TINY = replace(
    SMALL, vocabulary=50, width=16, hidden=24, region_width=12, region_classes=7, join_width=8
)
QUICK = ["joint", "--device", "cpu", "--seconds", "0", "--batch", "3", "--regions", "4"]
QUICK += ["--shortest", "3", "--longest", "8"]
BENCH = JointBench(device="cpu", batch=3, regions=4, shortest=3, longest=8)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saccade.app.cli.bench.measure_machine", lambda *_: Machine(1e12, 1e11))
    monkeypatch.setattr(joint, "SMALL", TINY)


def figures(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert bench_command([*QUICK, *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)["results"]


@pytest.mark.slow
def test_both_works_are_raced_with_the_same_weights_and_texts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    training, reading = figures(capsys)
    for race in (training, reading):
        ours, theirs = race["rows"]
        assert (ours["name"], theirs["name"]) == ("saccade", "torch")
        assert race["job"]["against"] == "torch"
        assert theirs["agreement"] < 1e-5
        assert (race["job"]["unit"], race["job"]["tokens"]) == ("pairs", 3)
        assert ours["padding"] == 0
        assert theirs["padding"] > 0
        assert race["absent"] == {}
    assert (training["job"]["agreement"], reading["job"]["agreement"]) == ("Δ loss", "Δ logits")
    assert training["job"]["floor_seconds"] > 3 * reading["job"]["floor_seconds"]
    (only,) = figures(capsys, "--work", "infer")
    assert only["job"]["title"].startswith("one reading by a ViLBERT: 4 regions and 3 to 8 tokens")


def test_the_plain_loss_is_ours_and_with_other_weights_another() -> None:
    model = zoo.build(BENCH.config, torch.float32).train()
    assert isinstance(model, Vilbert)
    batch = GivenPairs.draw(BENCH, model.image_encoder.features)
    assert batch.chosen.any()
    assert len(batch.at) > 0
    given = (*batch.padded(), *batch.hidden())
    plain = PlainVilbert(BENCH.config, model.image_encoder.features)
    with torch.no_grad():
        parts = Pretrain(batch).losses(model, batch)
        ours = sum(part.item() for part in parts.values()) / batch.tokens
        assert abs(PlainPretraining(plain)(*given).item() - ours) > 0.1
        copy_weights(model, plain)
        assert PlainPretraining(plain)(*given).item() == pytest.approx(ours, rel=1e-4)
    assert parts.keys() == {"words", "regions", "fit"}
    for changed in (
        {"labels": (batch.labels + 1) % 50},
        {"kinds": (batch.kinds + 1) % 7},
        {"other": (batch.other + 1) % 3},
    ):  # each tells in the loss of both
        other = batch._replace(**changed)
        with torch.no_grad():
            mine = sum(x.item() for x in Pretrain(other).losses(model, other).values()) / 3
            theirs = PlainPretraining(plain)(*other.padded(), *other.hidden()).item()
        assert mine == pytest.approx(theirs, rel=1e-4)
        assert abs(mine - ours) > 1e-4


@pytest.mark.slow
def test_compiled_ones_are_measured_too() -> None:
    only = ["--work", "infer", "--peers", "torch-compiled", "--compiled"]  # an update takes minutes
    command = [sys.executable, "-m", "saccade", "bench", *QUICK, *only, "--json"]
    # In a process of its own: the shape checker of the tests is not for compilers.
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    (race,) = json.loads(done.stdout)["results"]
    assert [row["name"] for row in race["rows"]] == ["saccade", "torch-compiled"]
    assert race["rows"][1]["agreement"] < 1e-4


def test_the_floor_counts_what_must_be_computed() -> None:
    D, E, J, F, G = 16, 12, 8, 24, TINY.region_hidden
    alone = joint_flops(replace(TINY, joins=1), 10, [1], 1, passes=0)
    layers = 3 * (4 * D**2 + 2 * D * F + 2 * D) + (4 * E**2 + 2 * E * G + 2 * E)
    assert alone == 2 * (15 * E + layers)
    once = joint_flops(replace(TINY, joins=1), 10, [1], 1)
    layers = 4 * D**2 + 2 * D * F + 2 * D + 4 * E**2 + 2 * E * G + 2 * E
    meet = 4 * D * J + 2 * D * F + 4 * E * J + 2 * E * G + 4 * J
    assert once - alone == 2 * (layers + meet + (D + E) * J)
    twice = joint_flops(replace(TINY, joins=1), 10, [1], 1, passes=2)
    assert twice - once == once - alone
    many = joint_flops(TINY, 10, [2, 5], 3)
    assert many > joint_flops(TINY, 10, [2], 3) + joint_flops(TINY, 10, [5], 3) - 1e-6
    assert hidden_flops(TINY, 3, 0, 10) == 2 * 3 * (D**2 + 50 * D)
    assert hidden_flops(TINY, 0, 3, 10) == 2 * 3 * (E**2 + 7 * E)


def test_sizes_fit_the_device_and_nonsense_is_refused() -> None:
    assert (BENCH.pairs, BENCH.config.width, BENCH.config.dropout) == (3, 16, 0.0)
    assert JointBench(device="cpu").pairs == 8
    base = JointBench(device="cpu", size="base").config
    assert (base.width, base.region_width, base.vocabulary) == (768, 1024, 30522)
    with pytest.raises(ConfigError, match="shortest=9, longest=8: longest must be the larger"):
        JointBench(shortest=9, longest=8)
    with pytest.raises(ConfigError, match="longest=99: longest must be the larger, and 64 at most"):
        JointBench(device="cpu", longest=99)
    with pytest.raises(ConfigError, match="batch=1 leaves no text a wrong image; give 2 or more"):
        JointBench(batch=1)
    with pytest.raises(ConfigError, match="regions=0 must be at least 1"):
        JointBench(regions=0)
    with pytest.raises(ConfigError, match="peers=jax is not one of torch, torch-compiled"):
        JointBench(peers="jax")
