"""The ViT's bench: peers with our weights compute what ours does, and who cannot run is named."""

import json
from importlib.util import find_spec
from typing import Any

import pytest
import torch
from torch import nn

from saccade.app.bench.floor import Machine, image_flops
from saccade.app.bench.ours import Classify, LabelledImages
from saccade.app.bench.peers.vit import PEERS, Peer
from saccade.app.bench.vit import VitBench, copy_weights
from saccade.app.cli.bench import bench_command
from saccade.errors import ConfigError
from saccade.models.cost import multiply_adds
from saccade.models.vision.vit import PRESETS, VitConfig

TINY = VitConfig(image=16, patch=8, width=12, depth=2, heads=2, classes=4)
QUICK = ["vit", "--device", "cpu", "--seconds", "0", "--batch", "2"]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saccade.app.cli.bench.measure_machine", lambda *_: Machine(1e12, 1e11))
    monkeypatch.setitem(PRESETS, "vit-nano", TINY)


def figures(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert bench_command([*QUICK, *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)["results"]


def importable(name: str) -> bool:
    """Torchvision's kernels and torch's may not fit, and then it dies on import."""
    if find_spec(PEERS[name].needs) is None:
        return False
    try:
        PEERS[name].make(TINY)
    except RuntimeError:
        return False
    return True


@pytest.mark.slow  # to import them
@pytest.mark.parametrize("name", PEERS)
@torch.no_grad()
def test_a_peer_with_our_weights_gives_our_scores(name: str) -> None:
    if not importable(name):
        pytest.skip(f"{name} cannot be imported")
    torch.manual_seed(0)
    ours, theirs = TINY.build().eval(), PEERS[name].make(TINY).eval()
    for parameter in ours.parameters():
        parameter.add_(0.3 * torch.randn_like(parameter))
    copy_weights(ours, theirs)
    image = torch.randn(2, 3, 16, 16)
    torch.testing.assert_close(theirs(image), ours(image), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_both_works_are_raced_and_the_fastest_peer_is_the_measure(
    capsys: pytest.CaptureFixture[str],
) -> None:
    training, reading = figures(capsys, "--peers", "huggingface")
    for race in (training, reading):
        ours, theirs = race["rows"]
        assert (ours["name"], theirs["name"]) == ("saccade", "huggingface")
        assert race["job"]["against"] == "huggingface"
        assert theirs["ratio"] == 1.0
        assert theirs["agreement"] < 1e-5
        assert race["job"]["unit"] == "pictures"
        assert ours["tokens_per_second"] == pytest.approx(2000 / ours["milliseconds"])
    assert reading["rows"][0]["agreement"] < 1e-5
    assert training["job"]["floor_seconds"] == pytest.approx(3 * reading["job"]["floor_seconds"])


def test_a_peer_that_dies_or_is_not_there_is_named_and_stops_nobody(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(config: VitConfig) -> nn.Module:
        raise RuntimeError("operator torchvision::nms does not exist")

    monkeypatch.setitem(PEERS, "timm", Peer(PEERS["timm"].make, "no_such_package"))
    monkeypatch.setitem(PEERS, "torchvision", Peer(dies, "torch"))
    (race,) = figures(capsys, "--work", "infer", "--peers", "timm,torchvision")
    assert [row["name"] for row in race["rows"]] == ["saccade"]
    assert race["absent"] == {
        "timm": "no_such_package is not installed",
        "torchvision": "RuntimeError: operator torchvision::nms does not exist",
    }
    assert race["rows"][0]["ratio"] is None


def test_the_table_counts_pictures(capsys: pytest.CaptureFixture[str]) -> None:
    bench_command([*QUICK, "--work", "infer", "--peers", "timm"])
    said = capsys.readouterr().out
    assert "2 pictures" in said
    assert "pictures/s" in said
    assert "Δ logits" in said


def test_the_floor_counts_the_published_multiply_adds() -> None:
    assert image_flops(TINY, 1) == 2 * multiply_adds(TINY, 16, 16)
    assert image_flops(PRESETS["vit-b-16"], 256) == pytest.approx(2 * 256 * 17.56e9, rel=1e-3)


def test_the_loss_is_the_sum_over_the_pictures() -> None:
    batch = LabelledImages(torch.randn(3, 3, 16, 16), torch.tensor([0, 3, 1]))
    model, task = TINY.build(), Classify(batch)
    scores = model(batch.image).log_softmax(dim=-1)
    expected = -sum(scores[i, label] for i, label in enumerate(batch.label))
    (loss,) = task.losses(model, task.batch(5)).values()
    torch.testing.assert_close(loss, expected)
    assert task.batch(0).tokens == 3


def test_what_is_not_given_fits_the_device_and_nonsense_is_refused() -> None:
    bench = VitBench(device="cpu")
    assert (bench.images, bench.compiles, bench.config) == (32, False, TINY)
    assert VitBench(device="cpu", model="vit-b-16", compiled="yes").compiles
    with pytest.raises(ConfigError, match="model=vit-huge is not one of auto, vit-nano"):
        VitBench(model="vit-huge")
    with pytest.raises(ConfigError, match="batch=0 must be at least 1"):
        VitBench(batch=0)
    with pytest.raises(ConfigError, match="peers=jax is not one of timm, timm-compiled"):
        VitBench(peers="jax")
