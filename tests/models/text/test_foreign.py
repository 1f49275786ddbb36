"""A model of transformers inside ours gives what it gives by itself, and learns."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from saccade.attention.parameters import parameter_roles
from saccade.data.batching.rows import BatchShape, Rows
from saccade.errors import ConfigError
from saccade.models.names.pretrained import load_pretrained
from saccade.models.outline import outline
from saccade.models.protocol import HasLayers, ScoresTexts
from saccade.models.text import foreign
from saccade.models.text.foreign import ForeignEncoder, ForeignEncoderConfig, parsed
from tests.models.foreigners import NATIVE, SIZES, save, some_rows, states, their_config, told

TYPED = {
    *("albert", "ernie", "rembert", "squeezebert", "xlnet", "funnel", "convbert", "mobilebert"),
    *("fnet", "electra"),
}


def config_of(kind: str, **more: object) -> ForeignEncoderConfig:
    theirs = their_config(kind)
    given = {**json.loads(theirs.to_json_string(use_diff=True)), "vocab_size": theirs.vocab_size}
    settings = json.dumps({**given, "model_type": kind})
    return replace(ForeignEncoderConfig(settings=settings, dropout=0.0), **more)


def built(kind: str, folder: Path) -> tuple[ForeignEncoder, object]:
    theirs = save(folder, kind)
    model = (config_of(kind) if kind in NATIVE else told(folder)).build().eval()
    report = load_pretrained(model, folder)
    assert report.fits, str(report)
    return model, theirs


def alone(model: ForeignEncoder, rows: Rows, types: Tensor) -> Tensor:
    lengths = rows.lengths.tolist()
    return torch.cat(
        [
            model(Rows.of(one, torch.tensor([len(one)])), kinds)
            for one, kinds in zip(rows.tokens.split(lengths), types.split(lengths))
        ]
    )


@pytest.mark.parametrize("kind", [*SIZES, *NATIVE])
@torch.no_grad()
def test_each_text_gets_what_the_library_gives_it_alone(kind: str, tmp_path: Path) -> None:
    model, theirs = built(kind, tmp_path)
    assert isinstance(model, ScoresTexts)
    rows = some_rows()
    types = (rows.places > 4).long()
    wanted = states(theirs, rows, types, typed=kind in TYPED)
    torch.testing.assert_close(model(rows, types), wanted, atol=2e-6, rtol=1e-5)
    torch.testing.assert_close(alone(model, rows, types), wanted, atol=2e-6, rtol=1e-5)
    if kind in TYPED:
        assert not torch.allclose(model(rows, torch.zeros_like(types)), wanted, atol=1e-5)


@pytest.mark.parametrize("kind", ["albert", "funnel", "t5"])
@pytest.mark.parametrize("reads", ["first", "last", "mean"])
@torch.no_grad()
def test_what_fills_a_shape_changes_no_score(kind: str, reads: str) -> None:
    torch.manual_seed(0)
    model = config_of(kind, reads=reads).build().eval()
    rows = some_rows()
    filled = Rows.of(rows.tokens, rows.lengths, shape=BatchShape(60, 8, 20))
    types, more = torch.zeros(len(rows.tokens)).long(), torch.zeros(60).long()
    scores, found = (
        model.scores(model(rows, types), rows),
        model.scores(model(filled, more), filled),
    )
    assert found.shape == (8, 2)
    torch.testing.assert_close(found[:4], scores, atol=2e-6, rtol=1e-5)
    tagger = config_of(kind, head="tokens", labels=5).build().eval()
    assert tagger.scores(tagger(filled, more), filled).shape == (60, 5)


@torch.no_grad()
def test_a_text_is_read_where_the_config_says() -> None:
    rows, hidden = some_rows((3, 2)), torch.randn(5, 16)
    for reads, wanted in (
        ("first", hidden[[0, 3]]),
        ("last", hidden[[2, 4]]),
        ("mean", torch.stack([hidden[:3].mean(dim=0), hidden[3:].mean(dim=0)])),
    ):
        model = config_of("mpnet", reads=reads).build().eval()
        assert model.pooler is not None
        torch.testing.assert_close(model.pooled(hidden, rows), model.pooler(wanted).tanh())
    places = {
        reads: config_of("mpnet", reads=reads).build().read_at(7) for reads in ("last", "mean")
    }
    assert places == {"last": 6, "mean": None}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["albert", "deberta-v2", "mpnet", "t5", "funnel", "xlnet"])
def test_every_weight_has_a_role_and_learns(kind: str) -> None:
    torch.manual_seed(0)
    model = config_of(kind, labels=3).build().train()
    assert len(list(parameter_roles(model))) == len(list(model.parameters()))
    rows, types = some_rows(), torch.zeros(37).long()
    wanted = torch.tensor([0, 1, 2, 1])
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = list[float]()
    for _ in range(40):
        with torch.autocast("cpu", torch.bfloat16):
            scores = model.scores(model(rows, types), rows)
        loss = torch.nn.functional.cross_entropy(scores.float(), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
    without = [name for name, p in model.named_parameters() if p.grad is None]
    assert [name for name in without if "seg_embed" not in name and "mask_emb" not in name] == []


def test_layers_are_found_where_each_has_weights_of_its_own() -> None:
    for kind, depth in (("deberta-v2", 2), ("t5", 2), ("bart", 2), ("albert", 0), ("funnel", 0)):
        model = outline(config_of(kind))
        assert isinstance(model, HasLayers)
        assert len(model.layers_upwards()) == depth, kind


def test_a_config_chooses_neither_code_nor_kernels_nor_precision() -> None:
    settings = {
        "model_type": "albert",
        "auto_map": {"AutoModel": "evil.Model"},
        "attn_implementation": "owner/kernel",
        "torch_dtype": "float16",
        "return_dict": False,
        "inside": {"_attn_implementation": "owner/kernel", "size": 3},
    }
    assert parsed(json.dumps(settings)) == {"model_type": "albert", "inside": {"size": 3}}
    sizes = {**parsed(config_of("albert").settings), "torch_dtype": "float16", "return_dict": False}
    model = ForeignEncoderConfig(settings=json.dumps(sizes)).build()
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert model(some_rows(), torch.zeros(37).long()).shape == (37, 16)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"settings": "{"}, "settings is not JSON"),
        ({"settings": "[]"}, "settings names no model_type"),
        ({"settings": '{"model_type": 3}'}, "settings names no model_type"),
        (
            {"settings": '{"model_type": "t5", "a": ' + '{"a": ' * 9 + "1" + "}" * 10},
            "tables within tables beyond 8",
        ),
        ({"head": "words"}, "tells classes of texts and of words, not words; train one of ours"),
        ({"longest": 0}, "longest=0 must be at least 1, or None"),
        ({"dropout": 1.0}, "dropout=1.0 must be at least 0 and below 1"),
        ({"vocabulary": 171}, "the tokenizer has 171 tokens, and this albert has rows for 170"),
    ],
)
def test_wrong_settings_are_refused_in_one_line(change: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        config_of("albert", **change)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "sizes",
    [
        {"model_type": "no-such-model"},
        {"model_type": "albert", "hidden_size": "wide"},
        {"model_type": "albert", "num_attention_heads": 0},
        {"model_type": "vit"},
    ],
)
def test_what_the_library_cannot_build_is_refused_in_one_line(sizes: dict[str, object]) -> None:
    with pytest.raises(ConfigError) as caught:
        ForeignEncoderConfig(settings=json.dumps(sizes)).build()
    assert f"model_type={sizes['model_type']}" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_without_the_library_one_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> object:
        raise ImportError(name)

    monkeypatch.setattr(foreign, "import_module", absent)
    with pytest.raises(ConfigError, match=r"albert needs transformers.*saccade\[huggingface\]"):
        config_of("albert").build()
