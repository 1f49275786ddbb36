"""Captioners without recurrence: what each word may see, and the numbers of torch's blocks."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

import saccade
from saccade.attention.axes import Axis
from saccade.attention.look.watching import sites
from saccade.blocks.positions import sinusoids, sinusoids_2d
from saccade.config import from_dict, to_dict
from saccade.data.tokens.vocabulary import OURS
from saccade.decode.beam import Beam
from saccade.decode.search import search
from saccade.errors import ConfigError
from saccade.models import FAMILIES, family, preset
from saccade.models.caption.caption_transformer import PRESETS, CaptionTransformerConfig
from saccade.models.vision.encoders import ENCODERS
from tests.models.captioners import (
    CONFIGS,
    LENGTHS,
    OF,
    PICTURES,
    VOCABULARY,
    WORDS,
    build,
    one_by_one,
    rows,
)
from tests.models.text.test_transformer import torch_twin

START, END = OURS.start, OURS.end

EXACT = {"atol": 1e-12, "rtol": 0}
CAPTIONS = rows(LENGTHS)
every_config = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)


def told(model: Any, words: Tensor = WORDS, pictures: Tensor = PICTURES) -> tuple[Tensor, ...]:
    """What is known after each word, caption by caption."""
    captions = rows(LENGTHS, words)
    return model(pictures, captions, torch.tensor(OF)).hidden.split(LENGTHS)


@pytest.mark.slow
@every_config
@pytest.mark.parametrize(
    ("of", "lengths"),
    [
        (OF, LENGTHS),
        ([0, 0, 1, 1, 2, 2], [3, 4, 3, 4, 3, 4]),  # pictures of equally many words
        ([0, 1, 2], [5, 5, 5]),
        ([0, 2, 2], [3, 1, 7]),  # of the picture between nothing is said
    ],
)
def test_captions_end_to_end_are_known_as_each_by_itself(
    config: CaptionTransformerConfig, of: list[int], lengths: list[int]
) -> None:
    model, captions = build(config), rows(lengths)
    found = model(PICTURES, captions, torch.tensor(of)).hidden
    assert found.shape == (sum(lengths), config.width)
    torch.testing.assert_close(found, one_by_one(model, PICTURES, captions, of), **EXACT)


@every_config
def test_neither_what_follows_nor_another_caption_or_picture_can_leak(
    config: CaptionTransformerConfig,
) -> None:
    model = build(config)
    known, starts = told(model), [0, *torch.tensor(LENGTHS).cumsum(0).tolist()]
    for caption, t in ((0, 3), (2, 1), (2, 5), (3, 2), (5, 4)):
        words = (WORDS + 1) % VOCABULARY
        words[starts[caption] : starts[caption] + t] = WORDS[starts[caption] :][:t]
        pictures = 255 - PICTURES
        pictures[OF[caption]] = PICTURES[OF[caption]]
        other = told(model, words, pictures)[caption]
        torch.testing.assert_close(other[:t], known[caption][:t], **EXACT)
        assert not torch.allclose(other[t], known[caption][t])


@every_config
def test_every_word_is_told_from_the_picture(config: CaptionTransformerConfig) -> None:
    model, changed = build(config), PICTURES.clone()
    changed[0, :, :8, :8] ^= 255
    known, other = told(model), told(model, pictures=changed)
    for before, after, picture in zip(known, other, OF):
        assert torch.isclose(before, after).all(dim=1).tolist() == [picture > 0] * len(before)


@pytest.mark.slow
@every_config
def test_step_by_step_equals_all_at_once(config: CaptionTransformerConfig) -> None:
    model, words = build(config), WORDS[:15].view(3, 5)
    known = model(PICTURES, rows([5, 5, 5], words.flatten()), torch.arange(3)).hidden
    expected, state = model.output(known).view(3, 5, -1), model.start(PICTURES)
    again, order = model.start(PICTURES), torch.tensor([2, 0, 2])
    for t in range(5):
        scores, state = model.step(words[:, t], state)
        torch.testing.assert_close(scores, expected[:, t], **EXACT)
        again = again.select(order) if t == 2 else again
        of = order if t >= 2 else torch.arange(3)
        scores, again = model.step(words[of, t], again)
        torch.testing.assert_close(scores, expected[of, t], **EXACT)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("name", ["cnn pre", "cnn post"])
def test_equals_torchs_transformer_over_the_cells_of_the_grid(name: str) -> None:
    model = build(CONFIGS[name])
    twin = torch_twin(model, pre=name == "cnn pre")
    grid = model.image_encoder.encoder.grid(
        (PICTURES / 255.0 - torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)).double()
        / torch.tensor([0.229, 0.224, 0.225], dtype=torch.float64).view(3, 1, 1),
        model.image_encoder.stage,
    )
    conv = F.conv2d(grid, model.project.weight[:, :, None, None], model.project.bias)
    places = sinusoids_2d(*grid.shape[2:], 8).permute(2, 0, 1)  # (D, h, w)
    words = WORDS[:15].view(3, 5)
    embedded = model.embedding.weight[words] * 8**0.5
    expected = twin(
        (conv + places).flatten(2).mT,
        embedded + sinusoids(torch.arange(5, dtype=torch.float64), 8),
        tgt_mask=nn.Transformer.generate_square_subsequent_mask(5) < 0,
    )
    known = model(PICTURES, rows([5, 5, 5], words.flatten()), torch.arange(3)).hidden
    torch.testing.assert_close(known, expected.flatten(0, 1), atol=1e-5, rtol=1e-5)


def test_the_patches_of_a_vit_are_the_memory_without_its_class_token() -> None:
    model = build(CONFIGS["vit of the same width"])
    pixels = model.image_encoder.standard(PICTURES)
    torch.testing.assert_close(
        model.see(PICTURES), model.image_encoder.encoder.tokens(pixels)[:, 1:]
    )
    assert not list(model.project.parameters())


def everything(
    score: Callable[[tuple[int, ...]], Tensor], limit: int
) -> dict[tuple[int, ...], float]:
    """Every caption that ends within the limit, or is cut off there, and how likely it is."""
    live, found = {(): 0.0}, dict[tuple[int, ...], float]()
    for _ in range(limit):
        grown = {
            (*words, word): total + p
            for words, total in live.items()
            for word, p in enumerate(score(words).log_softmax(-1).tolist())
        }
        found |= {words: total for words, total in grown.items() if words[-1] == END}
        live = {words: total for words, total in grown.items() if words[-1] != END}
    return found | live


@torch.no_grad()
def test_a_wide_beam_finds_what_trying_all_captions_finds() -> None:
    model = build(replace(CONFIGS["cnn pre"], vocabulary=5))
    first, limits = torch.full((2,), START), torch.tensor([3, 2])
    beam = Beam(size=80, length_penalty=0.0)  # 4² beginnings with 5 words each
    found = search(model, model.start(PICTURES[:2]), first, limits=limits, end=END, method=beam)
    memory = [model.see(PICTURES[i : i + 1]) for i in range(2)]

    def next_word(number: int, words: tuple[int, ...]) -> Tensor:
        tokens = torch.tensor([[START, *words]])
        return model.output(model.words.decode(tokens, memory[number])[0, -1])

    for number, hypotheses in enumerate(found):
        every = everything(lambda words, n=number: next_word(n, words), int(limits[number]))
        ended = sorted((p for words, p in every.items() if words[-1] == END), reverse=True)
        assert [one.score for one in hypotheses if one.finished] == pytest.approx(ended)
        for one in hypotheses:
            words = (*one.tokens, END) if one.finished else tuple(one.tokens)
            assert every[words] == pytest.approx(one.log_probability)


@every_config
def test_gradients_reach_every_parameter(config: CaptionTransformerConfig) -> None:
    model = build(config)
    known = model(PICTURES, CAPTIONS, torch.tensor(OF)).hidden
    F.cross_entropy(model.output(known), CAPTIONS.tokens).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        if not name.endswith("to_k.bias"):  # it moves all scores of a query alike: softmax is blind
            assert parameter.grad.abs().max() > 0, name


def test_a_frozen_encoder_stays_as_it_is_while_the_rest_learns() -> None:
    model = build(replace(CONFIGS["cnn pre"], frozen=True)).train()
    before = {name: value.clone() for name, value in model.image_encoder.state_dict().items()}
    free = [p for p in model.parameters() if p.requires_grad]
    assert len(free) == len(list(model.parameters())) - len(list(model.image_encoder.parameters()))
    optimizer = torch.optim.Adam(free, lr=0.1)
    model(PICTURES, CAPTIONS, torch.tensor(OF)).hidden.sum().backward()
    optimizer.step()
    assert all(
        value.equal(before[name]) for name, value in model.image_encoder.state_dict().items()
    )


GRID, TARGET = Axis("source", "grid", 4, 6, first=1 / 8), Axis("target")


def test_whoever_watches_is_told_the_grid_and_changes_nothing() -> None:
    model = build(CONFIGS["cnn pre"])
    before = told(model)
    with saccade.looking(model) as trace:
        after = told(model)
    assert all(x.equal(y) for x, y in zip(before, after))
    for number in range(2):
        assert trace.axes[f"encoder.{number}.self"] == (GRID, GRID)
        assert trace.axes[f"decoder.{number}.cross"] == (TARGET, GRID)
        assert trace.axes[f"decoder.{number}.self"] == (TARGET, TARGET)
        cross = trace.weights()[f"decoder.{number}.cross"]  # (1, N, words, all cells)
        own = cross.unflatten(-1, (3, 24)).sum(dim=-1)[0, 0]
        expected = F.one_hot(torch.tensor(OF), 3).repeat_interleave(torch.tensor(LENGTHS), dim=0)
        torch.testing.assert_close(own, expected.double())


def test_an_encoder_of_patches_is_watched_as_well() -> None:
    model = build(CONFIGS["vit of another width"])
    with saccade.looking(model) as trace:
        told(model)
    assert trace.axes["decoder.1.cross"] == (TARGET, Axis("source", "grid", 2, 3))
    patches = Axis("image", "grid", 2, 3, special=1, pixels=8.0)
    assert trace.axes["image_encoder.encoder.encoder.0.self"][0] == patches
    assert set(trace) == set(sites(model))


@every_config
def test_saving_then_loading_is_the_identity(
    config: CaptionTransformerConfig, tmp_path: Path
) -> None:
    model = build(config)
    save_file(model.state_dict(), tmp_path / "model.safetensors")
    settings = from_dict(FAMILIES[family(config)], to_dict(config))
    assert settings == config
    again: Any = settings.build().double().eval()
    again.load_state_dict(load_file(tmp_path / "model.safetensors"))
    assert all(x.equal(y) for x, y in zip(told(again), told(model)))


def arithmetic(config: CaptionTransformerConfig) -> int:
    """Weights of all but the image encoder, counted on paper."""
    width, hidden = config.width, config.hidden
    attention, mlp = 4 * (width**2 + width), 2 * width * hidden + hidden + width
    layers = config.encoder_depth * (attention + mlp + 4 * width)
    layers += config.depth * (2 * attention + mlp + 6 * width)
    return config.vocabulary * width + layers + 2 * width * (1 + (config.encoder_depth > 0))


# Channels of the grid, and weights of the image encoder as published, without class scores.
PUBLISHED = {"cnn-transformer-base": (2048, 42_500_160), "vit-captioner-base": (0, 85_798_656)}


@pytest.mark.parametrize("name", PUBLISHED)
def test_has_as_many_parameters_as_the_arithmetic_says(name: str) -> None:
    config, (channels, encoder) = preset(name), PUBLISHED[name]
    assert isinstance(config, CaptionTransformerConfig)
    with torch.device("meta"):
        model = config.build()
    project = channels * config.width + config.width if channels else 0
    count = sum(parameter.numel() for parameter in model.parameters())
    assert count == encoder + project + arithmetic(config)


@pytest.mark.parametrize("name", ["cnn-transformer-nano", "vit-captioner-nano"])
def test_small_presets_see_eight_by_eight_cells(name: str) -> None:
    model: Any = PRESETS[name].build()
    assert model.see(torch.zeros(1, 3, 64, 64, dtype=torch.uint8)).shape == (1, 64, 192)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 10, "heads": 4}, "width=10 does not divide into heads=4"),
        ({"encoder_depth": -1}, r"encoder_depth=-1 must be 0 \(none\) or more"),
        ({"depth": 0}, "depth=0 must be at least 1"),
        ({"encoder": "eagle"}, f"no image encoder 'eagle'; try one of: {', '.join(ENCODERS)}"),
    ],
)
def test_sizes_that_cannot_be_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{message}$"):
        CaptionTransformerConfig(**options)


@pytest.mark.slow
@every_config
def test_overfits_one_batch(config: CaptionTransformerConfig) -> None:
    torch.manual_seed(0)
    model: Any = config.build().train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    words = torch.cat([torch.tensor([1, 4, 5, 6 + i]) for i in range(3)])  # only pictures tell
    captions, of = rows([3] * 3, words.view(3, 4)[:, :-1].flatten()), torch.arange(3)
    for _ in range(300):
        known = model(PICTURES, captions, of).hidden
        loss = F.cross_entropy(model.output(known), words.view(3, 4)[:, 1:].flatten())
        if loss < 0.1:
            return
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    pytest.fail(f"the loss is still {loss:.3f}")
