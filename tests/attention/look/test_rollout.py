"""Rollout against the recursion on dense weights."""

import pytest
import torch
from torch import Tensor
from transformers import BertConfig, BertModel

import saccade
from saccade.attention import masks
from saccade.attention.look.rollout import one_hot, roll
from saccade.attention.look.view import View
from saccade.errors import ConfigError
from saccade.models.text.gpt import GptConfig
from saccade.models.text.transformer import TransformerConfig

TOKENS = torch.arange(40).view(2, 20) % 17


def recursion(layers: list[Tensor], start: Tensor) -> Tensor:
    """R ← ½ R + ½ mean A R."""
    for weights in layers:
        start = 0.5 * start + 0.5 * weights.mean(dim=1) @ start
    return start


def buckets(size: int, many: int) -> Tensor:
    return torch.eye(many, dtype=torch.float64)[torch.arange(size) * many // size].expand(2, -1, -1)


@pytest.mark.parametrize("many", [3, 8, 20, 64])
def test_rollout_of_a_language_model_is_the_recursion_on_its_weights(many: int) -> None:
    model = GptConfig(vocabulary=17, width=16, heads=2, depth=3, longest=32).build().double().eval()
    with saccade.looking(model) as trace, saccade.rolling_out(model, buckets=many) as rollout:
        model(TOKENS)
    expected = recursion(list(trace.weights().values()), buckets(20, min(many, 20)))
    torch.testing.assert_close(rollout.mixture["decoder"], expected)
    torch.testing.assert_close(expected.sum(dim=-1), torch.ones(2, 20, dtype=torch.float64))


def test_rollout_of_an_encoder_leaves_padding_out() -> None:
    config = TransformerConfig(vocabulary=17, width=16, heads=2, depth=2, hidden=16, longest=32)
    model = config.build().double().eval()
    lengths = torch.tensor([20, 12])
    with (
        saccade.looking(model, only="self") as trace,
        saccade.rolling_out(model, only="self") as rollout,
    ):
        model(TOKENS, lengths, TOKENS[:, :5])
    layers = [weights for name, weights in trace.weights().items() if name.startswith("encoder")]
    mixture, expected = rollout.mixture["encoder"], recursion(layers, buckets(20, 20))
    for row, length in enumerate(lengths):  # what is padding looks nowhere in a trace
        torch.testing.assert_close(mixture[row, :length], expected[row, :length])
    assert rollout.mixture["encoder"][1, :12, 12:].eq(0).all()


def test_rollout_of_a_hugging_face_model() -> None:
    config = BertConfig(
        vocab_size=17, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=32,
    )  # fmt: skip
    model = BertModel(config).double().eval()
    with (
        torch.no_grad(),
        saccade.looking(model) as trace,
        saccade.rolling_out(model) as rollout,
    ):
        model(TOKENS)
    (mixture,) = rollout.mixture.values()
    torch.testing.assert_close(mixture, recursion(list(trace.weights().values()), buckets(20, 20)))


@pytest.mark.parametrize("kind", ["causal", "reach", "mask", "bias", "grouped"])
def test_one_layer_is_the_formula_under_every_mask(kind: str) -> None:
    q, k = (torch.randn(2, 4, 9, 8, dtype=torch.float64) for _ in range(2))
    masked = torch.rand(2, 1, 9, 9) > 0.4
    options = {
        "causal": {"causal": True},
        "reach": {"causal": True, "reach": 2},
        "mask": {"mask": masked},
        "bias": {"bias": torch.randn(1, 4, 9, 9, dtype=torch.float64), "causal": True},
        "grouped": {},
    }
    view = View(q, k[:, :2] if kind == "grouped" else k, 0.3, **options[kind])  # type: ignore[arg-type]
    start = torch.rand(2, 9, 11, dtype=torch.float64)
    expected = 0.5 * start + 0.5 * view.weights().mean(dim=1) @ start
    torch.testing.assert_close(roll(view, start), expected)


def test_weights_that_are_there_roll_like_those_that_follow_from_a_view() -> None:
    q = torch.randn(1, 2, 6, 4)
    view = View(q, q, 0.5, mask=masks.causal(6, 6))
    torch.testing.assert_close(
        roll(view, one_hot(view, 4)), roll(view.weights(), one_hot(view.weights(), 4))
    )


def test_cross_attention_and_soft_caps_are_refused() -> None:
    q, k = torch.randn(1, 1, 3, 4), torch.randn(1, 1, 5, 4)
    model = TransformerConfig(vocabulary=9, width=8, heads=2, depth=1, hidden=8).build()
    with (
        pytest.raises(ConfigError, match=r"decoder\.0\.cross has 5 queries and 20 keys"),
        saccade.rolling_out(model, only=""),
    ):
        model(TOKENS % 9, torch.tensor([20, 20]), TOKENS[:, :5] % 9)
    with pytest.raises(ConfigError, match="no soft caps"):
        roll(View(q, q, 1.0, softcap=3.0), torch.rand(1, 3, 2))
    del k
