"""Batches filled up to few shapes, for captured steps: the same losses, and nobody is asked."""

from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from saccade.blocks.output import OutputLayer
from saccade.models.joint.config import RegionKind
from saccade.tasks.base import Fillable
from saccade.tasks.images import some_of_each
from saccade.tasks.joint.batch import JointBatch, seen_regions
from tests.tasks import total_loss
from tests.tasks.joint.made import TASKS, TINY, model_for, prepared

every_task = pytest.mark.parametrize("kind", TASKS)
every_region = pytest.mark.parametrize("regions", ["boxes", "cells"])
# What a GPU cannot answer while it is told what to do: numbers, and sizes that depend on them.
ASKING = {"aten::item", "aten::_local_scalar_dense", "aten::nonzero", "aten::masked_select"}


@pytest.fixture(scope="module")
def tasks() -> dict[str, Any]:
    return {kind: prepared(kind) for kind in TASKS}


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Filling up changes how much is drawn: here every third region is hidden, and the wrong image
    is the next.
    """

    def chosen(regions: Any, *, overlap: bool) -> tuple[Tensor, Tensor]:
        places = torch.arange(len(regions.boxes))
        image = torch.bucketize(places, regions.starts, right=True) - 1
        third = (places - regions.starts[:-1][image]) % 3 == 1
        return third, third

    def wrong(z: Tensor | None, of: Tensor, images: int) -> Tensor:
        return (of + 1) % images

    monkeypatch.setattr("saccade.tasks.joint.pretraining.choose_regions", chosen)
    monkeypatch.setattr("saccade.tasks.joint.pretraining.wrong_images", wrong)


@pytest.mark.slow
@every_task
@every_region
def test_what_fills_a_batch_changes_neither_loss_nor_gradient(
    tasks: Any, kind: str, regions: RegionKind, undrawn: None
) -> None:
    task = tasks[kind]
    model = model_for(task, replace(TINY, regions=regions), torch.float64)
    batches = [task.batch(position) for position in range(3)]
    assert any(not batch.seen.which.rectangular for batch in batches)
    for batch in batches:
        found = list[list[Tensor]]()
        for one in (batch, batch.filled()):
            model.zero_grad()
            loss = total_loss(task, model, one)
            loss.backward()
            grads = [p.grad for p in model.parameters() if p.grad is not None]
            found.append([loss.detach(), *grads])
        for ours, theirs in zip(*found, strict=True):
            assert theirs.isfinite().all()
            torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


def test_filled_batches_have_few_shapes_that_say_what_a_captured_step_depends_on() -> None:
    assert issubclass(JointBatch, Fillable)  # which the trainer asks
    task = prepared("fitting", scenes=200, texts=1, budget=12)
    batches = [task.batch(position) for position in range(task.batches_per_epoch - 1)]
    filled = [batch.filled() for batch in batches]
    assert len({batch.shape for batch in filled}) <= 3 < len({batch.shape for batch in batches})
    assert [batch.tokens for batch in filled] == [batch.tokens for batch in batches]
    seen = filled[0].seen
    even = seen._replace(which=seen.which._replace(rectangular=True))
    assert len({seen.shape, even.shape, seen._replace(slots=2).shape}) == 3


@torch.no_grad()
def test_images_with_equally_many_regions_are_left_as_they_are(tasks: Any) -> None:
    task = tasks["answering"]
    batch = task.batch(0)
    counts = batch.seen.which.lengths
    alike = (counts == counts.mode().values).nonzero()[:, 0]
    assert len(alike) > 1
    rows = some_of_each(task._train.first, alike, 1, seed=0, epoch=0)
    same = task._train.batch(task._order.at(0, 0, 1)[0][alike], *rows)
    assert same.seen.which.rectangular
    assert same.filled().seen.shape == same.seen.shape
    regions = seen_regions(model_for(task), same.filled().seen)
    assert (regions.equal, regions.slots) == (True, int(counts[alike][0]))


def plain_loss(features: Tensor, layer: OutputLayer, labels: Tensor) -> Tensor:
    return F.cross_entropy(layer(features), labels, reduction="sum")


@pytest.mark.slow
@every_task
@every_region
def test_a_gpu_need_not_wait_for_the_cpu(
    tasks: Any, kind: str, regions: RegionKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An update is captured whole, whatever the number of regions of each image."""
    # In place of the output layer's loss: what a CPU computes of it asks, and a GPU has a kernel.
    monkeypatch.setattr("saccade.tasks.joint.losses.summed_cross_entropy", plain_loss)
    task = tasks[kind]
    model = model_for(task, replace(TINY, regions=regions)).train()
    batch = task.batch(0).filled()
    assert not batch.seen.which.rectangular
    with profile(activities=[ProfilerActivity.CPU]) as watched:
        total_loss(task, model, batch).backward()
    asked = {event.key for event in watched.key_averages()}
    assert "aten::index_select" in asked
    assert not asked & ASKING


@pytest.mark.slow
def test_without_slots_somebody_must_count(tasks: Any) -> None:
    """So the test above can fail."""
    task = tasks["answering"]
    model, batch = model_for(task), task.batch(0).filled()
    uncounted = batch._replace(seen=batch.seen._replace(slots=None))
    with profile(activities=[ProfilerActivity.CPU]) as watched:
        total_loss(task, model, uncounted).backward()
    assert {event.key for event in watched.key_averages()} & ASKING
