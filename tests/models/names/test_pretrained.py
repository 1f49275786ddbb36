"""Weights of others: whatever they are wrapped in and called, told what became of each."""

import argparse
import os
import pickle
import struct
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from saccade.errors import CheckpointError
from saccade.models.names.pretrained import Report, load_pretrained, read_weights
from saccade.models.vision.image_encoder import ImageEncoderConfig
from saccade.models.vision.mobilenet import MobileNetConfig
from saccade.models.vision.resnet import ResNetConfig
from saccade.models.vision.vit import Vit, VitConfig
from tests.models.vision.test_vit import CONFIG, hugging_face, picture

State = dict[str, Tensor]
SMALL: dict[str, ImageEncoderConfig] = {
    "resnet": ResNetConfig(depth=18, width=4, classes=5),
    "mobilenet": MobileNetConfig(multiplier=0.1, classes=5),
    "vit": VitConfig(image=16, patch=4, width=12, depth=2, classes=5),
}


def built(config: ImageEncoderConfig, seed: int) -> nn.Module:
    torch.manual_seed(seed)
    model = config.build()
    for name, buffer in model.named_buffers():
        if "running" in name:
            buffer.uniform_(0.5, 1.5)
    return model


def equal(a: nn.Module, b: nn.Module) -> bool:
    ours, theirs = a.state_dict(), b.state_dict()
    return ours.keys() == theirs.keys() and all(torch.equal(ours[key], theirs[key]) for key in ours)


def write(path: Path, state: Any) -> Path:
    (save_file if path.suffix == ".safetensors" else torch.save)(state, path)
    return path


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("file", ["weights.safetensors", "weights.pth"])
def test_saved_then_loaded_is_the_same_model(name: str, file: str, tmp_path: Path) -> None:
    theirs, ours = built(SMALL[name], 1), built(SMALL[name], 2)
    report = load_pretrained(ours, write(tmp_path / file, theirs.state_dict()))
    assert equal(ours, theirs)
    assert report.complete
    assert set(report.matched) == {
        key for key in theirs.state_dict() if not key.endswith("num_batches_tracked")
    }
    assert str(report) == (
        f"{tmp_path / file}: {len(report.matched)} of {len(report.matched)} tensors loaded"
    )


def prefixed(state: State, prefix: str) -> State:
    return {prefix + name: tensor for name, tensor in state.items()}


WRAPPED: dict[str, Callable[[State, State], Any]] = {
    "model": lambda state, _: {"model": state, "epoch": 3, "optimizer": {"lr": 0.1}},
    "state_dict of several devices": lambda state, _: {"state_dict": prefixed(state, "module.")},
    "compiled": lambda state, _: {"model_state": prefixed(state, "_orig_mod.module.")},
    "the average rather than the last": lambda state, other: {"model": other, "model_ema": state},
    "arguments beside": lambda state, _: {"args": argparse.Namespace(lr=0.1), "model": state},
    "wrapped twice": lambda state, _: {"model": {"state_dict": state, "step": 3}},
    "older than the counts of BatchNorm": lambda state, _: {
        name: tensor for name, tensor in state.items() if not name.endswith("tracked")
    },
}


@pytest.mark.parametrize("wrapping", WRAPPED)
def test_weights_come_out_of_what_training_scripts_wrap_them_in(
    wrapping: str, tmp_path: Path
) -> None:
    theirs, other, ours = (built(SMALL["resnet"], seed) for seed in (1, 2, 3))
    wrapped = WRAPPED[wrapping](theirs.state_dict(), other.state_dict())
    report = load_pretrained(ours, write(tmp_path / "weights.pth", wrapped))
    assert equal(ours, theirs)
    assert report.complete
    assert report.unexpected == ()


def as_timm(state: State) -> State:
    """The tensors of Hugging Face's model as timm names and joins them."""
    rest = {
        "cls_token": state["vit.embeddings.cls_token"],
        "pos_embed": state["vit.embeddings.position_embeddings"],
        **_of(state, "vit.embeddings.patch_embeddings.projection", "patch_embed.proj"),
        **_of(state, "vit.layernorm", "norm"),
        **_of(state, "classifier", "head"),
    }
    for block in range(3):
        theirs, timm = f"vit.layers.{block}", f"blocks.{block}"
        for leaf in ("weight", "bias"):
            parts = [state[f"{theirs}.attention.{which}_proj.{leaf}"] for which in "qkv"]
            rest[f"{timm}.attn.qkv.{leaf}"] = torch.cat(parts)
        rest |= {
            **_of(state, f"{theirs}.layernorm_before", f"{timm}.norm1"),
            **_of(state, f"{theirs}.attention.o_proj", f"{timm}.attn.proj"),
            **_of(state, f"{theirs}.layernorm_after", f"{timm}.norm2"),
            **_of(state, f"{theirs}.mlp.fc1", f"{timm}.mlp.fc1"),
            **_of(state, f"{theirs}.mlp.fc2", f"{timm}.mlp.fc2"),
        }
    return rest


def _of(state: State, theirs: str, name: str) -> State:
    return {f"{name}.{leaf}": state[f"{theirs}.{leaf}"] for leaf in ("weight", "bias")}


def as_torchvision(state: State, widen: str = "mlp.0", narrow: str = "mlp.3") -> State:
    """What timm calls so, as torchvision names it."""
    names = {
        "cls_token": "class_token",
        "pos_embed": "encoder.pos_embedding",
        "patch_embed.proj.": "conv_proj.",
        "norm.": "encoder.ln.",
        "head.": "heads.head.",
        "norm1": "ln_1",
        "norm2": "ln_2",
        "attn.qkv.": "self_attention.in_proj_",
        "attn.proj": "self_attention.out_proj",
        "mlp.fc1": widen,
        "mlp.fc2": narrow,
        "blocks.": "encoder.layers.encoder_layer_",
    }
    renamed: State = {}
    for name, tensor in as_timm(state).items():
        for old, new in names.items():
            if old not in {"norm.", "head."} or name.startswith(old):
                name = name.replace(old, new)
        renamed[name] = tensor
    return renamed


TONGUES: dict[str, Callable[[State], State]] = {
    "Hugging Face 5": lambda state: state,
    "timm": as_timm,
    "torchvision": as_torchvision,
    "older torchvision": lambda s: as_torchvision(s, "mlp.linear_1", "mlp.linear_2"),
}


@pytest.mark.parametrize("tongue", TONGUES)
@torch.no_grad()
def test_a_vision_transformer_is_understood_in_every_tongue(tongue: str, tmp_path: Path) -> None:
    theirs, ours = hugging_face(), CONFIG.build().double().eval()
    state = TONGUES[tongue](theirs.state_dict())
    report = load_pretrained(ours, write(tmp_path / "weights.safetensors", state))
    assert report.complete
    assert report.unexpected == report.resized == ()
    torch.testing.assert_close(ours(picture(24, 24)), theirs(picture(24, 24)).logits)


@torch.no_grad()
def test_a_folder_that_hugging_face_saved_is_read(tmp_path: Path) -> None:
    theirs, ours = hugging_face(), CONFIG.build().double().eval()
    theirs.save_pretrained(tmp_path)  # under the names that version 4 had
    assert load_pretrained(ours, tmp_path).complete
    torch.testing.assert_close(ours(picture(24, 24)), theirs(picture(24, 24)).logits)


def test_names_of_torchvision_are_those_it_publishes() -> None:
    names = as_torchvision(hugging_face().state_dict())
    assert sorted(name for name in names if "encoder_layer_2" in name) == sorted(
        f"encoder.layers.encoder_layer_2.{part}{leaf}"
        for leaf in ("weight", "bias")
        for part in (
            *("ln_1.", "self_attention.in_proj_", "self_attention.out_proj."),
            *("ln_2.", "mlp.0.", "mlp.3."),
        )
    )


def vit_state() -> State:
    return built(SMALL["vit"], 1).state_dict()


def load_vit(state: State, path: Path, **changes: Any) -> tuple[Vit, Report]:
    model = built(replace(SMALL["vit"], **changes), 2)
    assert isinstance(model, Vit)
    return model, load_pretrained(model, write(path / "weights.safetensors", state))


@torch.no_grad()
def test_positions_are_resized_for_another_size_as_they_would_be_for_one_picture(
    tmp_path: Path,
) -> None:
    model, report = load_vit(vit_state(), tmp_path, image=24)
    assert report.complete
    assert report.resized == ("positions",)
    assert "1 resized (positions)" in str(report)
    theirs, image = built(SMALL["vit"], 1), picture(24, 24).float()
    torch.testing.assert_close(model(image), theirs(image))


@pytest.mark.parametrize("extra", [-1, 1])
def test_positions_without_a_class_token_or_with_another_token_keep_their_patches(
    extra: int, tmp_path: Path
) -> None:
    state = vit_state()
    positions = state["positions"]
    first = positions[:1]
    state["positions"] = (
        positions[1:].clone() if extra < 0 else torch.cat([first, 9 + first, positions[1:]])
    )
    model, report = load_vit(state, tmp_path)
    assert torch.equal(model.positions[1:], positions[1:])
    assert torch.equal(model.positions[:1], first if extra > 0 else torch.zeros_like(first))
    assert report.resized == ("positions",)


def test_what_has_another_shape_stays_as_it_was_and_is_told(tmp_path: Path) -> None:
    fresh = built(replace(SMALL["vit"], expansion=2), 2)
    model, report = load_vit(vit_state(), tmp_path, expansion=2)
    assert not report.fits
    assert report.mismatched[0] == "encoder.0.mlp.widen.weight: 48×12, not 24×12"
    name = "encoder.0.mlp.widen.weight"
    assert torch.equal(model.state_dict()[name], fresh.state_dict()[name])
    assert "6 of another shape, left as they were (encoder.0.mlp.widen.weight" in str(report)


def test_what_the_file_lacks_and_what_the_model_lacks_is_told(tmp_path: Path) -> None:
    state = vit_state()
    del state["norm.weight"]
    state["pooler.dense.weight"] = torch.ones(2)
    model, report = load_vit(state, tmp_path, classes=0)
    assert report.missing == ("norm.weight",)
    assert report.unexpected == ("head.bias", "head.weight", "pooler.dense.weight")
    assert torch.equal(model.norm.weight, torch.ones(12))
    total = len(model.state_dict())
    assert str(report).endswith(
        f"{total - 1} of {total} tensors loaded; 1 missing (norm.weight); "
        "3 in the file but not in the model (head.bias, head.weight, pooler.dense.weight)"
    )


def test_half_precision_is_widened(tmp_path: Path) -> None:
    state = {name: tensor.half() for name, tensor in vit_state().items()}
    model, _ = load_vit(state, tmp_path)
    assert model.norm.weight.dtype == torch.float32
    assert torch.equal(model.class_token, state["class_token"].float())


@pytest.mark.parametrize("shape", [(), (1,), (4,), (2, 2, 2), (1, 1, 1, 1, 1)])
def test_tensors_of_odd_shapes_are_told_and_not_tripped_over(
    shape: tuple[int, ...], tmp_path: Path
) -> None:
    odd = torch.zeros(shape)
    names = ("pos_embed", "cls_token", "patch_embed.proj.weight", "blocks.0.attn.qkv.weight")
    state = {name: odd.clone() for name in names} | {"norm.weight": torch.ones(12)}
    _, report = load_vit(state, tmp_path)
    assert report.matched == ("norm.weight",)
    assert len(report.mismatched) + len(report.unexpected) == 4


def test_weights_of_another_architecture_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "weights.pth", built(SMALL["mobilenet"], 1).state_dict())
    with pytest.raises(CheckpointError) as error:
        load_pretrained(built(SMALL["resnet"], 1), path)
    assert str(error.value).startswith(
        f"no weight of {path} belongs to ResNet: it has features.0.0"
    )
    assert str(error.value).endswith(
        "more, and the model conv1.weight and others; is it of another architecture?"
    )


def test_weights_of_another_size_are_refused_and_leave_the_model_alone(tmp_path: Path) -> None:
    wide = {"norm.weight": torch.ones(24), "norm.bias": torch.ones(24)}
    path, model = write(tmp_path / "weights.pth", wide), built(SMALL["vit"], 1)
    with pytest.raises(CheckpointError) as error:
        load_pretrained(model, path)
    assert str(error.value) == (
        f"no weight of {path} fits this Vit: norm.weight: 24, not 12, norm.bias: 24, not 12; "
        "build it in that size"
    )
    assert equal(model, built(SMALL["vit"], 1))


class Trap:
    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (Path("sprung"),)


def test_a_file_that_would_run_code_is_refused_and_runs_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path / "weights.pth", {"model": {"a": torch.ones(1)}, "trap": Trap()})
    with pytest.raises(CheckpointError, match="would run code when loaded; save the model's"):
        load_pretrained(built(SMALL["vit"], 1), path)
    assert not (tmp_path / "sprung").exists()


def _truncated(path: Path) -> None:
    torch.save(vit_state(), path)
    path.write_bytes(path.read_bytes()[:-3000])


def _torn(path: Path) -> None:
    save_file(vit_state(), path)
    path.write_bytes(path.read_bytes()[:-30])


def _repacked(method: int) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        torch.save({"head.weight": torch.zeros(1_000_000)}, path)
        with zipfile.ZipFile(path) as before:
            held = {info.filename: before.read(info) for info in before.infolist()}
        with zipfile.ZipFile(path, "w", method) as after:
            for name, content in held.items():
                after.writestr(name, content)

    return write


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_packed_file_is_refused_before_it_bursts(method: int, tmp_path: Path) -> None:
    path = tmp_path / "weights.pth"
    _repacked(method)(path)
    with pytest.raises(CheckpointError, match=r"is compressed, as torch\.save never does"):
        read_weights(path)


def test_members_that_overlap_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "weights.pth"
    _repacked(zipfile.ZIP_STORED)(path)
    assert set(read_weights(path)) == {"head.weight"}
    raw = path.read_bytes()
    with zipfile.ZipFile(path) as archive:  # an entry more for the same bytes
        directory = archive.start_dir
    tail = raw.rindex(b"PK\5\6")
    entries, end = raw[directory:tail], bytearray(raw[tail:])
    count = int.from_bytes(end[8:10], "little")
    end[8:12] = struct.pack("<HH", 2 * count, 2 * count)
    end[12:16] = struct.pack("<I", 2 * len(entries))
    path.write_bytes(raw[:directory] + 2 * entries + end)
    with pytest.raises(CheckpointError):
        read_weights(path)


@pytest.mark.parametrize("name", ["weights.pth", "folder/model.safetensors"])
def test_a_fifo_is_not_waited_for(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / name)
    with pytest.raises(CheckpointError, match=r"is not a regular file|holds none of"):
        read_weights((tmp_path / name) if "folder" not in name else tmp_path / "folder")


DAMAGED: dict[str, Callable[[Path], Any]] = {
    "nothing": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("<html>404: this is not the file you want</html>"),
    "a header of nothing": lambda path: path.write_bytes(b"\0" * 8 + b"{}"),
    "noise": lambda path: path.write_bytes(bytes(range(256)) * 9),
    "a truncated torch file": _truncated,
    "a truncated safetensors file": _torn,
    "a list": lambda path: torch.save([torch.ones(2)], path),
    "a pickled number": lambda path: path.write_bytes(pickle.dumps(3)),
    "an empty table": lambda path: torch.save({}, path),
    "a folder of something else": lambda path: path.mkdir(),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_what_is_no_file_of_weights_is_refused_in_one_line(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "weights.pth"
    DAMAGED[damage](path)
    with pytest.raises(CheckpointError) as error:
        load_pretrained(built(SMALL["vit"], 1), path)
    assert str(error.value).startswith(f"{path} ")
    assert "\n" not in str(error.value)


def test_a_file_of_torch_that_was_cut_short_is_told_as_such(tmp_path: Path) -> None:
    _truncated(tmp_path / "weights.pth")
    with pytest.raises(CheckpointError, match="is damaged: its end is missing; copy or download"):
        read_weights(tmp_path / "weights.pth")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError) as error:
        load_pretrained(built(SMALL["vit"], 1), tmp_path / "none.pth")
    assert str(error.value) == f"{tmp_path / 'none.pth'} does not exist; check the path"
