"""A folder of weights tells its sizes, or which of its settings is not ours."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from saccade.errors import SaccadeError
from saccade.models import FAMILIES, PRESETS, family
from saccade.models.names.described import described
from saccade.models.names.pretrained import load_pretrained
from saccade.models.text.bert import BertConfig
from saccade.models.vision.convnext import ConvNextConfig
from saccade.models.vision.image_encoder import ImageEncoderConfig
from saccade.models.vision.resnet import ResNetConfig
from saccade.models.vision.swin import SwinConfig
from saccade.models.vision.vit import VitConfig
from tests.models.names.counterparts import SIZES, TWINS

HF: Any = transformers


@pytest.mark.parametrize("name", TWINS)
def test_a_saved_text_model_is_built_by_what_it_tells_and_loads_completely(
    name: str, tmp_path: Path
) -> None:
    twin = TWINS[name]
    theirs, ours = twin.built(SIZES[1])
    theirs.save_pretrained(tmp_path)
    config = described(tmp_path)
    expected: Any = twin.config(SIZES[1])
    if name.startswith("marian"):  # its file always holds a bias
        expected = replace(expected, output_bias=True)
    if name == "gpt2":
        expected = replace(expected, dropout=0.1)
    labelled = {"labels": 3} if isinstance(expected, BertConfig) else {}
    assert config == replace(expected, **labelled)
    assert config is not None
    model = config.build().double().eval()
    report = load_pretrained(model, tmp_path)
    assert report.complete
    assert report.unexpected == ()
    with torch.no_grad():
        for found, scores in zip(twin.ask_ours(model), twin.ask_ours(ours)):
            torch.testing.assert_close(found, scores)


PICTURES: dict[str, tuple[Any, ImageEncoderConfig]] = {
    "vit": (
        lambda: HF.ViTConfig(hidden_size=24, num_attention_heads=2, intermediate_size=48),
        VitConfig(width=24, heads=2, expansion=2, epsilon=1e-12, classes=2),
    ),
    "deit": (
        lambda: HF.DeiTConfig(hidden_size=24, num_attention_heads=2, intermediate_size=96),
        VitConfig(width=24, heads=2, epsilon=1e-12, classes=2),
    ),
    "swin": (
        lambda: HF.SwinConfig(embed_dim=24, num_labels=7),
        SwinConfig(width=24, drop_path=0.1, classes=7),
    ),
    "convnext": (
        lambda: HF.ConvNextConfig(hidden_sizes=[8, 16], depths=[1, 2]),
        ConvNextConfig(widths=(8, 16), depths=(1, 2), classes=2),
    ),
    "resnet": (
        HF.ResNetConfig,
        ResNetConfig(depth=50, classes=2),
    ),
    "resnet-18": (
        lambda: HF.ResNetConfig(
            depths=[2, 2, 2, 2], hidden_sizes=[64, 128, 256, 512], layer_type="basic"
        ),
        ResNetConfig(depth=18, classes=2),
    ),
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_saved_image_encoder_tells_its_sizes(name: str, tmp_path: Path) -> None:
    theirs, ours = PICTURES[name]
    theirs().save_pretrained(tmp_path)
    assert described(tmp_path) == ours


def test_an_image_encoder_that_is_none_of_ours_says_nothing(tmp_path: Path) -> None:
    for config in (
        HF.ViTConfig(hidden_act="quick_gelu"),
        HF.ViTConfig(intermediate_size=1000),
        HF.SwinConfig(mlp_ratio=2.5),
        HF.ConvNextConfig(num_channels=4),
        HF.ResNetConfig(downsample_in_bottleneck=True),
        HF.ResNetConfig(depths=[1, 2, 3, 4]),
    ):
        config.save_pretrained(tmp_path)
        assert described(tmp_path) is None


def write(folder: Path, table: Any) -> Path:
    (folder / "config.json").write_text(table if isinstance(table, str) else json.dumps(table))
    return folder


@pytest.mark.parametrize("name", ["bert-nano", "electra-nano", "transformer-nano", "vit-nano"])
def test_a_run_of_ours_tells_its_own_sizes(name: str, tmp_path: Path) -> None:
    config = PRESETS[name]
    table = {"family": family(config), **vars(config)}
    if isinstance(config, VitConfig):
        table["cnn"] = vars(config.cnn)
    assert described(write(tmp_path, {"model": table, "task": {}, "train": {}})) == config
    assert type(config) in FAMILIES.values()


SILENT: list[Any] = [
    {},
    [],
    {"model_type": "llama"},
    {"model_type": 3},
    {"architecture": "vit_base_patch16_224", "num_classes": 1000},
    {"model": {"family": "elmo"}},
]


@pytest.mark.parametrize("table", SILENT, ids=str)
def test_a_folder_that_is_silent_or_of_another_family_tells_nothing(
    table: Any, tmp_path: Path
) -> None:
    assert described(write(tmp_path, table)) is None


def test_no_folder_tells_nothing(tmp_path: Path) -> None:
    assert described(tmp_path) is None
    assert described(tmp_path / "none") is None
    assert described(write(tmp_path, {}) / "config.json") is None


OTHERS = "start from weights of another model"
MARIAN: dict[str, Any] = {"model_type": "marian", "scale_embedding": True}
WRONG: list[tuple[Any, str]] = [
    ("{", r"config\.json is not JSON \(.*\); download the folder again"),
    ('{"a":' * 100_000, r"config\.json is not JSON"),
    ({"model_type": "bert", "hidden_act": "relu"}, r"hidden_act='relu' is not what our model"),
    (
        {"model_type": "bert", "position_embedding_type": "relative_key"},
        r"position_embedding_type='relative_key' .* which is 'absolute'; " + OTHERS,
    ),
    ({"model_type": "bert", "is_decoder": True}, r"is_decoder=True .* which is False"),
    ({"model_type": "roberta", "add_cross_attention": True}, "add_cross_attention=True"),
    ({"model_type": "bert", "tie_word_embeddings": False}, "tie_word_embeddings=False"),
    ({"model_type": "bert", "hidden_size": "wide"}, r"hidden_size='wide' must be a whole number"),
    ({"model_type": "bert", "hidden_size": 10**12}, r"hidden_size=1000000000000 must be"),
    ({"model_type": "bert", "vocab_size": True}, r"vocab_size=True must be a whole number"),
    ({"model_type": "bert", "layer_norm_eps": "1"}, r"layer_norm_eps='1' must be a number"),
    ({"model_type": "bert", "hidden_size": 10}, r"config\.json: width=10 does not divide into"),
    ({"model_type": "distilbert", "activation": "relu"}, "activation='relu'"),
    ({"model_type": "gpt2", "activation_function": "relu"}, r"which is 'gelu_new' or 'gelu_py"),
    ({"model_type": "gpt2", "n_inner": 5}, "n_inner=5"),
    ({"model_type": "gpt2", "scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse"),
    ({**MARIAN, "scale_embedding": False}, "scale_embedding=False"),
    (
        {"model_type": "marian"},
        "scale_embedding=None is not what our model computes, which is True",
    ),
    ({**MARIAN, "decoder_layers": 3}, r"decoder_layers=3 .* which is 12"),
    ({**MARIAN, "encoder_layers": 3}, r"decoder_layers=None .* which is 3"),
    ({**MARIAN, "activation_function": "mish"}, "activation_function='mish'"),
    ({**MARIAN, "decoder_vocab_size": 7}, "decoder_vocab_size=7"),
    ({"model_type": "swin", "depths": [1, "2"]}, r"depths=\[1, '2'\] must be a list of whole"),
    ({"model": {"family": "bert", "width": -1}}, r"width=-1 must be at least 1"),
    ({"model": {"family": "bert", "widht": 8}}, r"config\.json: model\.widht is not a setting"),
]


@pytest.mark.parametrize(("table", "told"), WRONG, ids=range(len(WRONG)))
def test_what_is_not_ours_is_refused_in_one_line_by_its_name(
    table: Any, told: str, tmp_path: Path
) -> None:
    with pytest.raises(SaccadeError, match=told) as raised:
        described(write(tmp_path, table))
    assert "\n" not in str(raised.value)


def test_a_file_of_settings_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(SaccadeError, match=r"config\.json is no file of settings: it is too large"):
        described(write(tmp_path, " " * 10_000_001))
