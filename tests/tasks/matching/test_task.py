"""Batches of images with a caption each, the loss over them, and a run that goes on."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from saccade.data.shapes import ShapesSettings
from saccade.errors import ConfigError
from saccade.models import PRESETS
from saccade.tasks.base import Preparation, Task
from saccade.tasks.joint import data as joint_data
from saccade.tasks.matching.data import MatchingSettings
from saccade.tasks.matching.task import Matching
from saccade.train.devices.distributed import World
from saccade.train.fit import Trainer
from saccade.train.recipes import RECIPES
from saccade.train.run import train
from saccade.train.settings import TrainSettings
from saccade.train.storage.checkpoint import read_tensors
from tests.gpu.test_recipes import KilledError, killed_at
from tests.tasks import total_loss
from tests.tasks.joint.made import VALID, user_captions
from tests.tasks.joint.test_filled import ASKING
from tests.tasks.matching.made import SMALL, TINY, model_for, prepared

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def task() -> Matching:
    return prepared()


def test_each_image_of_a_batch_has_one_caption_another_in_another_epoch(task: Matching) -> None:
    assert isinstance(task, Task)
    epochs = [
        [task.batch(epoch * task.batches_per_epoch + n) for n in range(task.batches_per_epoch)]
        for epoch in (0, 1)
    ]
    for batch in epochs[0]:
        assert batch.of.tolist() == list(range(len(batch.seen.images))) == batch.of.tolist()
        assert batch.tokens == len(batch.of) <= 10
    assert sum(batch.tokens for batch in epochs[0]) == SMALL["scenes"]
    first, second = (sorted(t for b in e for t in b.text.tokens.tolist()) for e in epochs)
    assert first != second


def test_a_loss_is_that_of_all_pairs_computed_apart(task: Matching) -> None:
    model, batch = model_for(task, dtype=torch.float64), task.batch(0)
    found = task.losses(model, batch)
    assert list(found) == ["contrast"]
    z = model(batch.text, batch.seen.images)
    own, said = batch.of, batch.asked["said"]
    same = said[:, None] == said
    alone = z.masked_fill(same & ~torch.eye(len(own), dtype=torch.bool), -torch.inf)
    plain = torch.nn.functional.cross_entropy
    expected = (plain(alone, own) + plain(alone.mT, own)) / 2
    torch.testing.assert_close(found["contrast"], expected * batch.tokens)


def test_equal_captions_of_different_scenes_are_known_to_be_equal() -> None:
    task = prepared(scenes=200, budget=200, shapes=ShapesSettings(most=1))
    batch, known = task.batch(0), task.train_truth
    said = batch.asked["said"]
    assert int(said.max()) + 1 < len(said)  # of one object many have the same to say
    texts = [tuple(row.tolist()) for row in batch.text.tokens.split(batch.text.lengths.tolist())]
    for a in range(len(texts)):
        for b in range(a):
            assert (texts[a] == texts[b]) == bool(said[a] == said[b])
    assert len(known) == len(task._train.texts)


@pytest.mark.parametrize("texts", [1, 3])
def test_what_fills_a_batch_changes_neither_loss_nor_gradient(texts: int) -> None:
    task = prepared(texts=texts, budget=10 * texts)
    model = model_for(task, dtype=torch.float64)
    for position in range(2):
        batch, found = task.batch(position), list[list[torch.Tensor]]()
        for one in (batch, batch.filled()):
            model.zero_grad()
            loss = total_loss(task, model, one)
            loss.backward()
            grads = [p.grad for p in model.parameters() if p.grad is not None]
            found.append([loss.detach(), *grads])
        for ours, theirs in zip(*found, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-8)


def test_nothing_in_a_step_waits_for_a_number(task: Matching) -> None:
    model, batch = model_for(task), task.batch(0).filled()
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        task.losses(model, batch)
    assert {event.key for event in seen.key_averages()} & ASKING == set()


def test_processes_share_a_batch_and_count_each_text_once(task: Matching) -> None:
    whole = task.batch(1)
    parts = [task.batch(1, shard=shard, shards=3) for shard in range(3)]
    assert sum(part.tokens for part in parts) == whole.tokens
    images = torch.cat([part.seen.images for part in parts]).flatten(1).float().sum(1).sort().values
    assert torch.equal(images, whole.seen.images.flatten(1).float().sum(1).sort().values)


def test_validation_finds_among_all_images_and_the_mean_decides(task: Matching) -> None:
    figures = task.validate(model_for(task), CPU)
    assert task.deciding.figure == "R@1"
    assert task.deciding.higher
    assert figures["R@1"] == (figures["image R@1"] + figures["sentence R@1"]) / 2
    assert figures["image R@10"] == 1.0 if VALID < 10 else True


def test_a_users_captions_are_read_as_captioners_read_them(tmp_path: Path) -> None:
    data = user_captions(tmp_path / "mine")
    task = prepared(data=str(data), image=32, augment="crop")
    batch = task.batch(0)
    assert batch.drawn is not None
    varied = task.varied(batch).seen.images
    assert varied.shape == batch.seen.images.shape
    assert not torch.equal(varied, batch.seen.images)
    assert torch.isfinite(total_loss(task, model_for(task), batch))


def test_what_cannot_be_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="GptConfig does not compare images with texts; take one"):
        MatchingSettings().check(PRESETS["gpt-nano"])
    with pytest.raises(ConfigError, match="augment=flip mirrors images, and texts about shapes"):
        MatchingSettings(augment="flip").check(TINY)
    with pytest.raises(ConfigError, match="validated=0 must be at least 1"):
        MatchingSettings(validated=0)


def test_images_are_as_large_as_an_encoder_is_made_for() -> None:
    sized = MatchingSettings(image=96).sized_for(replace(TINY, encoder="vit-b-32"))
    assert sized.image == 224
    assert MatchingSettings(image=96).sized_for(TINY).image == 96


def recipe(**settings: Any) -> Any:
    quick = TrainSettings(steps=6, batch_tokens=8, validate_every=3, save_every=2, device="cpu")
    task = MatchingSettings(**{**SMALL, **settings})
    return replace(RECIPES["clip"], model=TINY, task=task, train=quick)


@pytest.mark.slow
def test_a_run_that_was_killed_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    train(recipe(), whole, lambda event: None)
    with pytest.raises(KilledError):
        train(recipe(), broken, killed_at(5))
    train(recipe(), broken, lambda event: None)
    ours, theirs = (read_tensors(run / "model.safetensors") for run in (whole, broken))
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.mark.slow
def test_after_some_updates_it_finds_what_it_never_saw(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint_data, "HELD_BACK", 100)
    settings = MatchingSettings(image=32, scenes=2000, shapes=ShapesSettings(most=1))
    task = Matching(settings, Preparation(budget=64, seed=0))
    torch.manual_seed(0)
    how = TrainSettings(steps=120, learning_rate=3e-3, optimizer="muon", warmup=10)
    config = replace(TINY, width=32, joint=32)
    trainer = Trainer(task.fit(config).build(), task, how, World(0, 1, CPU))
    for _ in range(how.steps):
        trainer.advance()
    trainer.settle()
    assert task.validate(trainer.model.eval(), CPU)["image R@10"] > 0.5  # 0.1 by chance
