"""Classifiers in other libraries: the same scores there, or one line that says why not."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file
from transformers import AutoImageProcessor, AutoModelForImageClassification

import saccade
from saccade.app.export.make import export_run
from saccade.errors import ConfigError
from saccade.models.names import LIBRARIES
from saccade.models.names.pretrained import load_pretrained
from saccade.models.names.table import to_theirs
from saccade.models.vision import mvit
from saccade.models.vision.attention_resnet import AttentionResNetConfig
from saccade.models.vision.image_encoder import ImageEncoderConfig
from saccade.tasks.classification.vary import VarySettings
from tests.app.export.classifier_runs import FAMILIES, NAMES, epsilons, write_run
from tests.app.test_cli import run as run_command
from tests.marks import one_fast

IN_TRANSFORMERS = [name for name in FAMILIES if not name.startswith("mvit")]
IN_TIMM = [name for name in FAMILIES if name != "resnet-50"]


@pytest.mark.parametrize("name", one_fast(IN_TRANSFORMERS))
@torch.no_grad()
def test_transformers_load_the_folder_and_give_the_same_scores(name: str, tmp_path: Path) -> None:
    config, side = FAMILIES[name]
    run, ours = write_run(tmp_path / "run", config, side)
    folder, _ = export_run(run, "huggingface")
    theirs, how = AutoModelForImageClassification.from_pretrained(folder, output_loading_info=True)
    assert not any(how.values())
    image = torch.randn(2, 3, side, side)
    expected = ours(image)
    torch.testing.assert_close(theirs.eval()(image).logits, expected, atol=1e-5, rtol=1e-5)
    assert expected.std() > 1e-3
    assert epsilons(theirs) == epsilons(ours)
    assert [theirs.config.id2label[number] for number in range(5)] == NAMES
    assert theirs.config.label2id == {label: number for number, label in enumerate(NAMES)}


@pytest.mark.parametrize("name", one_fast(IN_TRANSFORMERS))
@torch.no_grad()
def test_out_and_in_again_is_the_same_model(name: str, tmp_path: Path) -> None:
    config, side = FAMILIES[name]
    run, ours = write_run(tmp_path / "run", config, side)
    folder, _ = export_run(run, "huggingface")
    again = config.build().eval()
    report = load_pretrained(again, folder)
    if name == "deit3":  # whose scales are multiplied into the weights
        assert {path.rpartition(".")[2] for path in report.missing} == {"scale"}
        return
    assert report.complete
    state, expected = again.state_dict(), ours.state_dict()
    assert all(torch.equal(state[key], expected[key]) for key in expected if "tracked" not in key)


@pytest.mark.slow
@pytest.mark.parametrize("name", IN_TIMM)
def test_timm_is_told_all_it_needs(name: str, tmp_path: Path) -> None:
    config, side = FAMILIES[name]
    run, ours = write_run(tmp_path / "run", config, side, pixels="half")
    folder, _ = export_run(run, "timm")
    table = json.loads((folder / "config.json").read_text())
    assert table["num_classes"] == 5
    assert table["label_names"] == NAMES
    told = table["pretrained_cfg"]
    assert told["input_size"] == [3, side, side]
    assert (told["mean"], told["std"]) == ([0.5] * 3, [0.5] * 3)
    assert (told["crop_pct"], told["crop_mode"], told["interpolation"]) == (1, "center", "bicubic")
    written = load_file(folder / "model.safetensors")
    expected = to_theirs(LIBRARIES[type(ours)]["timm"], ours.state_dict())
    assert written.keys() == expected.keys()
    assert all(torch.equal(written[key], expected[key]) for key in expected)
    assert f"{told['classifier']}.weight" in written
    assert f"{told['first_conv']}.weight" in written


GRAPHS = {
    **{name: FAMILIES[name] for name in ("vit", "swin", "convnext", "mobilenet")},
    "mvitv1": (
        mvit.MvitConfig(
            image=32, width=8, depths=(1, 2), relative=False, class_token=True, classes=5
        ),
        32,
    ),
    "sl-vit": (replace(FAMILIES["vit"][0], reads="shifted", local=True), 32),  # type: ignore[call-arg]
    "attention-resnet": (AttentionResNetConfig(depth=10, width=8, classes=5), 64),
}


@pytest.mark.parametrize("name", [*(pytest.param(n, marks=pytest.mark.slow) for n in GRAPHS)])
def test_a_graph_gives_the_same_probabilities_for_any_number_of_images(
    name: str, tmp_path: Path
) -> None:
    config, side = GRAPHS[name]
    how = VarySettings(crop="box")
    run, _ = write_run(tmp_path / "run", config, side, keep=side + 8, vary=how)
    folder, _ = export_run(run, "onnx")
    graph = onnxruntime.InferenceSession(folder / "classifier.onnx")
    tool = saccade.load(run.path, device="cpu").tool
    for rows in (1, 5):
        images = torch.randint(0, 256, (rows, 3, side + 8, side + 8), dtype=torch.uint8)
        (scores,) = graph.run(None, {"images": images.numpy()})
        found = torch.from_numpy(scores).softmax(dim=1)
        torch.testing.assert_close(found, tool.probabilities(images), atol=1e-5, rtol=1e-5)


REFUSED: dict[str, tuple[str, ImageEncoderConfig, int, str]] = {
    "no counterpart": (
        "huggingface",
        AttentionResNetConfig(depth=10, width=8, classes=5),
        64,
        "transformers has no counterpart of attention-resnet; --to onnx takes it",
    ),
    "no family": (
        "huggingface",
        FAMILIES["mvitv2-t"][0],
        64,
        "transformers has no counterpart of mvit; --to onnx takes it",
    ),
    "a setting": (
        "timm",
        replace(FAMILIES["vit"][0], local=True),  # type: ignore[call-arg]
        32,
        "timm has no vit with local=True; --to onnx takes it",
    ),
    "an epsilon": (
        "timm",
        replace(FAMILIES["vit"][0], epsilon=1e-5),  # type: ignore[call-arg]
        32,
        "timm has no vit with epsilon=1e-05; --to onnx takes it",
    ),
    "a width": (
        "timm",
        FAMILIES["resnet-50"][0],
        64,
        "timm has no resnet with width=8 (its stem is 64 wide); --to onnx takes it",
    ),
    "windows": (
        "timm",
        FAMILIES["swin"][0],
        72,
        "timm has no swin with window=4 (the map of stage 1 is 18 × 18 for images of 72 pixels, "
        "which such windows do not tile); --to onnx takes it",
    ),
    "a size of mvit": (
        "timm",
        mvit.MvitConfig(image=64, width=48, depths=(1, 1, 1), classes=5),
        64,
        "timm has no mvit with depths=(1, 1, 1) (it has but mvitv2-t, mvitv2-s, mvitv2-b, mvitv2-l)"
        "; --to onnx takes it",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_library_has_not_is_refused_before_anything_is_written(
    case: str, tmp_path: Path
) -> None:
    to, config, side, says = REFUSED[case]
    run, _ = write_run(tmp_path / "run", config, side)
    with pytest.raises(ConfigError) as error:
        export_run(run, to)  # type: ignore[arg-type]
    assert str(error.value) == says
    assert not (run.path / "exports").exists()


@pytest.mark.parametrize("fit", ["crop", "squeeze"])
@pytest.mark.parametrize("keep", [0, 40])
def test_the_processor_reads_an_image_nearly_as_we_do(fit: str, keep: int, tmp_path: Path) -> None:
    how: dict[str, Any] = {"keep": keep, "vary": VarySettings(crop="box" if keep else "none")}
    run, _ = write_run(tmp_path / "run", *FAMILIES["vit"], fit=fit, pixels="half", **how)
    folder, _ = export_run(run, "huggingface")
    y, x = np.mgrid[0:80, 0:120]  # whose middle lies on whole pixels at either size
    waves = [127 + 120 * np.sin(x / (9 + 3 * c) + y / (14 - c)) for c in range(3)]
    image = Image.fromarray(np.stack(waves, -1).astype(np.uint8))
    theirs = AutoImageProcessor.from_pretrained(folder)(image, return_tensors="pt").pixel_values
    tool = saccade.load(run.path, device="cpu").tool
    ours = tool.shown(tool.prepare(image)[None])
    assert theirs.shape == ours.shape
    assert (theirs - ours).abs().max() < 0.02  # of a range of two: a level or two of 256


def test_several_labels_are_said_to_be_several(tmp_path: Path) -> None:
    run, _ = write_run(tmp_path / "run", *FAMILIES["vit"], several=True)
    folder, _ = export_run(run, "huggingface")
    table = json.loads((folder / "config.json").read_text())
    assert table["problem_type"] == "multi_label_classification"
    assert "sigmoid" in (folder / "README.md").read_text()


@pytest.mark.slow
def test_the_command_writes_a_folder_from_which_another_run_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path / "run", *FAMILIES["vit"])
    monkeypatch.chdir(tmp_path)
    assert run_command(["export", "run", "--to", "huggingface", "--json"], monkeypatch) == 0
    told = json.loads(capsys.readouterr().out)
    names = {"config.json", "model.safetensors", "preprocessor_config.json", "classes.json"}
    assert {*names, "README.md", "saccade.json"} == set(told["bytes"])
    sizes = "--model.patch 8 --model.width 24 --model.depth 2 --model.heads 2 --image 32"
    few = "--train.steps 1 --train.validate-every 1 --scenes 8 --train.device cpu"
    line = f"train vit {sizes} {few} --init {told['folder']}"
    assert run_command(line.split(), monkeypatch) == 0
    said = capsys.readouterr().err
    assert "38 of 40 tensors loaded" in said
    assert "2 of a new head, zero at first (head.weight: 5×24, not 8×24" in said
