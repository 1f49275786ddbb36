"""Text to image: batches, losses, draws; two stages as one recipe."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from saccade.decode.guided import Guided, GuidedState
from saccade.errors import ConfigError, DataError
from saccade.models.image_tokens.dalle import Dalle, DalleConfig
from saccade.models.image_tokens.dvae import Dvae, DvaeConfig
from saccade.tasks.base import OtherRun, Preparation
from saccade.tasks.reconstruction.asset import ASSET
from saccade.tasks.reconstruction.data import ReconstructionSettings
from saccade.tasks.text_to_image.data import TextToImageSettings, read_texts
from saccade.tasks.text_to_image.drawer import Drawing, ImageDrawer
from saccade.tasks.text_to_image.task import TextToImage, text_image_losses

DVAE = DvaeConfig(image=32, codes=7, width=4, groups=4, blocks=1, code_width=4)
DALLE = DalleConfig(text=24, width=16, depth=3, heads=2, kernel=3)
SETTINGS = TextToImageSettings(image=32, scenes=23, dvae="somewhere")


def opener(dvae: nn.Module) -> Callable[[str, str], OtherRun]:
    return lambda folder, option: OtherRun(Path(folder), ReconstructionSettings(), dvae)


@pytest.fixture(scope="module")
def dvae() -> Dvae:
    torch.manual_seed(0)
    return DVAE.build().eval()


def prepared(dvae: nn.Module, settings: TextToImageSettings = SETTINGS, **how: Any) -> TextToImage:
    given: dict[str, Any] = {"budget": 10, "seed": 0, "most_words": DALLE.text, **how}
    return TextToImage(settings, Preparation(**given, open_run=opener(dvae)))


@pytest.fixture(scope="module")
def task(dvae: Dvae) -> TextToImage:
    return prepared(dvae)


@pytest.fixture(scope="module")
def model(task: TextToImage) -> Dalle:
    torch.manual_seed(1)
    made: Any = task.fit(DALLE).build()
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.2)
    return made.eval()


@pytest.fixture(scope="module")
def drawer(task: TextToImage, model: Dalle) -> ImageDrawer:
    return ImageDrawer(model, task.dvae, task.vocabulary, SETTINGS)


@pytest.mark.slow
def test_the_dvae_decides_codes_and_grid(task: TextToImage) -> None:
    config: Any = task.fit(DALLE)
    assert (config.codes, config.grid, config.vocabulary) == (7, 4, len(task.vocabulary))


def test_codes_are_those_of_the_images(task: TextToImage, dvae: Dvae) -> None:
    read = read_texts(SETTINGS, "train")
    rng = torch.Generator().manual_seed(0)
    order = torch.randperm(23, generator=rng)[:10]  # seed 0, epoch 0
    assert torch.equal(task.batch(0).codes, dvae.codes(read.images[order]))


def test_an_epoch_has_every_image_once_and_other_texts_than_the_next(task: TextToImage) -> None:
    first = [task.batch(i) for i in range(task.batches_per_epoch)]
    again = [task.batch(i + task.batches_per_epoch) for i in range(task.batches_per_epoch)]
    assert sum(batch.tokens for batch in first) == 23
    told = [
        sorted(map(tuple, torch.cat([b.words for b in some]).tolist())) for some in (first, again)
    ]
    assert told[0] != told[1]


def test_processes_share_a_batch(task: TextToImage) -> None:
    whole, parts = task.batch(1), [task.batch(1, shard=i, shards=2) for i in range(2)]
    assert torch.equal(
        torch.cat([whole.codes[0::2], whole.codes[1::2]]), torch.cat([p.codes for p in parts])
    )


def pieces(task: TextToImage, position: int, **shard: int) -> list[list[int]]:
    """The texts of a batch as tokens, without start and end."""
    batch = task.batch(position, **shard)
    return [row[1 : n - 1].tolist() for row, n in zip(batch.words, batch.lengths)]


PAIRS = replace(SETTINGS, level="bpe", vocabulary=300, dropped=0.0)


@pytest.mark.slow
def test_byte_pairs_are_left_out_in_training_by_seed_epoch_and_text(dvae: Dvae) -> None:
    plain = prepared(dvae, PAIRS, most_words=90)
    task = prepared(dvae, replace(PAIRS, bpe_dropout=0.3), most_words=90)
    read, epoch = task.vocabulary.decode, task.batches_per_epoch
    for position in (0, epoch):
        texts = [list(map(read, pieces(one, position))) for one in (plain, task)]
        assert texts[0] == texts[1]
    assert sum(map(len, pieces(task, 0))) > sum(map(len, pieces(plain, 0)))
    again = prepared(dvae, replace(PAIRS, bpe_dropout=0.3), most_words=90)
    assert pieces(again, epoch) == pieces(task, epoch)  # whatever was asked for before
    assert pieces(task, 1, shard=1, shards=2) == pieces(task, 1)[1::2]
    assert task.fingerprint() == plain.fingerprint()
    figures = [one.validate(constant_dalle(one), torch.device("cpu")) for one in (plain, task)]
    assert figures[0] == figures[1]  # nothing is left out there


def constant_dalle(task: TextToImage) -> Any:
    torch.manual_seed(2)
    return task.fit(replace(DALLE, text=90)).build().eval()


@pytest.mark.slow
def test_a_text_in_too_many_pieces_is_read_as_it_is_without_dropout(dvae: Dvae) -> None:
    plain = prepared(dvae, replace(PAIRS, vocabulary=400), most_words=90)
    longest = max(len(row) for i in range(6) for row in pieces(plain, i))
    tight = prepared(dvae, replace(PAIRS, vocabulary=400, bpe_dropout=0.9), most_words=longest + 3)
    whole = {tuple(plain.vocabulary.encode(text)) for text in said()}
    found = [tuple(row) for i in range(6) for row in pieces(tight, i)]
    assert all(len(row) <= longest for row in found)
    assert any(row in whole for row in found)
    assert {plain.vocabulary.decode(list(row)) for row in found} <= set(said())


def said() -> list[str]:
    return [text for texts in read_texts(PAIRS, "train").captions for text in texts]


@pytest.mark.slow
def test_hidden_texts_are_a_start_and_an_end(dvae: Dvae) -> None:
    task = prepared(dvae, replace(SETTINGS, dropped=0.999))
    batch = task.batch(0)
    assert batch.lengths.tolist() == [2] * 10
    assert batch.words[0, :2].tolist() == [task.vocabulary.start, task.vocabulary.end]


def test_losses_are_means_of_words_and_of_codes(task: TextToImage, model: Dalle) -> None:
    batch = task.batch(0)
    words, codes = text_image_losses(model, batch)
    hidden = model(batch.words, batch.lengths, batch.codes)
    told = [
        F.cross_entropy(model.word_output(hidden[row, : length - 1]), batch.words[row, 1:length])
        * (length - 1)
        for row, length in enumerate(batch.lengths.tolist())
    ]
    torch.testing.assert_close(words, sum(told) / (batch.lengths - 1).sum())
    z = model.output(hidden[:, DALLE.text - 1 : -1]).flatten(0, 1)
    torch.testing.assert_close(codes, F.cross_entropy(z, batch.codes.flatten()))
    found = task.losses(model, batch)
    torch.testing.assert_close(found["words"], words / 8 * 10)
    torch.testing.assert_close(found["codes"], codes * 7 / 8 * 10)


def test_validation_is_the_mean_over_all_images(task: TextToImage, model: Dalle) -> None:
    figures = task.validate(model, torch.device("cpu"))
    assert figures["loss"] == pytest.approx(figures["words"] / 8 + figures["codes"] * 7 / 8)


@pytest.mark.slow
def test_a_run_keeps_its_dvae_and_goes_on_with_it(task: TextToImage, tmp_path: Path) -> None:
    for name, content in task.assets().items():
        (tmp_path / name).write_bytes(content)
    again = prepared(nn.Identity(), folder=tmp_path)  # what --dvae named may be gone
    assert again.fingerprint() == task.fingerprint()
    assert torch.equal(again.batch(3).codes, task.batch(3).codes)


def test_a_damaged_dvae_that_a_run_kept_is_one_line(tmp_path: Path) -> None:
    (tmp_path / ASSET).write_bytes(b"no weights at all")
    with pytest.raises(DataError, match=r"dvae.safetensors is no discrete VAE .* --start-over"):
        prepared(nn.Identity(), folder=tmp_path)


def test_as_many_steps_are_taken_as_there_are_codes(drawer: ImageDrawer) -> None:
    decoder = drawer.decoders.decoder("auto")
    steps, step = 0, decoder.step

    def counted(*given: Any) -> Any:
        nonlocal steps
        steps += 1
        return step(*given)

    decoder.step = counted
    drawer.draw(["a red circle", "a star"], Drawing())
    del decoder.step
    assert steps == drawer.model.config.cells


@pytest.mark.parametrize("guidance", [1.0, 3.0])
def test_images_are_drawn_as_if_alone(drawer: ImageDrawer, guidance: float) -> None:
    prompts, how = ["a red circle", "a star", "a blue ring"], Drawing(guidance=guidance)
    together = drawer.draw(prompts, how)
    for stream, prompt in enumerate(prompts):
        (alone,) = drawer.draw([prompt], how, streams=[stream])
        assert alone.codes == together[stream].codes


def test_what_is_drawn_is_as_probable_as_the_whole_model_says(drawer: ImageDrawer) -> None:
    found = drawer.draw(["a red circle", "a star"], Drawing(seed=3))
    codes = torch.tensor([one.codes for one in found])
    words = drawer.text_tokens(["a red circle", "a star"])
    with torch.inference_mode():
        hidden = drawer.model.words.decode(torch.cat([words, codes], dim=1)[:, :-1])
        log_p = drawer.model.output(hidden[:, words.shape[1] - 1 :]).log_softmax(dim=-1)
    expected = log_p.gather(2, codes[:, :, None]).sum(dim=(1, 2))
    assert [one.log_probability for one in found] == pytest.approx(expected.tolist(), abs=1e-3)


def test_the_upper_part_of_an_image_stays(drawer: ImageDrawer) -> None:
    image = torch.randint(256, (3, 32, 32), dtype=torch.uint8)
    begun = drawer.upper_part(image, 2)
    found = drawer.draw(["a star", "a star"], Drawing(), begun=begun)
    assert all(one.codes[:8] == begun.tolist() and len(one.codes) == 16 for one in found)
    assert torch.equal(begun, drawer.dvae.codes(image[None])[0, :8])


def test_guidance_moves_away_from_what_is_said_without_a_text(drawer: ImageDrawer) -> None:
    decoder = drawer.decoders.decoder("auto")
    tokens = drawer.text_tokens(["a red circle", ""])
    _, state = decoder.read(tokens[:, :-1], decoder.start(2))
    z, _ = decoder.step(tokens[:, -1], state)
    _, state = decoder.read(tokens[:, :-1], decoder.start(2))
    guided, _ = Guided(decoder, torch.tensor(2.0)).step(tokens[:1, -1], GuidedState(state))
    torch.testing.assert_close(guided[0], z[1] + 2 * (z[0] - z[1]))


def test_images_are_those_of_the_codes(drawer: ImageDrawer) -> None:
    found = drawer.draw(["a star"] * 3, Drawing())
    images = drawer.images(found)
    assert images.shape == (3, 3, 32, 32)
    assert torch.equal(images[1], drawer.dvae.decode(torch.tensor([found[1].codes]))[0])


BLACK = torch.zeros(3, 32, 32, dtype=torch.uint8)
MISTAKES: dict[str, Callable[[ImageDrawer], Any]] = {
    "no word to draw": lambda drawer: drawer.read(""),
    "the prompt has 40 tokens, but the model reads 21": lambda drawer: drawer.read("a star " * 20),
    "rows=4 must be from 1 to 3": lambda drawer: drawer.upper_part(BLACK, 4),
    "guidance=-1.0 must be 0 or more": lambda drawer: Drawing(guidance=-1.0),
    "temperature=0.0 must be above 0": lambda drawer: Drawing(temperature=0.0),
}


@pytest.mark.parametrize("message", MISTAKES)
def test_mistakes_are_named(drawer: ImageDrawer, message: str) -> None:
    with pytest.raises((ConfigError, DataError), match=re.escape(message)):
        MISTAKES[message](drawer)


def test_a_run_without_codes_is_no_dvae() -> None:
    with pytest.raises(ConfigError, match="is a run of Identity, which has no codes"):
        prepared(nn.Identity())


def test_images_of_another_size_than_the_dvaes_are_refused(dvae: Dvae) -> None:
    with pytest.raises(ConfigError, match=r"image=64, but the discrete VAE .* pass --image 32"):
        prepared(dvae, replace(SETTINGS, image=64))


def test_pairs_are_of_byte_pairs() -> None:
    with pytest.raises(ConfigError, match=r"level=words has none; pass --level bpe, or --bpe-drop"):
        replace(SETTINGS, bpe_dropout=0.1)
    with pytest.raises(ConfigError, match=r"bpe_dropout=1.0 must be at least 0 and below 1"):
        replace(PAIRS, bpe_dropout=1.0)


@pytest.mark.slow
def test_texts_that_no_model_can_read_are_refused(dvae: Dvae) -> None:
    with pytest.raises(DataError, match=r"none of the training texts has under .* --model.text"):
        prepared(dvae, most_words=4)


def test_the_dvae_is_an_asset(task: TextToImage) -> None:
    assert ASSET in task.assets()
