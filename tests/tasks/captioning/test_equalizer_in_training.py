"""The Equalizer in the captioning task: what it needs comes with the batch, and only if asked."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from saccade.blocks.output import OutputLayer
from saccade.config import from_dict, to_dict
from saccade.data import shapes
from saccade.data.batching.rows import Rows
from saccade.errors import ConfigError
from saccade.models.caption.captioner import Captioner, CaptionHidden
from saccade.tasks.base import Preparation
from saccade.tasks.captioning import data as captioned
from saccade.tasks.captioning.data import CaptioningSettings, read_captioned
from saccade.tasks.captioning.equalizer import EqualizerSettings
from saccade.tasks.captioning.task import Captioning
from tests.data.images_made import in_folder, rows
from tests.tasks import total_loss

FULL = EqualizerSettings(confusion=10.0, confident=1.0, masked=1.0)
BIASED = CaptioningSettings(world="biased", scenes=12)
EQUAL = replace(BIASED, equalizer=FULL)


@pytest.fixture(autouse=True)
def _few_to_validate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(captioned, "HELD_BACK", 5)


def task(settings: CaptioningSettings) -> Captioning:
    return Captioning(settings, Preparation(budget=250, seed=0))


class Sums(Captioner):
    """Knows of each word its number and the brightness of the picture."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(vocabulary, 5)
        self.readout = nn.Linear(5, vocabulary)
        self.seen = list[Tensor]()

    @property
    def output(self) -> OutputLayer:
        return OutputLayer(self.readout.weight, self.readout.bias)

    def start(self, pictures: Tensor) -> Any:
        raise NotImplementedError

    def step(self, tokens: Tensor, state: Any) -> Any:
        raise NotImplementedError

    def forward(self, pictures: Tensor, captions: Rows, of: Tensor) -> CaptionHidden:
        self.seen.append(pictures)
        bright = pictures.float().mean(dim=(1, 2, 3))[of].repeat_interleave(captions.lengths)
        return CaptionHidden(self.embedding(captions.tokens) * bright[:, None] / 255)


def test_nothing_changes_while_it_is_off() -> None:
    off = task(BIASED)
    batch = off.batch(0)
    assert batch.asked is None
    model = Sums(len(off.vocabulary))
    total_loss(off, model, batch)
    assert len(model.seen) == 1
    other = replace(BIASED, equalizer=EqualizerSettings(groups=("ship", "plane")))
    assert torch.equal(total_loss(task(other), model, batch), total_loss(off, model, batch))


def test_hidden_pictures_go_with_their_captions() -> None:
    one = task(EQUAL)
    scenes = read_captioned(EQUAL, "train").scenes
    by_picture = {shapes.render(s).transpose(2, 0, 1).tobytes(): s for s in scenes}
    for position in range(one.batches_per_epoch):
        batch = one.batch(position)
        assert batch.asked is not None
        assert batch.asked.hidden is not None
        for picture, hidden in zip(batch.images, batch.asked.hidden):
            scene = by_picture[picture.numpy().tobytes()]
            assert np.array_equal(hidden.numpy().transpose(1, 2, 0), shapes.hidden(scene))


def test_steps_are_where_a_group_is_due() -> None:
    one = task(EQUAL)
    batch = one.batch(0)
    assert batch.asked is not None
    words = [piece.strip() for piece in one.vocabulary.pieces(batch.labels.tolist())]
    expected = [i for i, word in enumerate(words) if word in shapes.GROUPS]
    assert batch.asked.steps.tolist() == batch.asked.unseen.tolist() == expected
    assert len(expected) == 4 * len(batch.images)  # one of five says figure


def test_hidden_pictures_vary_as_the_others_do() -> None:
    one = task(replace(EQUAL, augment="flip"))
    plain = task(EQUAL)
    batch, same = one.batch(0), plain.batch(0)
    assert same.asked is not None
    assert same.asked.hidden is not None
    flipped = (one.varied(batch.images, batch.drawn) != same.images).flatten(1).any(dim=1)
    assert flipped.any()
    assert not flipped.all()
    model = Sums(len(one.vocabulary))
    total_loss(one, model, batch)
    assert len(model.seen) == 2
    for found, plain_images in zip(model.seen, (same.images, same.asked.hidden)):
        for i, turned in enumerate(flipped.tolist()):
            expected = plain_images[i]
            assert torch.equal(found[i], expected.flip(2) if turned else expected)


@pytest.mark.parametrize(
    ("equalizer", "forwards"),
    [(FULL, 2), (EqualizerSettings(confident=1.0), 1), (EqualizerSettings(upweight=10.0), 1)],
)
def test_the_loss_has_what_is_asked_and_hides_no_more_than_needed(
    equalizer: EqualizerSettings, forwards: int
) -> None:
    one = task(replace(BIASED, equalizer=equalizer))
    model, batch = Sums(len(one.vocabulary)), one.batch(0)
    loss = total_loss(one, model, batch)
    assert len(model.seen) == forwards
    assert loss > total_loss(task(BIASED), model, batch._replace(asked=None))
    loss.backward()
    assert model.embedding.weight.grad is not None
    assert batch.shape != one.batch(0)._replace(asked=None).shape


def test_a_share_of_a_batch_that_counts_nothing_adds_nothing() -> None:
    one = task(EQUAL)
    model, batch = Sums(len(one.vocabulary)), one.batch(0, shard=90, shards=100)
    assert batch.tokens == 0
    assert total_loss(one, model, batch).item() == 0


def test_a_users_pictures_are_hidden_by_their_boxes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SACCADE_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "data"
    folder.mkdir()
    for i in range(30):
        noise = np.random.default_rng(i).integers(0, 256, (16, 16, 3), dtype=np.uint8)
        Image.fromarray(noise).save(folder / f"{i}.png")
    records: list[dict[str, Any]] = [
        {"file_name": f"{i}.png", "captions": [f"a {('man', 'woman')[i % 2]} , here"]}
        for i in range(30)
    ]
    for record in records[:20]:
        record["boxes"] = {"man": [[0, 0, 8, 16]]}
    in_folder(folder, {"metadata.jsonl": rows(*records)})
    equalizer = replace(FULL, groups=("man", "woman"))
    settings = CaptioningSettings(data=str(folder), image=16, equalizer=equalizer)
    one = task(settings)
    batch = one.batch(0)
    assert batch.asked is not None
    assert batch.asked.hidden is not None
    changed = (batch.asked.hidden != batch.images).flatten(1).any(dim=1)
    assert 0 < changed.sum() < len(changed)
    assert len(batch.asked.steps) == len(changed)
    assert len(batch.asked.unseen) == changed.sum()
    before = one.fingerprint()
    assert before == task(settings).fingerprint()
    records[1]["boxes"] = {"man": [[0, 0, 8, 15]]}
    in_folder(folder, {"metadata.jsonl": rows(*records)})
    assert before != task(settings).fingerprint()


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"level": "bpe", "world": "biased"}, "take level=words"),
        ({"world": "plain"}, "needs world=biased"),
    ],
)
def test_where_it_cannot_work_it_says_so(settings: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        CaptioningSettings(equalizer=FULL, **settings)


def test_settings_survive_the_way_to_a_file_and_back() -> None:
    assert from_dict(CaptioningSettings, to_dict(EQUAL)) == EQUAL
