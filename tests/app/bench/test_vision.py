"""The vision bench: peers with our weights compute what ours does, and who cannot run is named."""

import json
from importlib.util import find_spec
from typing import Any

import pytest
import torch
from torch import nn

from saccade.app.bench.floor import Machine, image_floor
from saccade.app.bench.kernels import group_of
from saccade.app.bench.ours import Classify, LabelledImages
from saccade.app.bench.peers.vision import FAMILIES, NEEDS, copy_weights
from saccade.app.bench.vision import LARGE, PRESETS, SMALL, VisionBench
from saccade.app.cli.bench import bench_command
from saccade.errors import ConfigError
from saccade.models.cost import multiply_adds
from saccade.models.vision.convnext import ConvNextConfig
from saccade.models.vision.image_encoder import ImageEncoderConfig
from saccade.models.vision.mvit import MvitConfig
from saccade.models.vision.resnet import ResNetConfig
from saccade.models.vision.swin import SwinConfig
from saccade.models.vision.vit import VitConfig

TINY = VitConfig(image=16, patch=8, width=12, depth=2, heads=2, classes=4)
TINIES: dict[str, ImageEncoderConfig] = {
    "vit-nano": TINY,
    "swin-nano": SwinConfig(width=8, depths=(2, 1), heads=(1, 2), window=4, classes=4),
    "convnext-nano": ConvNextConfig(depths=(1, 1, 1, 1), widths=(4, 8, 8, 8), classes=4),
    "mvit-nano": MvitConfig(image=32, width=8, depths=(1, 1), classes=4),
    "resnet-18": ResNetConfig(depth=18, classes=4),
}
PEERS = [(name, peer) for name, tiny in TINIES.items() for peer in FAMILIES[type(tiny)].peers]
QUICK = ["vision", "--device", "cpu", "--seconds", "0", "--batch", "2"]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saccade.app.cli.bench.measure_machine", lambda *_: Machine(1e12, 1e11))
    for name, tiny in TINIES.items():
        monkeypatch.setitem(PRESETS, name, tiny)


def figures(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert bench_command([*QUICK, *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)["results"]


def made(name: str, peer: str, side: int) -> nn.Module | None:
    """Torchvision's kernels and torch's may not fit, and then it dies on import."""
    if find_spec(NEEDS[peer]) is None:
        return None
    try:
        return FAMILIES[type(TINIES[name])].peers[peer](TINIES[name], side).eval()
    except RuntimeError:
        return None


@pytest.mark.slow  # to import them
@pytest.mark.parametrize(("name", "peer"), PEERS)
@torch.no_grad()
def test_a_peer_with_our_weights_gives_our_scores(name: str, peer: str) -> None:
    torch.manual_seed(0)
    ours, side = TINIES[name].build().eval(), TINIES[name].expects or 64
    theirs = made(name, peer, side)
    if theirs is None:
        pytest.skip(f"{peer} cannot be imported")
    for parameter in ours.parameters():
        parameter.add_(0.1 * torch.randn_like(parameter))
    copy_weights(ours, theirs, FAMILIES[type(TINIES[name])].names)
    image = torch.randn(2, 3, side, side)
    torch.testing.assert_close(theirs(image), ours(image), rtol=1e-3, atol=1e-4)


@pytest.mark.slow
def test_every_family_is_raced_with_its_floor(capsys: pytest.CaptureFixture[str]) -> None:
    races = figures(capsys, "--work", "infer", "--peers", "torchvision", "--image", "32")
    assert [race["job"]["title"].split()[3].strip(":") for race in races] == SMALL.split(",")
    for race in races:
        ours = race["rows"][0]
        assert ours["name"] == "saccade"
        assert ours["agreement"] < 1e-4
        assert 0 < race["job"]["floor_seconds"] < 1e-3 * ours["milliseconds"]
    assert set(LARGE.split(",")) <= PRESETS.keys()


def test_the_profile_says_where_the_time_goes(capsys: pytest.CaptureFixture[str]) -> None:
    few = ["--models", "resnet-18", "--work", "infer", "--peers", "torchvision"]
    (race,) = figures(capsys, *few, "--profile")
    spent = race["spent"]["saccade"]
    assert {"convolution", "elementwise and copies"} <= spent.keys()
    assert list(spent.values()) == sorted(spent.values(), reverse=True)
    bench_command([*QUICK, *few, "--profile"])
    assert "saccade spends, ms: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("kernel", "group"),
    [
        ("fmha_cutlassB_bf16_aligned_64x64_k32_sm80", "attention"),
        ("cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma", "attention"),
        ("nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NTN", "product"),
        ("sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc", "convolution"),
        ("void conv2d_c1_k1_nhwc_kernel<__nv_bfloat16, 7>", "convolution"),
        ("triton_per_fused_add_native_layer_norm_12", "norm"),
        (
            "void at::native::(anonymous)::multi_tensor_apply_kernel<FusedAdamMathFunctor>",
            "optimizer",
        ),
        ("triton_poi_fused_add_mul_3", "elementwise and copies"),
        ("_look_back_at", "attention"),
        ("_look_through", "search"),
        ("_advance_rows", "search"),
        ("_draw_rows", "search"),
        ("void gemv2T_kernel_val<int, int, __nv_bfloat16>", "product"),
        ("mkldnn::_linear_pointwise", "product"),
    ],
)
def test_kernels_are_told_apart_by_name(kernel: str, group: str) -> None:
    assert group_of(kernel) == group


@pytest.mark.slow
def test_both_works_are_raced_and_the_fastest_peer_is_the_measure(
    capsys: pytest.CaptureFixture[str],
) -> None:
    training, reading = figures(capsys, "--models", "vit-nano", "--peers", "huggingface")
    for race in (training, reading):
        ours, theirs = race["rows"]
        assert (ours["name"], theirs["name"]) == ("saccade", "huggingface")
        assert race["job"]["against"] == "huggingface"
        assert theirs["ratio"] == 1.0
        assert theirs["agreement"] < 1e-5
        assert race["job"]["unit"] == "images"
        assert ours["tokens_per_second"] == pytest.approx(2000 / ours["milliseconds"])
    assert reading["rows"][0]["agreement"] < 1e-5
    assert training["job"]["floor_seconds"] == pytest.approx(3 * reading["job"]["floor_seconds"])


def test_a_peer_that_dies_or_is_not_there_is_named_and_stops_nobody(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(config: VitConfig, side: int) -> nn.Module:
        raise RuntimeError("operator torchvision::nms does not exist")

    monkeypatch.setitem(NEEDS, "timm", "no_such_package")
    monkeypatch.setitem(NEEDS, "torchvision", "torch")
    monkeypatch.setitem(FAMILIES[VitConfig].peers, "torchvision", dies)
    (race,) = figures(
        capsys, "--models", "vit-nano", "--work", "infer", "--peers", "timm,torchvision"
    )
    assert [row["name"] for row in race["rows"]] == ["saccade"]
    assert race["absent"] == {
        "timm": "no_such_package is not installed",
        "torchvision": "RuntimeError: operator torchvision::nms does not exist",
    }
    assert race["rows"][0]["ratio"] is None


def test_the_table_counts_images(capsys: pytest.CaptureFixture[str]) -> None:
    bench_command([*QUICK, "--models", "vit-nano", "--work", "infer", "--peers", "timm"])
    said = capsys.readouterr().out
    assert "2 images" in said
    assert "images/s" in said
    assert "Δ logits" in said


def test_the_floor_is_the_operations_or_the_bytes_whichever_takes_longer() -> None:
    config = TINIES["convnext-nano"]
    operations = image_floor(config, 3, 64, Machine(1e9, 1e30), 2)
    assert operations == pytest.approx(3 * 2e-9 * multiply_adds(config, 64, 64))
    by_bytes = image_floor(config, 3, 64, Machine(1e30, 1e9), 2)
    assert by_bytes == pytest.approx(image_floor(config, 3, 64, Machine(1e30, 1e9), 4) / 2)
    stem = 3 * (3 * 64 * 64 + 4 * 16 * 16) + 4 * 48  # images in, maps out, and the weights
    assert by_bytes > 2e-9 * stem
    both = image_floor(config, 3, 64, Machine(6e9, 1e9), 2)
    assert max(operations / 6, by_bytes) < both < operations / 6 + by_bytes


def test_the_loss_is_the_sum_over_the_pictures() -> None:
    batch = LabelledImages(torch.randn(3, 3, 16, 16), torch.tensor([0, 3, 1]))
    model, task = TINY.build(), Classify(batch)
    scores = model(batch.image).log_softmax(dim=-1)
    expected = -sum(scores[i, label] for i, label in enumerate(batch.label))
    (loss,) = task.losses(model, task.batch(5)).values()
    torch.testing.assert_close(loss, expected)
    assert task.batch(0).tokens == 3


def test_what_is_not_given_fits_the_device_and_nonsense_is_refused() -> None:
    bench = VisionBench(device="cpu")
    assert (bench.images, bench.compiles, bench.names) == (32, False, SMALL.split(","))
    assert (bench.config("vit-nano"), bench.side(TINY)) == (TINY, 16)
    assert VisionBench(device="cpu", image=32).side(TINIES["swin-nano"]) == 32
    assert vars(bench.config("swin-t"))["drop_path"] == 0
    assert VisionBench(device="cpu", models="vit-b-16", compiled="yes").compiles
    with pytest.raises(ConfigError, match="models=vit-huge is not one of auto, vit-nano"):
        VisionBench(models="swin-t,vit-huge")
    with pytest.raises(ConfigError, match="batch=0 must be at least 1"):
        VisionBench(batch=0)
    with pytest.raises(ConfigError, match="peers=jax is not one of timm, timm-compiled"):
        VisionBench(peers="jax")
