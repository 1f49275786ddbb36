"""Looking into Hugging Face models agrees with their eager path and changes nothing."""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
import transformers as hf
from torch import Tensor, nn

import saccade
from saccade.attention.axes import SOURCE, TARGET, TEXT, Axis
from saccade.attention.look.glance import Keep
from saccade.attention.look.modules.session import watching
from saccade.attention.look.view import View, Watcher

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")
Record = dict[str, list[View | Tensor]]
SIZES = {"num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
WORDS = {
    "vocab_size": 50,
    "hidden_size": 32,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
READER = {**SIZES, **WORDS}
GROUPED = {**READER, "num_key_value_heads": 2, "head_dim": 8}
PAIR = {
    "vocab_size": 50, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "pad_token_id": 0,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64, "decoder_start_token_id": 1, "bos_token_id": 1, "eos_token_id": 2,
    "forced_eos_token_id": None,
}  # fmt: skip
T5 = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, "vocab_size": 50}
VISION = {**SIZES, "hidden_size": 32, "image_size": 12, "patch_size": 4}
SINKS = {"num_local_experts": 2, "num_experts_per_tok": 1, "sliding_window": 3}
MIXED = {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 3}


def reader(kind: str, **settings: Any) -> Callable[[], nn.Module]:
    """A tiny model with random weights, made anew by its config."""
    config = getattr(hf, f"{kind.removesuffix('Model').removesuffix('LMHead')}Config")
    return lambda: getattr(hf, kind)(config(**settings))


TEXTS: dict[str, Callable[[], nn.Module]] = {
    "bert": reader("BertModel", **READER),
    "roberta": reader("RobertaModel", **READER),
    "distilbert": reader(
        "DistilBertModel", dim=32, hidden_dim=64, n_layers=2, n_heads=4, vocab_size=50
    ),
    "electra": reader("ElectraModel", **READER, embedding_size=16),
    "albert": reader("AlbertModel", **READER, embedding_size=16),
    "gpt2": reader("GPT2Model", n_embd=32, n_layer=2, n_head=4, vocab_size=50),
    "llama": reader("LlamaModel", **GROUPED),
    "mistral": reader("MistralModel", **GROUPED, sliding_window=3),
    "qwen3": reader("Qwen3Model", **GROUPED),
    "modernbert": reader(
        "ModernBertModel", **READER, local_attention=4, cls_token_id=1, sep_token_id=2
    ),
    "falcon": reader("FalconModel", **WORDS, num_hidden_layers=2, num_attention_heads=4),
    "gemma2": reader("Gemma2Model", **GROUPED, **MIXED, attn_logit_softcapping=2.0),
    "gpt-oss": reader("GptOssModel", **GROUPED, **SINKS, layer_types=MIXED["layer_types"]),
    "bloom": reader("BloomModel", hidden_size=32, n_layer=2, n_head=4, vocab_size=50),
    "deberta-v2": reader("DebertaV2Model", **READER),
    "mpnet": reader("MPNetModel", **READER),
    "convbert": reader("ConvBertModel", **READER, embedding_size=32),
    "xlnet": reader("XLNetModel", d_model=32, n_layer=2, n_head=4, d_inner=64, vocab_size=50),
}
PAIRS: dict[str, Callable[[], nn.Module]] = {
    "t5": reader("T5Model", **T5),
    "bart": reader("BartModel", **PAIR),
    "marian": reader("MarianModel", **PAIR, decoder_vocab_size=50),
}
IMAGE_MODELS: dict[str, tuple[Callable[[], nn.Module], Axis]] = {
    "vit": (reader("ViTModel", **VISION), Axis("image", "grid", 3, 3, 1)),
    "deit": (reader("DeiTModel", **VISION), Axis("image", "grid", 3, 3, 2)),
    "dinov2": (reader("Dinov2Model", **VISION), Axis("image", "grid", 3, 3, 1)),
    "registers": (
        reader("Dinov2WithRegistersModel", **VISION, num_register_tokens=4),
        Axis("image", "grid", 3, 3, 5),
    ),
    "siglip": (reader("SiglipVisionModel", **VISION), Axis("image", "grid", 3, 3, 0)),
    "swin": (
        reader("SwinModel", image_size=16, patch_size=2, embed_dim=16, depths=[2, 1],
               num_heads=[4, 4], window_size=4),
        Axis("image", "window", 4, 4),
    ),
}  # fmt: skip


def built(make: Callable[[], nn.Module]) -> Any:
    torch.manual_seed(0)
    return make().eval()


def words(*, rows: int = 2, length: int = 7, seed: int = 0) -> Tensor:
    return torch.randint(3, 50, (rows, length), generator=torch.Generator().manual_seed(seed))


def padded(side: str) -> dict[str, Tensor]:
    """Two lines, the second two words shorter."""
    mask = torch.ones(2, 7, dtype=torch.long)
    mask[1, slice(0, 2) if side == "left" else slice(5, 7)] = 0
    return {"input_ids": words() * mask, "attention_mask": mask}


@contextmanager
def recording(model: nn.Module, record: Record) -> Iterator[dict[str, tuple[Axis, Axis]]]:
    def watcher_of(name: str) -> Watcher:
        return lambda seen: record.setdefault(name, []).append(seen)

    with watching(model, watcher_of) as axes:
        yield axes


def dense(seen: View | Tensor) -> Tensor:
    return seen.weights() if isinstance(seen, View) else seen


@torch.no_grad()
def eager(model: Any, given: dict[str, Tensor]) -> dict[str, list[Tensor]]:
    """What the same weights look at without a fused kernel, by the name of the output."""
    twin = type(model)._from_config(copy.deepcopy(model.config), attn_implementation="eager").eval()
    twin.load_state_dict(model.state_dict())
    output = twin(**given, output_attentions=True)
    return {name: list(output[name]) for name in output if name.endswith("attentions")}


def tensors(output: Any) -> list[Tensor]:
    flat = output.to_tuple() if hasattr(output, "to_tuple") else [output]
    return [value for value in flat if isinstance(value, Tensor)]


@torch.no_grad()
def looked(model: Any, given: dict[str, Tensor]) -> dict[str, Tensor]:
    """Each site's weights; the output must be what it is when nobody looks."""
    before = tensors(model(**given))
    settings = copy.deepcopy(model.config.__dict__)
    record: Record = {}
    with recording(model, record):
        during = tensors(model(**given))
    assert all(torch.equal(one, other) for one, other in zip(before, during, strict=True))
    assert model.config.__dict__ == settings
    assert all(torch.equal(one, other) for one, other in zip(before, tensors(model(**given))))
    assert all(len(calls) == 1 for calls in record.values())
    return {name: dense(calls[0]) for name, calls in record.items()}


def check(expected: list[Tensor], seen: dict[str, Tensor], rows: Tensor | None = None) -> None:
    """Layer by layer; queries that are padding look nowhere here, and anywhere in eager."""
    assert len(expected) == len(seen) > 0
    for one, other in zip(expected, seen.values()):
        real = torch.ones(one.shape[0], one.shape[2]) if rows is None else rows
        where = real.bool()[:, None, :, None]
        torch.testing.assert_close(other * where, one * where, atol=1e-5, rtol=0)


@pytest.mark.slow
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("kind", TEXTS)
def test_readers_look_where_eager_looks(kind: str, side: str) -> None:
    model, given = built(TEXTS[kind]), padded(side)
    found = looked(model, given)
    check(eager(model, given)["attentions"], found, given["attention_mask"])
    stack = "layers" if next(iter(found)).startswith("layers") else "encoder"
    if kind != "albert":
        assert list(found) == [f"{stack}.{layer}.self" for layer in range(2)]


@pytest.mark.parametrize("kind", TEXTS)
def test_without_padding_no_mask_is_held(kind: str) -> None:
    model, record, given = built(TEXTS[kind]), Record(), {"input_ids": words()}
    with torch.no_grad(), recording(model, record):
        model(**given)
    views = [call for calls in record.values() for call in calls if isinstance(call, View)]
    assert all(view.mask is None for view in views)
    check(eager(model, given)["attentions"], {n: dense(c[0]) for n, c in record.items()})


@pytest.mark.parametrize("sizes", [{}, {"head_ratio": 4}, {"num_groups": 2, "embedding_size": 16}])
def test_the_attention_beside_the_convolutions_of_a_convbert_is_seen(sizes: Any) -> None:
    """Its other heads are convolutions, whose kernels are softmaxes too; one text is as long."""
    model = built(reader("ConvBertModel", **{**READER, "embedding_size": 32, **sizes}))
    for length in (1, model.config.conv_kernel_size):
        given = {"input_ids": words(length=length)}
        with torch.no_grad(), saccade.looking(model) as trace:  # warnings are errors here
            model(**given)
        check(eager(model, given)["attentions"], dict(trace.weights()))


@pytest.mark.parametrize("kind", PAIRS)
def test_translators_look_where_eager_looks(kind: str) -> None:
    model = built(PAIRS[kind])
    given = {**padded("right"), "decoder_input_ids": words(length=5, seed=1)}
    found, expected = looked(model, given), eager(model, given)
    for stack in ("encoder.{}.self", "decoder.{}.self", "decoder.{}.cross"):
        output = stack.split(".")[0 if "self" in stack else -1] + "_attentions"
        check(expected[output], {name: found[name] for name in map(stack.format, range(2))})
    assert len(found) == 6


@pytest.mark.parametrize("kind", IMAGE_MODELS)
def test_eyes_look_where_eager_looks_and_know_their_grid(kind: str) -> None:
    make, axis = IMAGE_MODELS[kind]
    model = built(make)
    given = {"pixel_values": torch.randn(2, 3, model.config.image_size, model.config.image_size)}
    found = {name: w for name, w in looked(model, given).items() if "head" not in name}
    if kind == "swin":  # whose eager path shows the last block of each stage only
        assert list(found) == ["encoder.0.0.self", "encoder.0.1.self", "encoder.1.0.self"]
        del found["encoder.0.0.self"]
    check(eager(model, given)["attentions"], found)
    with torch.no_grad(), recording(model, {}) as axes:
        model(**given)
    assert all(axes[name] == (axis, axis) for name in found)


def clip() -> nn.Module:
    sizes = {"text_config": {**READER, "hidden_size": 32}, "vision_config": VISION}
    return hf.CLIPModel(hf.CLIPConfig(**sizes, projection_dim=16))


def test_a_model_of_two_towers_has_sites_in_both() -> None:
    model = built(clip)
    given = {**padded("right"), "pixel_values": torch.randn(2, 3, 12, 12)}
    found = looked(model, given)
    assert list(found) == ["vision.0.self", "vision.1.self", "text.0.self", "text.1.self"]
    for tower, inputs in (("vision", ["pixel_values"]), ("text", ["input_ids", "attention_mask"])):
        own = {name: given[name] for name in inputs}
        expected = eager(getattr(model, f"{tower}_model"), own)["attentions"]
        check(expected, {name: w for name, w in found.items() if name.startswith(tower)})


def test_whisper_hears_where_eager_hears() -> None:
    config = hf.WhisperConfig(**PAIR, num_mel_bins=8, max_source_positions=10)
    model = built(lambda: hf.WhisperModel(config))
    given = {"input_features": torch.randn(2, 8, 20), "decoder_input_ids": words(length=4)}
    found, expected = looked(model, given), eager(model, given)
    check(expected["cross_attentions"], {n: w for n, w in found.items() if "cross" in n})
    check(expected["encoder_attentions"], {n: w for n, w in found.items() if "enc" in n})


def test_translators_name_their_sides() -> None:
    with recording(built(PAIRS["bart"]), {}) as axes:
        assert axes["encoder.1.self"] == (SOURCE, SOURCE)
        assert axes["decoder.0.self"] == (TARGET, TARGET)
        assert axes["decoder.0.cross"] == (TARGET, SOURCE)
    with recording(built(TEXTS["llama"]), {}) as axes:
        assert axes == {f"layers.{layer}.self": (TEXT, TEXT) for layer in range(2)}


def test_layers_that_share_their_weights_are_told_apart() -> None:
    found = looked(built(TEXTS["albert"]), {"input_ids": words()})
    assert list(found) == ["encoder.0.self", "encoder.0~2.self"]


def test_a_picture_of_another_size_is_no_grid_of_the_old() -> None:
    model = built(IMAGE_MODELS["dinov2"][0])
    with torch.no_grad(), recording(model, {}) as axes:
        model(torch.randn(1, 3, 16, 16))
    assert axes["encoder.0.self"] == (Axis("image"), Axis("image"))


def test_words_that_look_at_a_picture_know_its_grid() -> None:
    encoder, decoder = hf.ViTConfig(**VISION), hf.BertConfig(**READER)
    config = hf.VisionEncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder)
    model = built(lambda: hf.VisionEncoderDecoderModel(config))
    given = {"pixel_values": torch.randn(2, 3, 12, 12), "decoder_input_ids": words()}
    found = looked(model, given)
    check(eager(model, given)["cross_attentions"], {n: w for n, w in found.items() if "cross" in n})
    with recording(model, {}) as axes:
        assert axes["decoder.0.cross"] == (TARGET, Axis("image", "grid", 3, 3, 1))


def test_a_pooling_head_of_torch_is_a_site_too() -> None:
    model, record, image = built(IMAGE_MODELS["siglip"][0]), Record(), torch.randn(2, 3, 12, 12)
    with torch.no_grad(), recording(model, record):
        states = model(image).last_hidden_state
        expected = model.head.attention(
            model.head.probe.expand(2, -1, -1), states, states, average_attn_weights=False
        )[1]
    torch.testing.assert_close(dense(record["head.self"][0]), expected)


def test_looking_gives_weights_and_statistics_by_site() -> None:
    model, given = built(PAIRS["bart"]), {**padded("right"), "decoder_input_ids": words(length=5)}
    expected = eager(model, given)["cross_attentions"]
    with torch.no_grad(), saccade.looking(model) as trace:
        model(**given)
    found = {name: w for name, w in trace.weights().items() if name.endswith("cross")}
    check(expected, found)
    glance = trace["decoder.1.cross"]
    torch.testing.assert_close(glance.highest, expected[1].amax(dim=-1), atol=1e-5, rtol=0)
    assert trace.axes["decoder.1.cross"] == (TARGET, SOURCE)


def test_looking_at_some_sites_only() -> None:
    model = built(TEXTS["bert"])
    with torch.no_grad(), saccade.looking(model, only="1.self") as trace:
        model(words())
    assert list(trace) == ["encoder.1.self"]


def test_looking_keeps_little_of_long_inputs_and_that_is_right() -> None:
    model, ids = built(TEXTS["llama"]), words(length=300)
    mask = torch.ones_like(ids)
    mask[1, :40] = 0
    expected = eager(model, {"input_ids": ids, "attention_mask": mask})["attentions"]
    with torch.no_grad(), saccade.looking(model, keep=Keep(dense=0)) as trace:
        model(input_ids=ids, attention_mask=mask)
    for layer, weights in enumerate(expected):
        weights = weights * mask.bool()[:, None, :, None]  # what is padding looks nowhere
        glance = trace[f"layers.{layer}.self"]
        torch.testing.assert_close(glance.highest, weights.amax(dim=-1), atol=1e-5, rtol=0)
        torch.testing.assert_close(glance.received, weights.sum(dim=2), atol=1e-3, rtol=0)
