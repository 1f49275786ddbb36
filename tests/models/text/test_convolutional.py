"""The convolutional translator: how far it sees, how large it is, what it refuses."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from saccade.attention.attend import attend
from saccade.attention.scores import dot
from saccade.blocks.conv import HALF
from saccade.errors import ConfigError
from saccade.models import ConvSeq2SeqConfig, preset
from tests.models.zoo import LENGTHS, SOURCE, TARGET, VOCABULARY, build


def small(**options: Any) -> Any:
    sizes = {"vocabulary": VOCABULARY, "width": 8, "dropout": 0.0, "longest": 40, **options}
    return build(ConvSeq2SeqConfig(**sizes))


def positions_that_matter(embedding: nn.Embedding, run: Any) -> list[int]:
    """Words whose embedding the result of `run` depends on."""
    seen: list[Tensor] = []

    def keep(_: nn.Module, __: Any, output: Tensor) -> Tensor:
        seen.append(output.detach().requires_grad_())
        return seen[0]

    handle = embedding.register_forward_hook(keep)
    result = run()
    handle.remove()
    (gradient,) = torch.autograd.grad(result.sum(), seen)
    return gradient[0].abs().sum(dim=-1).nonzero()[:, 0].tolist()


@pytest.mark.parametrize(("depth", "kernel"), [(1, 3), (3, 3), (2, 4), (4, 2)])
def test_a_target_word_sees_exactly_its_receptive_field(depth: int, kernel: int) -> None:
    model, target = small(depth=depth, kernel=kernel), torch.randint(VOCABULARY, (1, 30))
    seen = positions_that_matter(
        model.target_embedding, lambda: model(SOURCE[:1], LENGTHS[:1], target)[0, 25]
    )
    field = depth * (kernel - 1) + 1
    assert seen == list(range(25 - field + 1, 26))


@pytest.mark.parametrize(("depth", "kernel"), [(1, 3), (3, 3), (2, 4)])
def test_a_source_word_sees_exactly_its_receptive_field(depth: int, kernel: int) -> None:
    model, source = small(depth=depth, kernel=kernel), torch.randint(VOCABULARY, (1, 30))
    seen = positions_that_matter(
        model.source_embedding, lambda: model.start(source, torch.tensor([30])).keys[0, 15]
    )
    first = 15 - depth * ((kernel - 1) // 2)
    assert seen == list(range(first, first + depth * (kernel - 1) + 1))


def test_the_look_at_the_source_follows_the_papers_equations() -> None:
    model = small(depth=1)
    state = model.start(SOURCE, LENGTHS)
    site = model.decoder[0].cross_attention
    z, y = (torch.randn(3, 6, 8, dtype=torch.float64) for _ in range(2))
    q = (z @ site.to_query.weight.T + site.to_query.bias + y) * HALF
    c = attend(q, state.keys, state.values, mask=state.mask, score=dot).output
    torch.testing.assert_close(site(z, y, state), site.to_output(c))


def test_a_decoder_layer_follows_the_papers_equations() -> None:
    model = small(depth=1)
    layer, state = model.decoder[0], model.start(SOURCE, LENGTHS)
    x = model.target_embedding(TARGET) + model.target_positions(0, 6)
    z = layer.conv(torch.cat([x.new_zeros(3, 2, 8), x], dim=1))
    expected = ((z + layer.cross_attention(z, x, state)) * HALF + x) * HALF
    torch.testing.assert_close(model(SOURCE, LENGTHS, TARGET), expected)


def test_values_are_keys_and_words_together() -> None:
    model = small(depth=2)
    state = model.start(SOURCE, LENGTHS)
    words = model.source_embedding(SOURCE) + model.source_positions(0, 5)
    torch.testing.assert_close(state.values, (state.keys + words) * HALF)


def test_is_as_large_as_the_arithmetic_says() -> None:
    config = preset("conv-seq2seq-published")
    assert isinstance(config, ConvSeq2SeqConfig)
    d, k, v = config.width, config.kernel, config.vocabulary
    conv = 2 * d * d * k + 2 * d + 2 * d  # kernel directions, their norms, biases
    words = 2 * (v * d + config.longest * d) + v * d + v
    attention = 2 * (d * d + d)
    with torch.device("meta"):
        model = config.build()
    total = sum(parameter.numel() for parameter in model.parameters())
    assert total == words + config.depth * (2 * conv + attention)


def test_a_kernel_that_sees_no_neighbour_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^kernel=1 sees no neighbour; use 2 or more$"):
        ConvSeq2SeqConfig(kernel=1)


def test_a_source_longer_than_its_positions_is_refused() -> None:
    model = small(longest=4)
    with pytest.raises(ConfigError, match=r"^5 positions, but the model learnt only 4"):
        model(SOURCE, LENGTHS, TARGET)
