"""GPT-2: its published sizes, and the same numbers as Hugging Face with the same weights."""

from typing import Any

import pytest
import torch
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel

from saccade.errors import ConfigError
from saccade.models import GptConfig, preset
from saccade.models.text.gpt import Gpt

SIZES = {
    "gpt2": 124_439_808,
    "gpt2-medium": 354_823_168,
    "gpt2-large": 774_030_080,
    "gpt2-xl": 1_557_611_200,
}
TOKENS = torch.randint(40, (2, 12), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", SIZES)
def test_published_sizes_have_their_published_number_of_parameters(name: str) -> None:
    with torch.device("meta"):
        model = preset(name).build()
    assert sum(parameter.numel() for parameter in model.parameters()) == SIZES[name]


def hugging_face() -> Any:
    """A tiny GPT-2 with every weight random, norms and biases included."""
    config = GPT2Config(
        vocab_size=40, n_embd=12, n_layer=3, n_head=3, n_positions=16, attn_implementation="eager"
    )
    model = GPT2LMHeadModel(config).double().eval()
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape))
    return model


def _copy(mine: nn.Linear, weight: torch.Tensor, bias: torch.Tensor) -> None:
    mine.weight.copy_(weight.T)  # Hugging Face's Conv1D keeps its weights transposed
    mine.bias.copy_(bias)


@torch.no_grad()
def twin(theirs: Any) -> Gpt:
    """Our model with the weights of theirs."""
    model = GptConfig(vocabulary=40, width=12, depth=3, heads=3, longest=16, dropout=0.0).build()
    body = theirs.transformer
    model = model.double().eval()
    model.embedding.weight.copy_(body.wte.weight)
    model.positions.positions.table.copy_(body.wpe.weight)
    model.norm.load_state_dict(body.ln_f.state_dict())
    for mine, block in zip(model.decoder, body.h):
        mine.around_attention.norm.load_state_dict(block.ln_1.state_dict())
        mine.around_mlp.norm.load_state_dict(block.ln_2.state_dict())
        weights, biases = block.attn.c_attn.weight.chunk(3, dim=1), block.attn.c_attn.bias.chunk(3)
        for name, weight, bias in zip(("to_q", "to_k", "to_v"), weights, biases):
            _copy(getattr(mine.self_attention, name), weight, bias)
        for part, layer in (
            (mine.self_attention.to_output, block.attn.c_proj),
            (mine.mlp.widen, block.mlp.c_fc),
            (mine.mlp.narrow, block.mlp.c_proj),
        ):
            _copy(part, layer.weight, layer.bias)
    return model


def test_logits_equal_hugging_faces() -> None:
    theirs = hugging_face()
    model = twin(theirs)
    expected = theirs(TOKENS).logits
    assert expected.std() > 0.5  # the weights are large enough for a difference to show
    torch.testing.assert_close(model.output(model(TOKENS)), expected, atol=1e-11, rtol=0)


def test_logits_equal_hugging_faces_in_single_precision() -> None:
    theirs = hugging_face()
    model = twin(theirs).float()
    expected = theirs.float()(TOKENS).logits
    torch.testing.assert_close(model.output(model(TOKENS)), expected, atol=1e-5, rtol=1e-5)


def test_gradients_equal_hugging_faces() -> None:
    theirs = hugging_face()
    model = twin(theirs)
    model.output(model(TOKENS)).logsumexp(dim=-1).sum().backward()
    theirs(TOKENS).logits.logsumexp(dim=-1).sum().backward()
    ours = model.embedding.weight.grad
    torch.testing.assert_close(ours, theirs.transformer.wte.weight.grad, atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize("pieces", [[12], [5, 7], [1] * 12, [11, 1]])
def test_reading_in_pieces_equals_reading_at_once(pieces: list[int]) -> None:
    model, state = twin(hugging_face()), None
    parts = []
    for part in TOKENS.split(pieces, dim=1):
        known, state = model.read(part, state)
        parts.append(known)
    torch.testing.assert_close(torch.cat(parts, dim=1), model(TOKENS), atol=1e-12, rtol=0)


def test_text_longer_than_its_positions_is_refused() -> None:
    model = twin(hugging_face())
    assert model.reach == 16
    with pytest.raises(ConfigError, match=r"^17 positions, but the model learnt only 16"):
        model(torch.zeros(1, 17, dtype=torch.long))


def test_layers_that_write_into_the_residual_stream_start_smaller_with_depth() -> None:
    torch.manual_seed(0)
    model = GptConfig(vocabulary=50, width=128, depth=8, heads=4).build()
    layer = model.decoder[0]
    assert layer.mlp.narrow.weight.std().item() == pytest.approx(0.02 / 4, rel=0.05)
    assert layer.mlp.widen.weight.std().item() == pytest.approx(0.02, rel=0.05)
    assert layer.self_attention.to_output.weight.std().item() == pytest.approx(0.02 / 4, rel=0.05)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 0}, "width=0 must be at least 1"),
        ({"longest": 0}, "longest=0 must be at least 1"),
        ({"dropout": 1.0}, "dropout=1.0 must be at least 0 and below 1"),
        ({"width": 10, "heads": 4}, "width=10 does not divide into heads=4"),
    ],
)
def test_sizes_that_cannot_work_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{message}$"):
        GptConfig(**options)
