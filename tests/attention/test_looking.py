"""Watching a model: what is recorded, under which names, and that nothing stays behind."""

import pytest
import torch
from torch import nn

from saccade.attention.looking import looking, sites
from saccade.errors import ConfigError
from saccade.models import (
    ConvSeq2SeqConfig,
    GptConfig,
    RnnAttentionConfig,
    RnnLanguageConfig,
    Seq2SeqConfig,
    TransformerConfig,
)

SOURCE, LENGTHS = torch.tensor([[4, 5, 6], [7, 8, 0]]), torch.tensor([3, 2])
TARGET = torch.tensor([[1, 4, 5, 6], [1, 7, 8, 9]])


def transformer() -> nn.Module:
    torch.manual_seed(0)
    return TransformerConfig(vocabulary=10, width=8, depth=2, heads=2, hidden=16).build().eval()


def test_sites_of_a_transformer_have_stable_names() -> None:
    assert list(sites(transformer())) == [
        "encoder.0.self",
        "encoder.1.self",
        "decoder.0.self",
        "decoder.0.cross",
        "decoder.1.self",
        "decoder.1.cross",
    ]


@pytest.mark.parametrize(
    ("config", "names"),
    [
        (RnnAttentionConfig(vocabulary=10, width=8), ["decoder.cross"]),
        (RnnAttentionConfig(vocabulary=10, width=8, context="layer"), ["decoder.cross"]),
        (
            ConvSeq2SeqConfig(vocabulary=10, width=8, depth=2),
            ["decoder.0.cross", "decoder.1.cross"],
        ),
        (
            GptConfig(vocabulary=10, width=8, depth=2, heads=2),
            ["decoder.0.self", "decoder.1.self"],
        ),
        (Seq2SeqConfig(vocabulary=10, width=8), []),
        (RnnLanguageConfig(vocabulary=10, width=8), []),
    ],
)
def test_sites_of_the_other_models_are_named_alike(config: object, names: list[str]) -> None:
    assert list(sites(config.build())) == names  # type: ignore[attr-defined]


def test_every_site_is_recorded_with_rows_heads_queries_and_keys() -> None:
    model = transformer()
    with looking(model) as trace:
        model(SOURCE, LENGTHS, TARGET)
    shapes = {name: tuple(weights.shape) for name, weights in trace.weights().items()}
    assert shapes == {
        name: (
            2,
            2,
            3 if "encoder" in name else 4,
            4 if "decoder" in name and "self" in name else 3,
        )
        for name in sites(model)
    }


def test_padding_gets_no_weight_and_the_rest_sums_to_one() -> None:
    model = transformer()
    with looking(model) as trace:
        model(SOURCE, LENGTHS, TARGET)
    for name, weights in trace.weights().items():
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones(weights.shape[:3]))
        if name.endswith("cross") or name.startswith("encoder"):
            assert weights[1, :, :, 2].eq(0).all()


def test_only_the_sites_asked_for_are_watched() -> None:
    model = transformer()
    with looking(model, only="cross") as trace:
        model(SOURCE, LENGTHS, TARGET)
    assert list(trace.weights()) == ["decoder.0.cross", "decoder.1.cross"]


def test_taking_hands_over_every_call_and_starts_afresh() -> None:
    model = transformer()
    with looking(model, only="0.cross") as trace:
        model(SOURCE, LENGTHS, TARGET)
        model(SOURCE, LENGTHS, TARGET[:, :2])
        seen = trace.take()["decoder.0.cross"]
        assert [weights.shape[2] for weights in seen] == [4, 2]
        assert trace.take() == {}


@pytest.mark.parametrize("context", ["readout", "layer", "input"])
def test_a_model_that_reads_step_by_step_shows_all_of_its_steps(context: str) -> None:
    model = RnnAttentionConfig(vocabulary=10, width=8, context=context).build()  # type: ignore[arg-type]
    with looking(model) as trace:
        model(SOURCE, LENGTHS, TARGET)
    assert trace.weights()["decoder.cross"].shape == (2, 1, 4, 3)


def test_recorded_weights_do_not_hold_on_to_the_graph() -> None:
    model = transformer()
    with looking(model) as trace:
        model(SOURCE, LENGTHS, TARGET)
    assert not any(weights.requires_grad for weights in trace.weights().values())


def test_nothing_is_recorded_after_the_block() -> None:
    model = transformer()
    with looking(model) as trace:
        pass
    model(SOURCE, LENGTHS, TARGET)
    assert trace.weights() == {}
    assert all(site.watcher is None for site in sites(model).values())


def test_no_watcher_is_left_after_an_exception() -> None:
    model = transformer()
    with pytest.raises(IndexError), looking(model):
        model(SOURCE + 10, LENGTHS, TARGET)  # no such words
    assert all(site.watcher is None for site in sites(model).values())


def test_looking_changes_no_bit_of_a_models_output() -> None:
    model = transformer()
    unwatched = model(SOURCE, LENGTHS, TARGET)
    with looking(model):
        assert torch.equal(model(SOURCE, LENGTHS, TARGET), unwatched)


def test_a_model_without_attention_cannot_be_looked_at() -> None:
    model = Seq2SeqConfig(vocabulary=10, width=8).build()
    with pytest.raises(ConfigError, match=r"^Seq2Seq has no attention to look at$"):
        looking(model).__enter__()
