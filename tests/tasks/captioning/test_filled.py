"""Batches filled up to few shapes, for captured steps: the same losses, the same gradients."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from saccade.models.caption.caption_transformer import CaptionTransformerConfig
from saccade.models.caption.captioner import CaptionerConfig
from saccade.models.caption.show_and_tell import ShowAndTellConfig
from saccade.models.caption.show_attend_tell import ShowAttendTellConfig
from saccade.tasks.base import Batch, Fillable, Preparation
from saccade.tasks.captioning import data as captioned
from saccade.tasks.captioning.data import CaptioningSettings, HardSettings
from saccade.tasks.captioning.equalizer import EqualizerSettings
from saccade.tasks.captioning.task import CaptionBatch, Captioning
from tests.marks import one_fast
from tests.tasks import total_loss

SHAPES = CaptioningSettings(scenes=23, image=32, longest=11)
HARD = replace(SHAPES, hard=HardSettings(reinforce=0.3, entropy=0.02))
EQUAL = EqualizerSettings(confusion=10.0, confident=1.0, masked=1.0, upweight=3.0)
SMALL: dict[str, Any] = {"width": 8, "dropout": 0.0}
LOOKS = ShowAttendTellConfig(encoder="resnet-mini", hidden=8, places=True, **SMALL)
WRITES = CaptionTransformerConfig(depth=1, encoder_depth=0, heads=2, hidden=8, **SMALL)
KINDS: dict[str, tuple[CaptionerConfig, CaptioningSettings]] = {
    "show-and-tell": (ShowAndTellConfig(encoder="resnet-mini", shown="always", **SMALL), SHAPES),
    "soft": (replace(LOOKS, reads_first=True), SHAPES),
    "covering": (LOOKS, replace(SHAPES, cover=1.0)),
    "covering by length": (LOOKS, replace(SHAPES, cover=1.0, cover_by="length")),
    "hard": (replace(LOOKS, glance="hard"), HARD),
    "equalizer": (LOOKS, replace(SHAPES, world="biased", equalizer=EQUAL, longest=10)),
    "cnn": (replace(WRITES, encoder="resnet-mini", encoder_depth=1), SHAPES),
    "vit": (replace(WRITES, encoder="vit-nano"), replace(SHAPES, label_smoothing=0.1)),
}


@pytest.fixture(autouse=True)
def _few_to_validate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(captioned, "HELD_BACK", 5)


def prepared(settings: CaptioningSettings) -> Captioning:
    return Captioning(settings, Preparation(budget=120, seed=0))


@pytest.mark.parametrize("kind", one_fast(KINDS))
def test_what_fills_a_batch_changes_neither_loss_nor_gradient(kind: str) -> None:
    config, settings = KINDS[kind]
    task = prepared(settings)  # whose `longest` leaves some images with fewer captions
    torch.manual_seed(0)
    model = task.fit(config).build().double().eval()  # draws nothing
    batches = [task.batch(position) for position in range(3)]
    assert any(len(batch.of.unique(return_counts=True)[1].unique()) > 1 for batch in batches)
    for batch in batches:
        found = list[tuple[torch.Tensor, ...]]()
        for one in (batch, batch.filled()):
            loss = total_loss(task, model, one)
            model.zero_grad()
            loss.backward()
            grads = [p.grad for p in model.parameters() if p.grad is not None]
            found.append((loss.detach(), *grads))
        for ours, theirs in zip(*found, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


def test_filled_batches_of_many_lengths_have_few_shapes() -> None:
    assert issubclass(CaptionBatch, Fillable)  # which the trainer asks
    task = prepared(replace(SHAPES, scenes=200, captions=1, longest=60))
    batches = [task.batch(position) for position in range(task.batches_per_epoch - 1)]
    assert len({batch.shape for batch in batches}) == len(batches) > 10
    filled: list[Batch] = [batch.filled() for batch in batches]
    assert len({batch.shape for batch in filled}) <= 3
    assert [batch.tokens for batch in filled] == [batch.tokens for batch in batches]


def test_the_shape_says_whether_the_equalizer_asks_about_as_many_words() -> None:
    task = prepared(KINDS["equalizer"][1])
    shapes = {task.batch(position).filled().shape for position in range(4)}
    assert len(shapes) <= 2
    asked = task.batch(0).filled()
    assert asked.shape != asked._replace(asked=None).shape
