"""Rollout from words to what was read, against the recursion on dense weights."""

from typing import Any

import pytest
import torch
from torch import Tensor

import saccade
from saccade.attention.axes import Axis
from saccade.attention.rollout_across import rolling_across
from saccade.errors import ConfigError
from saccade.models.transformer import TransformerConfig
from tests.models.captioners import CONFIGS, LENGTHS, OF, PICTURES, build, rows


def mixed(known: Tensor, weights: Tensor, read: Tensor | None = None) -> Tensor:
    return 0.5 * known + 0.5 * weights.mean(dim=1) @ (known if read is None else read)


def recursion(weights: dict[str, Tensor], inputs: Tensor) -> Tensor:
    """Every layer by its name, in the order in which they run."""
    words = torch.zeros(1)
    for name, one in weights.items():
        if not name.startswith("decoder"):
            inputs = mixed(inputs[:, inputs.shape[1] - one.shape[-1] :], one)
        elif name.endswith("cross"):
            at = inputs[:, inputs.shape[1] - one.shape[-1] :]
            words = mixed(words.expand(1, one.shape[2], inputs.shape[2]), one, at)
        elif words.dim() > 1:
            words = mixed(words, one)
    return words


@pytest.mark.parametrize(
    ("name", "cells", "axis"),
    [
        ("cnn pre", 24, Axis("source", "grid", 4, 6)),
        ("cnn without layers in between", 24, Axis("source", "grid", 4, 6)),
        ("vit of another width", 7, Axis("image", "grid", 2, 3, special=1)),
    ],
)
def test_words_are_told_from_cells_as_the_recursion_says(name: str, cells: int, axis: Axis) -> None:
    model = build(CONFIGS[name])
    with saccade.looking(model) as trace, rolling_across(model) as rollout:
        model(PICTURES[:1], rows([4, 3]), torch.tensor([0, 0]))
    expected = recursion(trace.weights(), torch.eye(cells, dtype=torch.float64)[None])
    torch.testing.assert_close(rollout.mixture, expected)
    assert rollout.axis == axis
    shares = rollout.mixture.sum(dim=-1)
    assert bool(((shares > 0.5) & (shares < 1)).all())  # the last look across gives a half


@pytest.mark.parametrize("name", ["cnn pre", "vit of another width"])
def test_pictures_of_a_batch_are_followed_as_each_by_itself(name: str) -> None:
    model, ends = build(CONFIGS[name]), torch.tensor(LENGTHS).cumsum(0).tolist()
    captions = rows(LENGTHS)
    with rolling_across(model) as rollout:
        model(PICTURES, captions, torch.tensor(OF))
    for picture, length, end in zip(OF, LENGTHS, ends):
        words = captions.tokens[end - length : end]
        with rolling_across(model) as alone:
            model(PICTURES[picture : picture + 1], rows([length], words), torch.tensor([0]))
        torch.testing.assert_close(rollout.mixture[0, end - length : end], alone.mixture[0])


def test_a_translation_is_followed_to_its_source_and_padding_gives_nothing() -> None:
    config = TransformerConfig(vocabulary=17, width=16, heads=2, depth=2, hidden=16)
    model: Any = config.build().double().eval()
    words, lengths = torch.arange(20).view(2, 10) % 17, torch.tensor([10, 6])
    with rolling_across(model) as rollout:
        model(words, lengths, words[:, :4])
    assert rollout.mixture.shape == (2, 4, 10)
    assert rollout.mixture[1, :, 6:].eq(0).all()
    with saccade.looking(model) as trace, rolling_across(model) as alone:
        model(words[1:, :6], lengths[1:], words[1:, :4])
    expected = recursion(trace.weights(), torch.eye(6, dtype=torch.float64)[None])
    torch.testing.assert_close(alone.mixture, expected)
    torch.testing.assert_close(rollout.mixture[1:, :, :6], expected)


def test_without_a_pass_there_is_nothing_to_follow() -> None:
    with rolling_across(build(CONFIGS["cnn pre"])) as rollout:
        pass
    with pytest.raises(ConfigError, match=r"^no word has looked across yet: run the model inside"):
        _ = rollout.mixture
