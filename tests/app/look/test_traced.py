"""A page of any trace, Hugging Face's models included."""

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertModel, MarianConfig, MarianModel, ViTConfig, ViTModel

import saccade
from saccade.app.look.traced import Page
from saccade.attention.look.looking import Trace
from saccade.errors import ConfigError

from .reading import values

SIZES = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 16}
WORDS = ["The", " dog", " eats", " an", " apple", "."]


def bert(size: int = 6) -> Trace:
    model = BertModel(BertConfig(vocab_size=20, intermediate_size=16, **SIZES)).eval()
    with torch.no_grad(), saccade.looking(model) as trace:
        model(torch.arange(2 * size).view(2, size) % 20)
    return trace


def test_an_encoder_is_a_text_that_looks_at_itself(tmp_path: Path) -> None:
    trace = bert()
    page = saccade.show(trace, WORDS, title="bert", row=1)
    document = page.document
    assert document["kind"] == "language"
    (look,) = document["looks"]
    assert look["text"] == "The dog eats an apple."
    for site in look["sites"]:
        assert (site["rows"], site["columns"]) == ("text", "text")
        found = values(document, site["arrays"]["weights"])
        np.testing.assert_allclose(found, trace[site["name"]].weights[1], atol=6e-4)
    path = page.save(tmp_path / "bert.html")
    assert path.read_text().startswith("<!doctype html>")
    assert page._repr_html_().startswith("<iframe")


def test_an_encoder_decoder_is_a_translation() -> None:
    layers = {
        "encoder_layers": 1,
        "decoder_layers": 1,
        "encoder_ffn_dim": 16,
        "decoder_ffn_dim": 16,
    }
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "d_model": 16}
    config = MarianConfig(
        vocab_size=20, pad_token_id=0, decoder_start_token_id=0, **layers, **heads
    )
    model = MarianModel(config).eval()
    with torch.no_grad(), saccade.looking(model) as trace:
        model(input_ids=torch.arange(1, 7)[None], decoder_input_ids=torch.arange(4)[None])
    document = saccade.show(trace, {"source": WORDS, "target": list("abcd")}).document
    assert document["kind"] == "translation"
    (look,) = document["looks"]
    assert set(look["axes"]) == {"source", "target"}
    assert {(site["rows"], site["columns"]) for site in look["sites"]} == {
        ("source", "source"), ("target", "target"), ("target", "source"),
    }  # fmt: skip


def test_the_patches_of_a_picture_need_no_words() -> None:
    model = ViTModel(ViTConfig(image_size=8, patch_size=4, intermediate_size=16, **SIZES)).eval()
    with torch.no_grad(), saccade.looking(model) as trace:
        model(torch.rand(1, 3, 8, 8))
    axis = saccade.show(trace, {}).document["looks"][0]["axes"]["text"]
    assert axis["tokens"] == ["<0>", "0,0", "0,1", "1,0", "1,1"]
    assert axis["grid"] == {"height": 2, "width": 2, "special": 1}


def test_mistakes_are_named() -> None:
    trace = bert()
    with pytest.raises(ConfigError, match="'text' has 2 tokens, but encoder"):
        saccade.show(trace, ["a", "b"])
    with pytest.raises(ConfigError, match=r"looks along 'text', for which there are no tokens"):
        saccade.show(trace, {"source": WORDS})
    with pytest.raises(ConfigError, match="the trace is empty"):
        saccade.show(type(trace)(saccade.Keep()), WORDS)
    with pytest.raises(ConfigError, match=r"x\.png: a page is saved as \.html, not \.png"):
        Page({}).save("x.png")
