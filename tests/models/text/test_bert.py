"""The laws of text encoders, with every head; and their published sizes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import load_file, save_file
from torch import Tensor

from saccade.attention.look.looking import looking
from saccade.config import from_dict, to_dict
from saccade.data.batching.rows import BatchShape, Rows
from saccade.errors import ConfigError
from saccade.models import FAMILIES, PRESETS, family
from saccade.models.protocol import (
    Capturable,
    FillsWords,
    HasLayers,
    ReplacesWords,
    ScoresTexts,
    TextEncoder,
)
from saccade.models.text.bert import BertConfig
from saccade.models.text.electra import ElectraConfig
from saccade.models.text.text_encoder import TextEncoderConfig
from tests.models import zoo
from tests.models.encoders import (
    BERT,
    DISTILBERT,
    ELECTRA,
    ENCODERS,
    ROBERTA,
    TEXTS,
    VOCABULARY,
    rows_of,
    scores,
    types_of,
)

HF: Any = transformers
EXACT = {"atol": 1e-12, "rtol": 0}
ROWS = rows_of(TEXTS)
every_encoder = pytest.mark.parametrize("config", ENCODERS.values(), ids=ENCODERS)


def of_text(said: dict[str, Tensor], rows: Rows, number: int) -> dict[str, Tensor]:
    """What is said of one text of many."""
    words = slice(int(rows.starts[number]), int(rows.starts[number + 1]))
    one = slice(number, number + 1)
    return {key: x[one if key.startswith("texts") else words] for key, x in said.items()}


def assert_same(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    for key, wanted in expected.items():
        torch.testing.assert_close(found[key], wanted, **EXACT)


@every_encoder
def test_it_says_what_its_head_is_for(config: TextEncoderConfig) -> None:
    model = zoo.build(config)
    assert isinstance(model, TextEncoder)
    assert isinstance(model, Capturable)
    assert isinstance(model, HasLayers)
    assert len(model.layers_upwards()) == 2
    assert model.longest == config.most_words == 12
    if isinstance(config, ElectraConfig):
        assert isinstance(model, ReplacesWords)
        assert isinstance(model.generator, FillsWords)
        assert isinstance(model.discriminator, ScoresTexts)
    sizes = {"words": VOCABULARY, "follows": 2, "labels": 3}
    for key, found in scores(model, ROWS).items():
        of, _, what = key.partition(": ")
        size = 1 if config.head == "replaced" and what == "labels" else sizes[what]
        assert found.shape == (len(TEXTS) if of == "texts" else len(ROWS.tokens), size)
        assert found.isfinite().all()


@every_encoder
@torch.no_grad()
def test_texts_end_to_end_are_as_each_alone(config: TextEncoderConfig) -> None:
    model = zoo.build(config)
    said = scores(model, ROWS)
    for number, text in enumerate(TEXTS):
        assert_same(of_text(said, ROWS, number), scores(model, rows_of([text])))


@every_encoder
@torch.no_grad()
def test_a_neighbour_cannot_leak_but_a_word_of_ones_own_matters(config: TextEncoderConfig) -> None:
    model = zoo.build(config)
    said = scores(model, ROWS)
    other = rows_of([[13, 14], TEXTS[1], [*TEXTS[2][:-1], 13], TEXTS[3]])
    changed = scores(model, other)
    for number in (1, 3):
        assert_same(of_text(changed, other, number), of_text(said, ROWS, number))
    for found, before in zip(
        of_text(changed, other, 2).values(), of_text(said, ROWS, 2).values(), strict=True
    ):
        assert (found[0] - before[0]).abs().max() > 1e-6  # at the first token, by the last


@torch.no_grad()
def test_a_text_is_read_where_its_config_says() -> None:
    for reads, place in (("first", 0), ("last", -1), ("mean", slice(None))):
        model: Any = zoo.build(replace(BERT, head="text", reads=reads))
        hidden = model(ROWS, types_of(ROWS))
        for number, found in enumerate(model.scores(hidden, ROWS)):
            text = hidden[ROWS.starts[number] : ROWS.starts[number + 1]]
            state = text[place].mean(dim=0) if reads == "mean" else text[place]
            wanted = model.classifier(model.pooler(state).tanh())
            torch.testing.assert_close(found, wanted, **EXACT)
        expected = {"first": 0, "last": 6, "mean": None}
        assert model.read_at(7) == expected[reads]


@every_encoder
@torch.no_grad()
def test_what_fills_a_shape_changes_nothing(config: TextEncoderConfig) -> None:
    model = zoo.build(config)
    filled = Rows.of(ROWS.tokens, ROWS.lengths, shape=BatchShape(32, 9, 8))
    said = scores(model, filled)
    real = {
        key: x[: len(TEXTS)] if key.startswith("texts") else x[: ROWS.real]
        for key, x in said.items()
    }
    assert_same(real, scores(model, ROWS))
    assert all(x.isfinite().all() for x in said.values())


@every_encoder
@torch.no_grad()
def test_which_text_a_token_is_of_matters_where_there_are_types(config: TextEncoderConfig) -> None:
    model = zoo.build(config)
    one = scores(model, ROWS, torch.zeros_like(ROWS.tokens))
    two = scores(model, ROWS, types_of(ROWS))
    told_apart = isinstance(config, ElectraConfig) or config == replace(config, types=2)  # type: ignore[call-arg]
    for key in one:
        assert torch.equal(one[key], two[key]) != told_apart


@every_encoder
def test_saving_then_loading_is_the_identity(config: TextEncoderConfig, tmp_path: Path) -> None:
    model = zoo.build(config)
    save_file(model.state_dict(), tmp_path / "model.safetensors")  # which refuses shared tensors
    settings = from_dict(FAMILIES[family(config)], to_dict(config))
    assert settings == config
    again: Any = settings.build().double().eval()
    again.load_state_dict(load_file(tmp_path / "model.safetensors"))
    expected = scores(model, ROWS)
    assert all(torch.equal(x, expected[key]) for key, x in scores(again, ROWS).items())


@every_encoder
def test_gradients_reach_every_parameter(config: TextEncoderConfig) -> None:
    model = zoo.build(config)
    torch.stack([x.square().sum() for x in scores(model, ROWS).values()]).sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        if not name.endswith("to_k.bias"):  # it moves all scores of a query alike: softmax is blind
            assert parameter.grad.abs().max() > 0, name


@every_encoder
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_in_mixed_precision_it_learns_and_says_nearly_the_same(
    config: TextEncoderConfig, dtype: torch.dtype
) -> None:
    model = zoo.build(config, torch.float32)
    with torch.no_grad():
        expected = scores(model, ROWS)
    with torch.autocast("cpu", dtype):
        said = scores(model.train(), ROWS)
        torch.stack([x.float().square().mean() for x in said.values()]).sum().backward()
    assert all(x.grad is not None and x.grad.isfinite().all() for x in model.parameters())
    for key, found in said.items():
        assert (found.float() - expected[key]).norm() < 0.1 * expected[key].norm()


@every_encoder
@torch.no_grad()
def test_looking_sees_each_text_look_at_itself_alone(config: TextEncoderConfig) -> None:
    model = zoo.build(config)
    with looking(model) as trace:
        said = scores(model, ROWS)
    assert_same(said, scores(model, ROWS))
    own = ROWS.sequences[:, None] == ROWS.sequences
    assert len(trace) == (4 if isinstance(config, ElectraConfig) else 2)
    for weights in trace.weights().values():  # (1, N, T, T)
        assert not weights[..., ~own].any()
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones_like(weights[..., 0]))


@pytest.mark.slow
@every_encoder
def test_overfits_one_batch(config: TextEncoderConfig) -> None:
    torch.manual_seed(0)
    model: Any = config.build()
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(400):
        losses: list[Tensor] = []
        for found in scores(model, ROWS).values():
            labels = torch.arange(len(found)) % max(2, found.shape[1])
            one = found.shape[1] == 1
            losses.append(
                F.binary_cross_entropy_with_logits(found[:, 0], labels.float())
                if one
                else F.cross_entropy(found, labels)
            )
        loss = torch.stack(losses).sum()
        if loss < 0.1:
            return
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    pytest.fail(f"the loss is still {loss:.3f}")


def count(model: Any) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


PUBLISHED: dict[str, tuple[Any, int]] = {
    "bert-base": (lambda: HF.BertModel(HF.BertConfig()), 109_482_240),
    "bert-large": (
        lambda: HF.BertModel(
            HF.BertConfig(
                hidden_size=1024,
                num_hidden_layers=24,
                num_attention_heads=16,
                intermediate_size=4096,
            )
        ),
        335_141_888,
    ),
    "roberta-base": (
        lambda: HF.RobertaModel(HF.RobertaConfig(max_position_embeddings=514, type_vocab_size=1)),
        124_645_632,
    ),
    "minilm-l6": (
        lambda: HF.BertModel(
            HF.BertConfig(hidden_size=384, num_hidden_layers=6, intermediate_size=1536)
        ),
        22_713_216,
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_with_its_pooler_and_no_head_it_has_as_many_weights_as_published(name: str) -> None:
    theirs, expected = PUBLISHED[name]
    config: Any = PRESETS[name]
    with torch.device("meta"):
        ours: Any = replace(config, head="text").build()
        assert count(ours) - count(ours.classifier) == count(theirs()) == expected


@pytest.mark.parametrize(
    ("name", "theirs", "expected"),
    [
        ("distilbert-base", lambda: HF.DistilBertForMaskedLM(HF.DistilBertConfig()), 66_985_530),
        ("electra-small", lambda: HF.ElectraForPreTraining(HF.ElectraConfig()), 13_549_057),
        ("bert-base", lambda: HF.BertForPreTraining(HF.BertConfig()), 110_106_428),
    ],
)
def test_with_its_head_it_has_as_many_as_published(name: str, theirs: Any, expected: int) -> None:
    with torch.device("meta"):
        assert count(PRESETS[name].build()) == count(theirs()) == expected


@pytest.mark.parametrize("name", ["bert-nano", "bert-mini", "electra-nano"])
def test_small_ones_are_small_and_fresh_ones_know_nothing(name: str) -> None:
    model: Any = PRESETS[name].build()
    assert count(model) < 6_000_000
    fills = model.generator if isinstance(PRESETS[name], ElectraConfig) else model
    with torch.no_grad():
        logits = fills.output(fills.transformed(fills(ROWS, types_of(ROWS))))
    spread = logits.log_softmax(dim=-1).exp().sum(dim=-1) - 1
    assert spread.abs().max() < 1e-4
    assert logits.std() < 1


def test_embeddings_are_shared_by_both_parts_of_an_electra() -> None:
    model = ELECTRA.build()
    assert model.generator.output.weight is model.discriminator.embeddings.words.weight
    assert ELECTRA.generator_sizes == (8, 1, 12)


def test_dropout_is_on_what_sublayers_add_and_nowhere_inside() -> None:
    model = replace(BERT, dropout=0.3).build()
    rates = {name: m.rate for name, m in model.named_modules() if hasattr(m, "rate")}
    assert {name for name, rate in rates.items() if rate == 0.3} == {
        "embeddings.dropout",
        "dropout",
        *(f"encoder.{i}.around_{part}.dropout" for i in (0, 1) for part in ("attention", "mlp")),
    }


def test_more_tokens_than_there_are_positions_are_refused() -> None:
    for config in (BERT, ROBERTA, DISTILBERT):
        model = zoo.build(config)
        assert model(rows_of([[5] * 12]), torch.zeros(12, dtype=torch.long)).shape == (12, 16)
        with pytest.raises(ConfigError, match=r"^1[35] positions, but the model learnt only 1[24]"):
            model(rows_of([[5] * 13]), torch.zeros(13, dtype=torch.long))


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"width": 10, "heads": 3}, "width=10 does not divide into heads=3"),
    ({"labels": 0}, "labels=0 must be at least 1"),
    ({"vocabulary": 0}, "vocabulary=0 must be at least 1"),
    ({"dropout": 1.0}, "dropout=1.0 must be at least 0 and below 1"),
    ({"types": -1}, "types=-1, first_position=0 must be 0 or more"),
    ({"embedding_width": 0}, "embedding_width=0 must be at least 1, or None"),
]


@pytest.mark.parametrize(("sizes", "told"), WRONG)
def test_sizes_that_cannot_be_are_refused(sizes: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as raised:
        BertConfig(**sizes)
    assert str(raised.value) == told


WRONG_ELECTRA: list[tuple[dict[str, Any], str]] = [
    (
        {"head": "text"},
        "head='text': an electra is for pre-training alone; start a bert from its run (--init) "
        "for anything else",
    ),
    ({"generator": 0.0}, "generator=0.0 must be above 0 and at most 1"),
    (
        {"generator": 0.1, "width": 320, "heads": 32},
        "generator=0.1 of width=320 is 32, which does not divide into 3 heads",
    ),
    ({"width": 10, "heads": 4}, "width=10 does not divide into heads=4"),
    ({"embedding_width": 0}, "embedding_width=0 must be at least 1"),
]


@pytest.mark.parametrize(("sizes", "told"), WRONG_ELECTRA)
def test_sizes_of_an_electra_that_cannot_be_are_refused(sizes: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as raised:
        ElectraConfig(**sizes)
    assert str(raised.value) == told
