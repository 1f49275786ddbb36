"""The half that writes is no module: the weights of a run keep the names they always had."""

from dataclasses import replace

import torch

from saccade.models import TransformerConfig
from tests.models.captioners import CONFIGS

ATTENTION = [f"to_{part}.{kind}" for part in ("q", "k", "v", "output") for kind in "wb"]
MLP = [f"{part}.{kind}" for part in ("widen", "narrow") for kind in "wb"]
NORM = ["norm.w", "norm.b"]
DECODER = {
    "self_attention": ATTENTION,
    "cross_attention": ATTENTION,
    "mlp": MLP,
    "around_self": NORM,
    "around_cross": NORM,
    "around_mlp": NORM,
}
ENCODER = {"self_attention": ATTENTION, "mlp": MLP, "around_attention": NORM, "around_mlp": NORM}


def names(stack: str, layer: dict[str, list[str]]) -> list[str]:
    return [f"{stack}.0.{part}.{name}" for part, inner in layer.items() for name in inner]


def written(short: list[str]) -> list[str]:
    return [name[:-1] + {"w": "weight", "b": "bias"}[name[-1]] for name in short]


def test_the_weights_of_a_translator_have_their_names_and_order() -> None:
    config = TransformerConfig(
        vocabulary=5, width=4, depth=1, heads=1, hidden=4, residual="pre", positions="learned"
    )
    model = config.build()
    layers = [*names("encoder", ENCODER), *names("decoder", DECODER)]
    last = ["encoder_norm.w", "encoder_norm.b", "decoder_norm.w", "decoder_norm.b"]
    found = list(model.state_dict())
    assert found == ["embedding.weight", "positions.positions.table", *written([*layers, *last])]
    assert found == [name for name, _ in model.named_parameters()]


def test_a_captioners_words_have_the_same_names() -> None:
    model = replace(CONFIGS["cnn pre"], depth=1).build()
    own = [name for name in model.state_dict() if name.startswith(("embedding", "decoder"))]
    assert own == written(
        ["embedding.w", *names("decoder", DECODER), "decoder_norm.w", "decoder_norm.b"]
    )


def test_the_half_that_writes_is_made_of_the_models_own_parts() -> None:
    model = CONFIGS["cnn pre"].build()
    words = model.words
    assert words.embedding is model.embedding
    assert words.layers is model.decoder
    assert words.output.weight is model.embedding.weight
    known = torch.randn(3, 8)
    assert torch.equal(model.output(known), known @ model.embedding.weight.T)
