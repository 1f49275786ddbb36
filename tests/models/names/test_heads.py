"""Weights for other classes, without a head, or in several files."""

import json
from pathlib import Path

import pytest
import torch

from saccade.errors import CheckpointError
from saccade.models.names.pretrained import load_pretrained
from tests.models.names.test_pretrained import SMALL, built, equal, load_vit, vit_state, write
from tests.models.vision.test_vit import CONFIG, hugging_face, picture


def test_a_head_for_other_classes_starts_at_zero_and_is_told(tmp_path: Path) -> None:
    model, report = load_vit(vit_state(), tmp_path, classes=7)
    assert report.fits
    assert not report.complete
    assert report.fresh == ("head.weight: 5×12, not 7×12", "head.bias: 5, not 7")
    assert not any(x.any() for name, x in model.state_dict().items() if name.startswith("head"))
    assert "2 of a new head, zero at first (head.weight: 5×12, not 7×12" in str(report)
    assert report.lines[0].endswith(
        f"{len(report.matched)} of {len(report.matched) + 2} tensors loaded"
    )


def test_a_head_of_which_a_part_is_missing_is_not_taken_by_halves(tmp_path: Path) -> None:
    state = vit_state()
    del state["head.bias"]
    model, report = load_vit(state, tmp_path)
    assert report.fresh == ("head.weight", "head.bias")
    assert not model.state_dict()["head.weight"].any()


def test_weights_in_parts_are_read_as_one_and_only_from_their_folder(tmp_path: Path) -> None:
    state, folder = vit_state(), tmp_path / "folder"
    folder.mkdir()
    names = [*state]
    halves = {"a.safetensors": names[:9], "b.safetensors": names[9:]}
    for file, some in halves.items():
        write(folder / file, {name: state[name] for name in some})
    places = {name: f"/elsewhere/../{file}" for file, some in halves.items() for name in some}
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": places}))
    model = built(SMALL["vit"], 2)
    assert load_pretrained(model, folder).complete
    assert equal(model, built(SMALL["vit"], 1))
    for wrong in ("{", "[]", '{"weight_map": 3}'):
        index.write_text(wrong)
        with pytest.raises(CheckpointError, match="does not say which files the weights are in"):
            load_pretrained(model, folder)


def test_a_model_that_hugging_face_saved_without_a_head_is_read(tmp_path: Path) -> None:
    theirs, ours = hugging_face(), CONFIG.build().double().eval()
    theirs.vit.save_pretrained(tmp_path)
    report = load_pretrained(ours, tmp_path)
    assert report.fits
    assert report.fresh == ("head.weight", "head.bias")
    image = picture(24, 24)
    with torch.no_grad():
        expected = theirs.vit(image).last_hidden_state[:, 0]
        torch.testing.assert_close(ours.pooled(image), expected)


def test_what_follows_from_the_sizes_is_not_told(tmp_path: Path) -> None:
    state = vit_state() | {"x.relative_position_index": torch.ones(2), "x.attn_mask": torch.ones(2)}
    assert load_vit(state, tmp_path)[1].unexpected == ()
