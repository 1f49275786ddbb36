"""CLIP beside transformers' own encoder of texts, and the laws of its two encoders."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from safetensors.torch import load, save
from torch import Tensor
from transformers import CLIPTextConfig, CLIPTextModelWithProjection

from saccade.config import from_dict, to_dict
from saccade.data.batching.rows import BatchShape, Rows
from saccade.errors import ConfigError
from saccade.models import FAMILIES, PRESETS, family
from saccade.models.joint.clip import Clip, ClipConfig
from saccade.models.protocol import Capturable, HasLayers, StartsFromPublished
from tests.models import zoo
from tests.models.encoders import rows_of

END = 18  # of the vocabulary the last, as CLIP's own tokenizer has it
TEXTS = [[1, 5, 6, 7, END], [1, 8, END], [1, 10, 4, 8, 2, 11, END], [1, 17, END]]
TINY = ClipConfig(
    vocabulary=19, width=12, depth=3, heads=3, longest=9, joint=7, encoder="resnet-nano"
)
OF_EACH_FAMILY = (
    "resnet-nano",
    "attention-resnet-nano",
    "mobilenet-nano",
    "convnext-nano",
    "vit-nano",
    "swin-nano",
    "mvit-nano",
)


def built(config: ClipConfig = TINY, dtype: torch.dtype = torch.float64) -> Clip:
    model = zoo.build(config, dtype)
    assert isinstance(model, Clip)
    return model


def pixels(count: int, side: int = 64, seed: int = 0) -> Tensor:
    rng = torch.Generator().manual_seed(seed)
    return torch.randint(256, (count, 3, side, side), generator=rng, dtype=torch.uint8)


@pytest.fixture(scope="module")
def model() -> Clip:
    return built()


def their_names(ours: str) -> str:
    """What transformers calls a tensor of our encoder of texts."""
    for mine, theirs in {
        "embedding.": "text_model.embeddings.token_embedding.",
        "positions.positions.table": "text_model.embeddings.position_embedding.weight",
        "text_encoder.": "text_model.encoder.layers.",
        "around_attention.norm": "layer_norm1",
        "around_mlp.norm": "layer_norm2",
        "self_attention.to_output": "self_attn.out_proj",
        "self_attention.to_": "self_attn.",
        "mlp.widen": "mlp.fc1",
        "mlp.narrow": "mlp.fc2",
    }.items():
        ours = ours.replace(mine, theirs)
    ours = ours.replace("norm.", "text_model.final_layer_norm.") if ours[:5] == "norm." else ours
    for letter in "qkv":
        ours = ours.replace(f"self_attn.{letter}.", f"self_attn.{letter}_proj.")
    return ours


def published(model: Clip, activation: str) -> CLIPTextModelWithProjection:
    config = model.config
    theirs = CLIPTextModelWithProjection(
        CLIPTextConfig(
            vocab_size=config.vocabulary,
            hidden_size=config.width,
            intermediate_size=4 * config.width,
            projection_dim=config.joint,
            num_hidden_layers=config.depth,
            num_attention_heads=config.heads,
            max_position_embeddings=config.longest,
            hidden_act=activation,
            eos_token_id=END,
            bos_token_id=1,
            pad_token_id=0,
        )
    ).double()
    image = ("image_", "log_scale", "standard")
    given = {
        their_names(name): tensor
        for name, tensor in model.state_dict().items()
        if not name.startswith(image)
    }
    told = theirs.load_state_dict(given, strict=False)
    assert not told.unexpected_keys
    assert not [name for name in told.missing_keys if "position_ids" not in name]
    return theirs.eval()


@pytest.mark.parametrize(("ours", "theirs"), [("quick-gelu", "quick_gelu"), ("gelu", "gelu")])
def test_texts_become_what_the_published_encoder_makes_of_them(ours: Any, theirs: str) -> None:
    model = built(replace(TINY, activation=ours))
    plain, rows = published(model, theirs), rows_of(TEXTS)
    padded = rows.padded()
    there = torch.arange(padded.shape[1]) < rows.lengths[:, None]
    with torch.no_grad():
        expected = plain(input_ids=padded, attention_mask=there.long()).text_embeds
        expected = expected / expected.norm(dim=1, keepdim=True)
        torch.testing.assert_close(model.texts(rows), expected)


def test_a_text_is_the_same_alone_and_among_others(model: Clip) -> None:
    with torch.no_grad():
        together = model.texts(rows_of(TEXTS))
        alone = torch.cat([model.texts(rows_of([text])) for text in TEXTS])
    torch.testing.assert_close(together, alone)
    torch.testing.assert_close(together.norm(dim=1), torch.ones(len(TEXTS)).double())
    assert len({tuple(row.tolist()) for row in together.round(decimals=6)}) == len(TEXTS)


def test_what_fills_a_shape_changes_no_text(model: Clip) -> None:
    rows = rows_of(TEXTS)
    filled = Rows.of(rows.tokens, rows.lengths, shape=BatchShape(40, 9, 9))
    with torch.no_grad():
        torch.testing.assert_close(model.texts(filled)[: len(TEXTS)], model.texts(rows))


def test_no_word_sees_what_comes_later(model: Clip) -> None:
    with torch.no_grad():
        whole = model.hidden(rows_of([TEXTS[2]]))
        begun = model.hidden(rows_of([TEXTS[2][:4]]))
    torch.testing.assert_close(whole[:4], begun)


def test_an_image_is_the_same_alone_and_among_others(model: Clip) -> None:
    images = pixels(3)
    with torch.no_grad():
        together = model.images(images)
        alone = torch.cat([model.images(one[None]) for one in images])
    torch.testing.assert_close(together, alone)
    torch.testing.assert_close(together.norm(dim=1), torch.ones(3).double())


def test_logits_are_scaled_cosines(model: Clip) -> None:
    with torch.no_grad():
        texts, images = model.texts(rows_of(TEXTS)), model.images(pixels(2))
        found = model(rows_of(TEXTS), pixels(2))
    torch.testing.assert_close(found, model.scale * texts @ images.mT)


@pytest.mark.parametrize("encoder", OF_EACH_FAMILY)
def test_any_image_encoder_will_do(encoder: str) -> None:
    model = built(replace(TINY, encoder=encoder), torch.float32)
    z = model(rows_of(TEXTS), pixels(2))
    z.square().sum().backward()
    unused = [name for name, one in model.named_parameters() if one.grad is None]
    assert z.shape == (len(TEXTS), 2)
    assert unused == []


def test_what_is_frozen_stays() -> None:
    model = built(replace(TINY, frozen=True), torch.float32).train()
    model(rows_of(TEXTS), pixels(2)).sum().backward()
    assert all(one.grad is None for one in model.image_encoder.parameters())
    assert not any(part.training for part in model.image_encoder.modules())
    assert model.image_projection.weight.grad is not None


def test_it_says_what_it_can_do() -> None:
    model = built(replace(TINY, weights="resnet.pth"))
    assert isinstance(model, Capturable)
    assert isinstance(model, HasLayers)
    assert isinstance(model, StartsFromPublished)
    assert model.slow_part is model.image_encoder
    assert str(model.published) == "resnet.pth"
    assert len(model.layers_upwards()) == TINY.depth


@pytest.mark.parametrize("name", ["clip-nano", "clip-small"])
def test_a_preset_survives_being_stored(name: str) -> None:
    config = PRESETS[name]
    assert from_dict(FAMILIES[family(config)], to_dict(config)) == config
    assert isinstance(config, ClipConfig)
    small = replace(config, vocabulary=19, width=12, heads=2, depth=1, longest=9)
    torch.manual_seed(0)
    first = small.build().eval()
    other = small.build().eval()
    other.load_state_dict(load(save(first.state_dict())))
    with torch.no_grad():
        assert torch.equal(first(rows_of(TEXTS), pixels(2)), other(rows_of(TEXTS), pixels(2)))


def test_wrong_sizes_are_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="no image encoder 'eye'; try one of: resnet-nano"):
        ClipConfig(encoder="eye")
    with pytest.raises(ConfigError, match="width=10 does not divide into heads=4"):
        ClipConfig(width=10, heads=4)
    with pytest.raises(ConfigError, match="joint=0 must be at least 1"):
        ClipConfig(joint=0)
    with pytest.raises(ConfigError, match=r"dropout=1\.0 must be at least 0 and below 1"):
        ClipConfig(dropout=1.0)
