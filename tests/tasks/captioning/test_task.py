"""Every picture once an epoch, its captions in turn, a loss that is the words' cross-entropy."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.blocks.output import OutputLayer
from saccade.data.batching.rows import Rows
from saccade.data.tokens.vocabulary import OURS
from saccade.errors import DataError
from saccade.models.caption.captioner import Captioner, CaptionHidden
from saccade.tasks.base import Preparation
from saccade.tasks.captioning import data as captioned
from saccade.tasks.captioning.data import CaptioningSettings, read_captioned
from saccade.tasks.captioning.task import Captioning, encode
from saccade.tasks.cross_entropy import IGNORED
from tests.tasks import total_loss

START, END = OURS.start, OURS.end

SMALL = CaptioningSettings(scenes=23, image=32)


def task(settings: CaptioningSettings = SMALL, *, words: int = 300, seed: int = 0) -> Captioning:
    return Captioning(settings, Preparation(budget=words, seed=seed))


@pytest.fixture(scope="module", autouse=True)
def few_held_back() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(captioned, "HELD_BACK", 20)
        yield


@pytest.fixture(scope="module")
def small(few_held_back: None) -> Captioning:
    return task()


class Sums(Captioner):
    """Knows of each word its number and the brightness of the picture."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(vocabulary, 5)
        self.readout = nn.Linear(5, vocabulary)

    @property
    def output(self) -> OutputLayer:
        return OutputLayer(self.readout.weight, self.readout.bias)

    def start(self, pictures: Tensor) -> Any:
        raise NotImplementedError

    def step(self, tokens: Tensor, state: Any) -> Any:
        raise NotImplementedError

    def forward(self, pictures: Tensor, captions: Rows, of: Tensor) -> CaptionHidden:
        bright = pictures.float().mean(dim=(1, 2, 3))[of].repeat_interleave(captions.lengths)
        return CaptionHidden(self.embedding(captions.tokens) * bright[:, None] / 255)


def captions_of(one: Captioning, position: int) -> list[str]:
    batch = one.batch(position)
    ends = batch.captions.starts.tolist()
    rows = [batch.labels[a:b].tolist() for a, b in pairwise(ends)]
    assert all(row[-1] == END for row in rows)
    return [one.vocabulary.decode(row[:-1]) for row in rows]


def test_an_epoch_sees_every_picture_once_with_all_of_its_captions(small: Captioning) -> None:
    told = read_captioned(SMALL, "train")
    seen = Counter(c for i in range(small.batches_per_epoch) for c in captions_of(small, i))
    assert seen == Counter(caption for captions in told.captions for caption in captions)


def test_captions_go_with_their_picture(small: Captioning) -> None:
    told = read_captioned(SMALL, "train")
    mine = {int(told.images[torch.tensor([i])].long().sum()): i for i in range(len(told))}
    for position in range(small.batches_per_epoch):
        batch, texts = small.batch(position), captions_of(small, position)
        for text, of in zip(texts, batch.of.tolist()):
            number = mine[int(batch.images[of].long().sum())]
            assert text in told.captions[number]


def test_of_many_captions_some_are_chosen_and_others_in_another_epoch() -> None:
    two = task(replace(SMALL, captions=2))
    told = {c: i for i, cs in enumerate(read_captioned(SMALL, "train").captions) for c in cs}
    epochs = []
    for epoch in range(2):
        first = epoch * two.batches_per_epoch
        texts = [c for i in range(two.batches_per_epoch) for c in captions_of(two, first + i)]
        assert len(texts) == 2 * SMALL.scenes
        epochs.append({(told[c], c) for c in texts})
    assert epochs[0] != epochs[1]
    assert Counter(number for number, _ in epochs[0]).most_common(1)[0][1] == 2


def test_a_batch_is_a_function_of_seed_and_position(small: Captioning) -> None:
    for position in (0, 3, 1, 3):
        one, other = small.batch(position), task().batch(position)
        assert torch.equal(one.images, other.images)
        assert torch.equal(one.captions.tokens, other.captions.tokens)
    assert not torch.equal(task(seed=1).batch(0).images[:3], small.batch(0).images[:3])


def test_shards_share_the_pictures_out(small: Captioning) -> None:
    whole = small.batch(0)
    parts = [small.batch(0, shard=shard, shards=3) for shard in range(3)]
    assert sum(len(part.images) for part in parts) == len(whole.images)
    assert sum(part.tokens for part in parts) == whole.tokens
    lone = small.batch(0, shard=len(whole.images), shards=len(whole.images) + 1)
    assert lone.tokens == 0
    assert (lone.labels == IGNORED).all()


def test_words_are_shifted_by_one(small: Captioning) -> None:
    batch = small.batch(1)
    starts = batch.captions.starts[:-1].long()
    assert (batch.captions.tokens[starts] == START).all()
    inner = torch.ones(len(batch.labels), dtype=torch.bool)
    inner[starts] = False
    assert torch.equal(batch.captions.tokens[inner], batch.labels[:-1][inner[1:]])


def test_batches_hold_the_words_asked_for_on_average() -> None:
    one = task(words=400)
    sizes = [one.batch(i).tokens for i in range(one.batches_per_epoch)]
    assert 300 < sum(sizes[:-1]) / len(sizes[:-1]) < 500


def test_the_loss_is_the_cross_entropy_of_all_words(small: Captioning) -> None:
    model, batch = Sums(len(small.vocabulary)), small.batch(0)
    known = model(batch.images, batch.captions, batch.of).hidden
    expected = F.cross_entropy(model.readout(known), batch.labels, reduction="sum")
    torch.testing.assert_close(total_loss(small, model, batch), expected)


def test_validation_is_the_mean_over_all_words_of_the_validation_split(small: Captioning) -> None:
    model = Sums(len(small.vocabulary))
    told = read_captioned(SMALL, "valid")
    tokens, _ = encode(told, small.vocabulary, longest=1000)
    words = total = 0.0
    for number in range(tokens.size):
        bright = tokens.images[torch.tensor([number])].float().mean()
        for row in range(int(tokens.first[number]), int(tokens.first[number + 1])):
            text = tokens.captions[row]
            x = model.embedding(torch.cat([torch.tensor([START]), text])) * bright / 255
            labels = torch.cat([text, torch.tensor([END])])
            total += F.cross_entropy(model.readout(x), labels, reduction="sum").item()
            words += len(labels)
    found = small.validate(model, torch.device("cpu"))["loss"]
    assert found == pytest.approx(total / words, rel=1e-5)


def test_varied_pictures_are_the_same_again_and_stay_pictures() -> None:
    varied = task(replace(SMALL, augment="crop"))
    batch, later = varied.batch(2), varied.batch(2 + varied.batches_per_epoch)
    one, again = (varied.varied(b.images, b.drawn) for b in (batch, varied.batch(2)))
    assert torch.equal(one, again)
    assert one.dtype == torch.uint8
    assert one.shape == batch.images.shape
    assert torch.equal(batch.images, task().batch(2).images)  # a device is sent the bytes
    assert not torch.equal(one, batch.images)
    assert not torch.equal(one, varied.varied(batch.images, later.drawn))
    model = Sums(len(varied.vocabulary))
    for dtype in (torch.float32, torch.bfloat16):  # the loss is that of the varied images
        with torch.autocast("cpu", dtype, enabled=dtype == torch.bfloat16):
            found = total_loss(varied, model, batch)
            expected = total_loss(varied, model, batch._replace(images=one, drawn=None))
        assert torch.equal(found, expected)


def test_captions_that_are_too_long_are_left_out_and_counted() -> None:
    told = read_captioned(SMALL, "train")
    short = task(replace(SMALL, longest=9))
    assert any("left out" in line for line in short.report)
    lengths = [len(short.vocabulary.encode(c)) for cs in told.captions for c in cs]
    seen = sum(len(captions_of(short, i)) for i in range(short.batches_per_epoch))
    assert seen == sum(length < 9 for length in lengths)
    with pytest.raises(DataError, match="raise --longest"):
        task(replace(SMALL, longest=2))


def test_gathering_pictures_is_told_from_the_first_to_the_last() -> None:
    told: list[tuple[int, int]] = []
    how = Preparation(budget=300, seed=0, progress=lambda done, of: told.append((done, of)))
    Captioning(SMALL, how)
    assert told[:23] == [(done, 23) for done in range(1, 24)]
    assert told[-1] == (20, 20)  # of the validation split
