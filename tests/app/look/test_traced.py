"""A page of any trace, Hugging Face's models included."""

import base64
import io
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn
from transformers import (
    BertConfig,
    BertModel,
    MarianConfig,
    MarianModel,
    VisionEncoderDecoderConfig,
    VisionEncoderDecoderModel,
    ViTConfig,
    ViTModel,
)

import saccade
from saccade.app.look.document import GridEntry
from saccade.attention.look.looking import Trace
from saccade.errors import ConfigError

from .reading import values
from .test_pieces import word_pieces

SIZES = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 16}
WORDS = ["The", " dog", " eats", " an", " apple", "."]


def bert(size: int = 6) -> Trace:
    model = BertModel(BertConfig(vocab_size=20, intermediate_size=16, **SIZES)).eval()
    with torch.no_grad(), saccade.looking(model) as trace:
        model(torch.arange(2 * size).view(2, size) % 20)
    return trace


def vit() -> nn.Module:
    return ViTModel(ViTConfig(image_size=8, patch_size=4, intermediate_size=16, **SIZES)).eval()


def seen(model: nn.Module, **given: Tensor) -> Trace:
    with torch.no_grad(), saccade.looking(model) as trace:
        model(**given or {"pixel_values": torch.rand(2, 3, 8, 8)})
    return trace


def test_an_encoder_is_a_text_that_looks_at_itself(tmp_path: Path) -> None:
    trace = bert()
    page = saccade.show(trace, WORDS, title="bert", row=1)
    document = page.document
    assert document.kind == "language"
    (look,) = document.looks
    assert look.text == "The dog eats an apple."
    for site in look.sites:
        assert (site.rows, site.columns) == ("text", "text")
        found = values(document.blobs, site.arrays["weights"])
        np.testing.assert_allclose(found, trace[site.name].weights[1], atol=6e-4)
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
    assert document.kind == "translation"
    (look,) = document.looks
    assert set(look.axes) == {"source", "target"}
    assert {(site.rows, site.columns) for site in look.sites} == {
        ("source", "source"), ("target", "target"), ("target", "source"),
    }  # fmt: skip


def test_the_patches_of_an_image_need_no_words() -> None:
    axis = saccade.show(seen(vit()), {}).document.looks[0].axes["text"]
    assert axis.tokens == ["<class>", "0,0", "0,1", "1,0", "1,1"]
    where = {"down": [0.25, 0.75], "across": [0.25, 0.75]}
    assert axis.grid == GridEntry(height=2, width=2, special=1, **where)


def test_mistakes_are_named() -> None:
    trace = bert()
    with pytest.raises(ConfigError, match="'text' has 2 tokens, but encoder"):
        saccade.show(trace, ["a", "b"])
    with pytest.raises(ConfigError, match=r"looks along 'text', for which there are no tokens"):
        saccade.show(trace, {"source": WORDS})
    with pytest.raises(ConfigError, match="the trace is empty"):
        saccade.show(type(trace)(saccade.Keep()), WORDS)
    with pytest.raises(ConfigError, match=r"x\.gif: a page is saved as \.html or \.png, not \.gif"):
        saccade.show(trace, WORDS).save("x.gif")
    with pytest.raises(ConfigError, match="tokenizer= and ids= go together"):
        saccade.show(trace, ids=[1, 2])
    with pytest.raises(ConfigError, match="no site of the trace looks at patches"):
        saccade.show(trace, WORDS, image=torch.zeros(3, 8, 8))
    with pytest.raises(ConfigError, match=r"three colours, not shape \(8, 8\)"):
        saccade.show(seen(vit()), image=torch.zeros(8, 8))
    for row in (-1, 2, 5):
        with pytest.raises(ConfigError, match=rf"^row={row} is not in the batch, whose 2 rows"):
            saccade.show(trace, WORDS, row=row)
    with pytest.raises(ConfigError, match="tokens of 'text' are words or ids, not Tensor"):
        saccade.show(trace, torch.rand(6))
    with pytest.raises(ConfigError, match="tokenizer= and ids= go together: a tokenizer has ids"):
        saccade.show(trace, tokenizer=word_pieces())
    with pytest.raises(ConfigError, match="object is no tokenizer that Saccade knows"):
        saccade.show(trace, tokenizer=object(), ids=[1, 2])


def test_ids_are_read_by_their_tokenizer_and_drawn_as_words(tmp_path: Path) -> None:
    ids = torch.tensor([[0, 4, 5, 6, 7, 1]]).repeat(2, 1)
    model = BertModel(BertConfig(vocab_size=20, intermediate_size=16, **SIZES)).eval()
    page = saccade.show(seen(model, input_ids=ids), tokenizer=word_pieces(), ids=ids, row=1)
    (look,) = page.document.looks
    assert look.axes["text"].tokens == ["[CLS]", " the", " employ", "ee", " eats", "[SEP]"]
    assert look.axes["text"].words == [(0, 1), (1, 2), (2, 4), (4, 5), (5, 6)]
    assert page.save(tmp_path / "bert.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("form", "many"), [("file", 1), ("pillow", 1), ("array", 1), ("tensor", 2), ("normalised", 2)]
)
def test_an_image_lies_under_the_patches_whatever_its_form(
    form: str, many: int, tmp_path: Path
) -> None:
    red = np.zeros((8, 8, 3), np.uint8)
    red[:4, :4] = (255, 0, 0)
    Image.fromarray(red).save(tmp_path / "red.png")
    batch = torch.from_numpy(red).permute(2, 0, 1).repeat(many, 1, 1, 1) / 255
    image = {
        "file": tmp_path / "red.png", "pillow": Image.fromarray(red), "array": red,
        "tensor": batch, "normalised": 4 * batch - 2,
    }[form]  # fmt: skip
    document = saccade.show(seen(vit()), image=image).document
    assert document.kind == "caption"
    source = document.images[0].source.partition(",")[2]
    shown = Image.open(io.BytesIO(base64.b64decode(source)))
    assert all(abs(a - b) < 12 for a, b in zip(shown.getpixel((40, 40)), (255, 0, 0)))
    assert all(value < 12 for value in shown.getpixel((300, 300)))


def test_the_class_token_reads_the_image_layer_by_layer(tmp_path: Path) -> None:
    trace = seen(vit())
    page = saccade.show(trace, image=torch.rand(3, 8, 8), row=1)
    (look,) = page.document.looks
    assert look.axes["target"].tokens == ["<class>"]
    entries = {site.name: site for site in look.sites}
    assert list(entries) == [
        "layers.0.self", "layers.1.self",
        "layers.0.self of class token", "layers.1.self of class token",
    ]  # fmt: skip
    last = entries["layers.1.self of class token"]
    assert (last.rows, last.columns) == ("target", "source")
    found = values(page.document.blobs, last.arrays["weights"])
    np.testing.assert_allclose(found, trace["layers.1.self"].weights[1, :, :1], atol=6e-4)
    assert page.save(tmp_path / "vit.png").read_bytes().startswith(b"\x89PNG")


def test_patches_of_an_unknown_model_are_counted() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 8, batch_first=True).eval()
    trace = seen(layer, src=torch.rand(1, 18, 8))
    document = saccade.show(trace, image=torch.rand(3, 8, 8)).document
    grid = document.looks[0].axes["source"].grid
    assert (grid.height, grid.width, grid.special) == (4, 4, 2)


def test_words_that_look_at_an_image_are_a_caption(tmp_path: Path) -> None:
    encoder = ViTConfig(image_size=8, patch_size=4, intermediate_size=16, **SIZES)
    decoder = BertConfig(vocab_size=20, intermediate_size=16, **SIZES)
    config = VisionEncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder)
    ids, image = torch.tensor([[4, 5, 6, 7]]), torch.rand(1, 3, 8, 8)
    model = VisionEncoderDecoderModel(config).eval()
    trace = seen(model, pixel_values=image, decoder_input_ids=ids)
    page = saccade.show(trace, tokenizer=word_pieces(), ids={"target": ids}, image=image)
    (look,) = page.document.looks
    assert look.text == "the employee eats"
    cross = [site for site in look.sites if site.name.endswith("cross")]
    assert {(site.rows, site.columns) for site in cross} == {("target", "source")}
    assert page.save(tmp_path / "caption.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("form", ["tensor", "batch", "list", "tokens", "words"])
def test_tokens_may_be_ids_in_any_form(form: str) -> None:
    ids = torch.tensor([[4, 5, 6, 7, 1, 1], [0, 4, 5, 6, 7, 1]])
    model = BertModel(BertConfig(vocab_size=20, intermediate_size=16, **SIZES)).eval()
    trace, read = seen(model, input_ids=ids), word_pieces()
    page = {
        "tensor": lambda: saccade.show(trace, ids[1], tokenizer=read, row=1),
        "batch": lambda: saccade.show(trace, ids, tokenizer=read, row=1),
        "list": lambda: saccade.show(trace, ids.tolist(), tokenizer=read, row=1),
        "tokens": lambda: saccade.show(trace, ids, row=1),
        "words": lambda: saccade.show(trace, [WORDS, WORDS], row=1),
    }[form]()
    expected = ["[CLS]", " the", " employ", "ee", " eats", "[SEP]"]
    numbers = [str(number) for number in ids[1].tolist()]
    found = page.document.looks[0].axes["text"].tokens
    assert found == {"tokens": numbers, "words": WORDS}.get(form, expected)


@pytest.mark.parametrize("given", ["with padding", "without"])
def test_padding_is_not_shown(given: str) -> None:
    model = BertModel(BertConfig(vocab_size=20, intermediate_size=16, **SIZES)).eval()
    mask = torch.tensor([[1] * 6, [0, 0, 1, 1, 1, 0]])
    trace = seen(model, input_ids=torch.arange(12).view(2, 6), attention_mask=mask)
    words = WORDS if given == "with padding" else WORDS[2:5]
    document = saccade.show(trace, words, row=1).document
    assert document.looks[0].axes["text"].tokens == WORDS[2:5]
    for site in document.looks[0].sites:
        found = values(document.blobs, site.arrays["weights"])
        np.testing.assert_allclose(found.sum(axis=-1), np.ones((2, 3)), atol=3e-3)
        received = values(document.blobs, site.arrays["received"])
        np.testing.assert_allclose(received.sum(axis=-1), np.full(2, 3.0), atol=1e-2)


@pytest.mark.parametrize("first", ["vision", "text"])
def test_two_towers_have_their_own_axes(first: str) -> None:
    class Towers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.vision, self.text = (
                vit(),
                BertModel(BertConfig(vocab_size=20, intermediate_size=16, **SIZES)),
            )

        def forward(self, ids: Tensor, image: Tensor) -> None:
            runs = {"vision": lambda: self.vision(image), "text": lambda: self.text(ids)}
            for name in sorted(runs, key=lambda name: name != first):
                runs[name]()

    towers = Towers().eval()
    trace = seen(towers, ids=torch.arange(6)[None], image=torch.rand(1, 3, 8, 8))
    (look,) = saccade.show(trace, {"text": WORDS}).document.looks
    for site in look.sites:
        words = look.axes[site.rows].tokens
        assert site.rows == site.columns
        assert words == (
            WORDS if site.name.startswith("text") else ["<class>", "0,0", "0,1", "1,0", "1,1"]
        )
        assert site.arrays["weights"].shape[1:] == [len(words)] * 2
