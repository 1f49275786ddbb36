"""A captioner says the same however it is asked, and tells where it looked for each word."""

import io
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from saccade.attention.axes import Axis
from saccade.attention.look.looking import looking
from saccade.data.batching.rows import Rows
from saccade.data.images.cache import CacheSettings
from saccade.data.images.decode import ImageError
from saccade.data.readers.images.cached import cached_images
from saccade.data.readers.images.read import read_images
from saccade.data.tokens.vocabulary import OURS, Vocabulary
from saccade.data.tokens.words import words
from saccade.decode.engine import Decoding
from saccade.errors import ConfigError
from saccade.models import CaptionTransformerConfig, ShowAndTellConfig, ShowAttendTellConfig
from saccade.models.caption.captioner import CaptionerConfig
from saccade.tasks.captioning.captioner import EVERY_CELL, ImageCaptioner, WrittenCaption
from saccade.tasks.captioning.data import CaptioningSettings
from tests.data.images_made import PICTURES, in_folder, metadata, picture

START, END = OURS.start, OURS.end

TEXTS = ["a red ring and a blue star", "two big crosses above a small green circle", "stars"]
SMALL = {"encoder": "resnet-nano", "width": 16}
CONFIGS: dict[str, CaptionerConfig] = {
    "show-and-tell": ShowAndTellConfig(**SMALL),
    "soft": ShowAttendTellConfig(**SMALL, hidden=16),
    "hard": ShowAttendTellConfig(**SMALL, hidden=16, glance="hard"),
    "transformer": CaptionTransformerConfig(
        **SMALL, stage=3, depth=2, encoder_depth=1, heads=2, hidden=32
    ),
    "vit": CaptionTransformerConfig(
        encoder="vit-nano", width=16, depth=1, encoder_depth=0, heads=2, hidden=32
    ),
}
# Two of the kinds at once, the others with the slow tests.
EVERY = [
    name if name in ("soft", "transformer") else pytest.param(name, marks=pytest.mark.slow)
    for name in CONFIGS
]
LOOKING = EVERY[1:]


@cache
def describer(name: str, *, level: str = "bpe") -> ImageCaptioner:
    torch.manual_seed(0)
    known = Vocabulary.train(TEXTS * 3, size=275, level=level)  # type: ignore[arg-type]
    model = replace(CONFIGS[name], vocabulary=len(known)).build()
    with torch.no_grad():
        for part, parameter in model.named_parameters():
            # Large enough for pictures and words to matter, small enough to matter still.
            size = 0.12 if part.startswith("image_encoder.") else 0.3
            parameter.add_(size * torch.randn(parameter.shape))
    return ImageCaptioner(model, known, CaptioningSettings(image=32, longest=6, level=level))  # type: ignore[arg-type]


def pictures(count: int) -> Tensor:
    rng = torch.Generator().manual_seed(1)
    coarse = torch.rand(count, 3, 4, 4, generator=rng)
    return (255 * torch.nn.functional.interpolate(coarse, (32, 32))).to(torch.uint8)


def said(
    tool: ImageCaptioner, images: Tensor, how: Decoding, *, look: bool = False
) -> list[list[int]]:
    found = dict(tool.caption(images, how, look=look))
    return [found[row].tokens for row in range(len(images))]


@pytest.mark.parametrize("name", LOOKING)
@pytest.mark.parametrize("beam", [1, 3])
def test_looking_does_not_change_the_caption(name: str, beam: int) -> None:
    tool, how = describer(name), Decoding(beam=beam)
    captions = said(tool, pictures(8), how)
    assert captions == said(tool, pictures(8), how, look=True)
    assert len(set(map(tuple, captions))) > 1  # else this would be no test


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("beam", [1, 3])
def test_a_caption_does_not_depend_on_its_batch(
    name: str, beam: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool, how, images = describer(name), Decoding(beam=beam), pictures(5)
    together = said(tool, images, how)
    assert together == [said(tool, image[None], how)[0] for image in images]
    monkeypatch.setattr("saccade.tasks.captioning.captioner.BATCH", 2)
    assert together == said(tool, images, how)


@pytest.mark.parametrize("name", EVERY)
def test_a_beam_of_one_takes_the_best_word_of_the_whole_model_each_time(name: str) -> None:
    tool = describer(name)
    for image in pictures(2):
        words = [START]
        with torch.no_grad():
            while words[-1] != END and len(words) <= tool.settings.longest:
                rows = Rows.of(torch.tensor(words), torch.tensor([len(words)]))
                known = tool.model(image[None], rows, torch.tensor([0])).hidden
                words.append(int(tool.model.output(known[-1:]).argmax()))  # type: ignore[operator]
        expected = [word for word in words[1:] if word != END]
        assert said(tool, image[None], Decoding(beam=1)) == [expected]


@pytest.mark.slow
@pytest.mark.parametrize("name", LOOKING)
def test_a_caption_read_again_is_looked_at_as_when_it_was_found(name: str) -> None:
    tool, images = describer(name), pictures(2)
    watched = dict(tool.caption(images, Decoding(beam=3, n_best=2), look=True))
    plain = dict(tool.caption(images, Decoding(beam=3, n_best=2)))
    for row, one in watched.items():
        for seen, unseen in zip((one, *one.others), (plain[row], *plain[row].others)):
            later = tool.looked(images[row], unseen)
            assert later.shape == seen.shape
            for site, glance in seen.attention.items():
                assert glance.weights is not None
                assert glance.weights.shape[2] == len(seen.tokens) + seen.finished
                torch.testing.assert_close(later.attention[site].weights, glance.weights)


@pytest.mark.parametrize("name", LOOKING)
def test_captions_are_watched_as_if_the_search_itself_had_been(name: str) -> None:
    tool, images, how = describer(name), pictures(2), Decoding(beam=3, n_best=2)
    model: Any = tool.model
    for row, best in tool.caption(images, how, look=True):
        for one in (best, *best.others):
            words = [START, *one.tokens][: len(one.tokens) + one.finished]
            with looking(model, keep=EVERY_CELL, only="cross") as trace, torch.inference_mode():
                state = model.start(images[row : row + 1])
                for word in words:
                    _, state = model.step(torch.tensor([word]), state)
            for site, weights in trace.weights().items():
                torch.testing.assert_close(one.attention[site].weights, weights)


@pytest.mark.slow
@pytest.mark.parametrize("name", LOOKING)
def test_words_gather_their_pieces_on_the_cells_of_the_picture(name: str) -> None:
    tool, images = describer(name), pictures(3)
    maps = {row: one for row, one, _ in tool.read_captions(images, TEXTS)}
    for row, text in enumerate(TEXTS):
        pieces = tool.vocabulary.encode(text)
        assert len(pieces) > len(words(text))
        unseen = WrittenCaption(text, 0.0, 0.0, finished=True, attention={}, tokens=pieces)
        forced = tool.looked(images[row], unseen)
        weights = torch.stack([w.mean(dim=0) for w in tool.weights(forced).values()]).mean(dim=0)
        assert maps[row].shape == (len(words(text)), *forced.shape)
        torch.testing.assert_close(maps[row].float().sum(dim=(1, 2)), torch.ones(len(words(text))))
        spans, at = tool.vocabulary.spans(text), 0
        for word, found in zip(words(text), maps[row]):
            at = text.index(word, at)
            mine = [i for i, (a, b) in enumerate(spans) if a < at + len(word) and b > at]
            torch.testing.assert_close(found.flatten().float(), weights[mine].mean(dim=0))
            at += len(word)


def test_what_is_no_cell_of_the_picture_is_left_out_of_the_maps() -> None:
    tool, images = describer("soft", level="words"), pictures(1)
    one = dict(tool.caption(images, Decoding(beam=1), look=True))[0]
    (cells,) = tool.weights(one).values()
    registers = replace(one, cells=Axis("source", "grid", 3, 5, special=1))
    maps = tool.words_looked_at(registers)
    torch.testing.assert_close(maps[0].flatten(), cells[0, 0, 1:].double())


def test_pictures_that_are_given_up_have_no_caption(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saccade.tasks.captioning.captioner.BATCH", 2)
    tool = describer("soft")
    found = dict(tool.caption(pictures(5), Decoding(beam=2), on_step=lambda step: [0, 3]))
    assert sorted(found) == [1, 2, 4]


def test_a_model_that_looks_once_says_so() -> None:
    tool = describer("show-and-tell")
    message = "^ShowAndTell does not look at the image while it speaks: it has no attention to"
    with pytest.raises(ConfigError, match=message):
        list(tool.caption(pictures(1), Decoding(), look=True))
    with pytest.raises(ConfigError, match=message):
        list(tool.read_captions(pictures(1), ["a star"]))
    one = dict(tool.caption(pictures(1), Decoding()))[0]
    with pytest.raises(ConfigError, match="nobody watched this caption being made"):
        tool.words_looked_at(one)


def test_the_same_image_in_any_form_becomes_the_same_picture(tmp_path: Path) -> None:
    tool, raw = describer("soft"), picture(0, side=50)
    path = tmp_path / "x.png"
    path.write_bytes(raw)
    image = Image.open(io.BytesIO(raw))
    array = np.array(image)
    forms = [path, str(path), raw, image, array, torch.from_numpy(array).permute(2, 0, 1)]
    first, *others = (tool.prepare(form) for form in forms)
    assert first.shape == (3, 32, 32)
    assert all(torch.equal(first, other) for other in others)


def test_an_image_is_prepared_just_as_those_that_were_learnt_from(tmp_path: Path) -> None:
    large = {"a.png": picture(0, side=90), "b.png": picture(1, side=150, form="JPEG")}
    data = in_folder(tmp_path / "data", {**large, "metadata.jsonl": metadata(*large)})
    tool = describer("soft")
    read, cache = cached_images(
        read_images(data, "train"), tmp_path / "cache", settings=CacheSettings(size=32), skip_bad=0
    )
    for number, row in enumerate(read.rows):
        assert torch.equal(cache[torch.tensor([number])][0], tool.prepare(row.image))


def test_pillow_images_are_turned_upright() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    sink = io.BytesIO()
    Image.open(io.BytesIO(PICTURES["a.png"])).save(sink, "PNG", exif=exif)
    tool = describer("soft")
    assert torch.equal(tool.prepare(Image.open(sink)), tool.prepare(sink.getvalue()))


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (np.zeros((4, 4, 3)), "no image: float64 values of shape (4, 4, 3); give uint8 ones of "),
        (np.zeros((4, 4, 2), np.uint8), "uint8 values of shape (4, 4, 2); give uint8 ones of sha"),
        (np.zeros((0, 4), np.uint8), "no image: uint8 values of shape (0, 4); give uint8 ones of"),
        (torch.zeros(4, 4, 3).byte(), "torch.uint8 values of shape (4, 4, 3); give uint8 ones of"),
        (torch.zeros(3, 4, 4), "no image: torch.float32 values of shape (3, 4, 4); give uint8"),
        (b"", "empty image: the file has 0 bytes; fetch it again"),
        (Image.open(io.BytesIO(picture(0, side=64)[:900])), "damaged image: "),
    ],
    ids=lambda one: one[:30] if isinstance(one, str) else type(one).__name__,
)
def test_what_is_no_image_is_named_with_the_reason(image: object, message: str) -> None:
    with pytest.raises(ImageError) as caught:
        describer("soft").prepare(image, name="image 3")  # type: ignore[arg-type]
    assert str(caught.value).startswith("image 3: ")
    assert message in str(caught.value)
