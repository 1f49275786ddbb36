"""DETR's weights by the names of its authors and of Hugging Face: in, out, and what is told."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from saccade.attention.multihead import MultiHeadAttention
from saccade.errors import ConfigError
from saccade.models.detection.detr import Detr, DetrConfig
from saccade.models.names.described import described
from saccade.models.names.detr import LIBRARIES
from saccade.models.names.pretrained import load_pretrained
from saccade.models.names.table import to_ours, to_theirs
from tests.models.detection.twins import HF, SMALL, DetrTwins, images, shaken, their_config

BOXED = replace(SMALL, anchored=True, proposed=True, box_bias=True, no_object=False, groups=2)


def built(config: DetrConfig = SMALL, seed: int = 1) -> Detr:
    torch.manual_seed(seed)
    return shaken(config.build(), seed).eval()


def kept(model: nn.Module) -> dict[str, Tensor]:
    """All but counts of batches, which frozen norms do not keep."""
    state = model.state_dict()
    return {name: x for name, x in state.items() if not name.endswith("num_batches_tracked")}


def equal(one: nn.Module, other: nn.Module) -> bool:
    a, b = kept(one), kept(other)
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@pytest.mark.slow
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("encoder", ["resnet-mini", "resnet-50"])
def test_out_and_in_again_is_the_same_to_the_last_bit(library: str, encoder: str) -> None:
    ours = kept(built(replace(SMALL, encoder=encoder)))
    theirs = to_theirs(LIBRARIES[library], ours)
    back = to_ours(LIBRARIES[library], theirs, ours)
    assert back.keys() == ours.keys()
    assert all(torch.equal(back[name], ours[name]) for name in ours)
    assert sum(x.numel() for x in theirs.values()) == sum(x.numel() for x in ours.values())


def test_hugging_face_calls_them_so_in_memory_and_in_files(tmp_path: Path) -> None:
    model, ours = HF.DetrForObjectDetection(their_config(SMALL)), kept(built())
    model.save_pretrained(tmp_path)
    written = load_file(tmp_path / "model.safetensors")
    assert to_theirs(LIBRARIES["huggingface-5"], ours).keys() == model.state_dict().keys()
    assert to_theirs(LIBRARIES["huggingface"], ours).keys() == written.keys()


def test_its_authors_call_them_so() -> None:
    """Their layers have the names of torch's own, and their image encoder torchvision's."""
    layers = {
        "encoder": (SMALL.encoder_depth, nn.TransformerEncoderLayer(16, 2, 24)),
        "decoder": (SMALL.depth, nn.TransformerDecoderLayer(16, 2, 24)),
    }
    stacks = {
        f"transformer.{side}.layers.{number}.{name}"
        for side, (depth, layer) in layers.items()
        for number in range(depth)
        for name in layer.state_dict()
    }
    model = built()
    image_encoder = {f"backbone.0.body.{name}" for name in kept(model.image_encoder.encoder)}
    ends = ("class_embed", "input_proj", "transformer.decoder.norm")
    parts = [*ends, *(f"bbox_embed.layers.{number}" for number in range(3))]
    others = {f"{part}.{leaf}" for part in parts for leaf in ("weight", "bias")}
    theirs = to_theirs(LIBRARIES["official"], kept(model))
    assert theirs.keys() == stacks | image_encoder | others | {"query_embed.weight"}


@torch.no_grad()
def test_joined_projections_are_those_of_torch() -> None:
    torch.manual_seed(2)
    theirs = nn.MultiheadAttention(16, 2, batch_first=True).eval()
    nn.init.normal_(theirs.in_proj_bias)
    path = "transformer.decoder.layers.1.multihead_attn."
    given = {path + name: x for name, x in theirs.state_dict().items()}
    model = built()
    found = to_ours(LIBRARIES["official"], given, model.state_dict())
    assert len(found) == 8
    model.load_state_dict(found, strict=False)
    site = model.decoder[1].get_submodule("cross_attention")
    assert isinstance(site, MultiHeadAttention)
    q, k, v = torch.randn(3, 2, 4, 16)
    read = site.to_output(site.read(q, k, v))
    torch.testing.assert_close(read, theirs(q, k, v, need_weights=False)[0])


@torch.no_grad()
def test_a_folder_of_hugging_face_tells_its_sizes_and_gives_its_boxes(tmp_path: Path) -> None:
    twins, x = DetrTwins.built(), images(1, 3, 64, 64)
    twins.theirs.float().save_pretrained(tmp_path)
    config = described(tmp_path)
    assert config == replace(SMALL, frozen=2)
    assert config is not None
    model = config.build().eval()
    report = load_pretrained(model, tmp_path)
    assert report.complete
    assert report.unexpected == ()
    theirs = twins.theirs(x.float())
    torch.testing.assert_close(model(x.float()).boxes[-1], theirs.pred_boxes, atol=1e-5, rtol=1e-5)


FOLDERS: dict[str, tuple[str, DetrConfig | None]] = {
    "as published": (
        '{"model_type": "detr", "backbone": "resnet50", "num_labels": 91, "dilation": false}',
        DetrConfig(frozen=2, frozen_norms=True),
    ),
    "dilated": (
        '{"model_type": "detr", "backbone": "resnet101", "num_labels": 91, "dilation": true}',
        DetrConfig(encoder="resnet-101-dilated", frozen=2, frozen_norms=True),
    ),
    "as version 5 writes it": (
        '{"model_type": "detr", "num_labels": 91, "backbone_config":'
        ' {"model_type": "timm_backbone", "backbone": "resnet50"}}',
        DetrConfig(frozen=2, frozen_norms=True),
    ),
    "another image encoder": ('{"model_type": "detr", "backbone": "swin_tiny"}', None),
    "other positions": ('{"model_type": "detr", "position_embedding_type": "learned"}', None),
    "other heads": ('{"model_type": "detr", "decoder_attention_heads": 4}', None),
}


@pytest.mark.parametrize("case", FOLDERS)
def test_sizes_are_read_or_nothing_is_said(case: str, tmp_path: Path) -> None:
    text, expected = FOLDERS[case]
    (tmp_path / "config.json").write_text(text)
    assert described(tmp_path) == expected


def test_a_wrong_size_is_refused_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "detr", "num_queries": "many"}')
    with pytest.raises(ConfigError, match="num_queries='many' must be a whole number from 0 to"):
        described(tmp_path)


def write(path: Path, library: str, model: Detr) -> Path:
    tensors = {n: x.contiguous() for n, x in to_theirs(LIBRARIES[library], kept(model)).items()}
    if library == "official":
        torch.save({"model": tensors, "epoch": 3}, path)
    else:
        save_file(tensors, path)
    return path


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_file_of_any_of_them_is_read(library: str, tmp_path: Path) -> None:
    theirs, ours = built(seed=1), built(seed=2)
    report = load_pretrained(ours, write(tmp_path / "file", library, theirs))
    assert report.complete
    assert report.unexpected == ()
    assert equal(ours, theirs)


def test_one_that_was_saved_without_its_heads_is_read(tmp_path: Path) -> None:
    twins = DetrTwins.built()
    twins.theirs.model.float().save_pretrained(tmp_path)
    report = load_pretrained(built(), tmp_path)
    assert {name.partition(".")[0] for name in report.missing} == {"to_boxes"}
    assert report.fresh == ("to_scores.weight", "to_scores.bias")
    assert report.unexpected == ()


def test_other_classes_leave_the_class_head_as_it_was_drawn(tmp_path: Path) -> None:
    theirs, ours = built(seed=1), built(replace(SMALL, classes=6), seed=2)
    before = ours.to_scores.weight.clone()
    report = load_pretrained(ours, write(tmp_path / "file", "official", theirs))
    assert report.fits
    assert report.fresh == ("to_scores.weight: 4×16, not 7×16", "to_scores.bias: 4, not 7")
    assert "2 of a new head, random at first" in str(report)
    assert torch.equal(ours.to_scores.weight, before)
    assert torch.equal(
        ours.to_boxes.state_dict()["layers.0.weight"],
        theirs.to_boxes.state_dict()["layers.0.weight"],
    )


def test_other_queries_stay_as_they_were(tmp_path: Path) -> None:
    theirs, ours = built(seed=1), built(replace(SMALL, queries=7), seed=2)
    report = load_pretrained(ours, write(tmp_path / "file", "huggingface", theirs))
    assert report.mismatched == ("queries.weight: 5×16, not 7×16",)
    assert not report.fresh


def test_queries_that_are_boxes_take_the_layers_and_tell_the_rest(tmp_path: Path) -> None:
    """What a plain query has learnt is a place; what gives its box does not mend one."""
    theirs, ours = built(seed=1), built(BOXED, seed=2)
    before = {name: x.clone() for name, x in ours.state_dict().items()}
    report = load_pretrained(ours, write(tmp_path / "file", "official", theirs))
    parts = {name.partition(".")[0] for name in report.matched}
    assert parts == {"image_encoder", "encoder", "decoder", "decoder_norm"}
    missing = {name.partition(".")[0] for name in report.missing}
    assert missing == {"queries", "to_boxes", "box_places", "proposals", "box_bias"}
    assert "query_embed.weight" in report.unexpected
    assert "bbox_embed.layers.0.weight" in report.unexpected
    assert {name.partition(":")[0] for name in report.fresh} == {
        f"{part}to_scores.{leaf}" for part in ("", "proposals.") for leaf in ("weight", "bias")
    }
    state = ours.state_dict()
    assert torch.equal(state["queries.weight"], before["queries.weight"])
    assert all(torch.equal(state[name], theirs.state_dict()[name]) for name in report.matched)


def test_an_anchored_run_goes_on_from_an_anchored_one(tmp_path: Path) -> None:
    theirs, ours = built(BOXED, seed=1), built(BOXED, seed=2)
    save_file(theirs.state_dict(), tmp_path / "model.safetensors")
    assert load_pretrained(ours, tmp_path).complete
    assert equal(ours, theirs)
