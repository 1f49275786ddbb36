"""An image encoder that stays as it is looks once: the same losses, and nobody looks again."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from saccade.models.joint.config import RegionKind
from saccade.models.joint.vilbert import Vilbert
from saccade.tasks.base import SeesOnce, silent
from saccade.tasks.joint.seen_once import see_once
from tests.tasks import total_loss
from tests.tasks.joint.made import TASKS, TINY, model_for, prepared, user_captions

CPU = torch.device("cpu")
every_task = pytest.mark.parametrize("kind", TASKS)
every_region = pytest.mark.parametrize("regions", ["boxes", "cells"])


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SACCADE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def tasks() -> dict[str, Any]:
    return {kind: prepared(kind) for kind in TASKS}


@pytest.fixture
def blank(tasks: dict[str, Any]) -> dict[str, Any]:
    """Tasks of which nothing was seen before."""
    for task in tasks.values():
        task._train, task._valid = (replace(x, seen=None) for x in (task._train, task._valid))
    return tasks


def frozen(task: Any, regions: RegionKind = "boxes", **more: Any) -> Vilbert:
    """As it is trained."""
    return model_for(task, replace(TINY, regions=regions, frozen=True, bins=2, **more)).train()


class Looks:
    """How often a model's encoder looked at a batch of images."""

    def __init__(self, model: Vilbert) -> None:
        self.times = 0
        model.image_encoder.grid.register_forward_hook(self._count)

    def _count(self, *_: object) -> None:
        self.times += 1


def losses(task: Any, model: Vilbert, batch: Any) -> dict[str, float]:
    torch.manual_seed(5)
    return {name: loss.item() for name, loss in task.losses(model, batch).items()}


@pytest.mark.slow
@every_task
@every_region
def test_losses_and_figures_are_those_of_looking_each_time(
    blank: dict[str, Any], kind: str, regions: RegionKind
) -> None:
    task = blank[kind]
    model = frozen(task, regions)
    each = [losses(task, model, task.batch(position)) for position in range(3)]
    filled = losses(task, model, task.batch(0).filled())
    figures = task.validate(model.eval(), CPU)
    (line,) = task.see_once(model.train(), CPU, silent)
    assert line == "the image encoder stays as it is, and has looked at 32 images once"
    looks = Looks(model)
    for position, expected in enumerate(each):
        batch = task.batch(position)
        assert batch.seen.images is None
        found = losses(task, model, batch)
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-6)
        assert all(map(bool, expected.values()))
    assert losses(task, model, task.batch(0).filled()) == pytest.approx(filled, rel=1e-6, abs=1e-6)
    assert task.validate(model.eval(), CPU) == pytest.approx(figures, rel=1e-5, abs=1e-6)
    assert looks.times == 0


@every_region
def test_gradients_are_the_same(blank: dict[str, Any], regions: RegionKind) -> None:
    task = blank["pretraining"]
    model = frozen(task, regions)
    found = list[list[torch.Tensor | None]]()
    for again in (False, True):
        if again:
            task.see_once(model, CPU, silent)
        torch.manual_seed(5)
        total_loss(task, model, task.batch(1)).backward()
        found.append([p.grad for p in model.parameters()])
        model.zero_grad()
    for one, other in zip(*found):
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


@every_region
def test_what_was_seen_is_kept_until_something_is_another(
    blank: dict[str, Any], regions: RegionKind, cache: Path
) -> None:
    task = blank["fitting"]
    sighted, model = task._train.sighted, frozen(task, regions)
    looks, told = Looks(model), list[tuple[int, int]]()
    first = see_once(model, sighted, CPU, lambda done, total: told.append((done, total)))
    assert (looks.times, told) == (1, [(23, 23)])
    images = torch.tensor([4, 0, 22])
    before = first.features(images)
    again = see_once(model, sighted, CPU, silent)
    assert looks.times == 1
    assert torch.equal(before, again.features(images))
    others = [(frozen(task, regions, stage=2), sighted)]
    if regions == "boxes":
        others.append((model, replace(sighted, boxes=sighted.boxes * 0.9)))
    others.append((model, replace(sighted, images=sighted.images.flip(0))))
    with torch.no_grad():
        changed = frozen(task, regions)
        next(changed.image_encoder.parameters()).mul_(2)
    others.append((changed, sighted))
    for other, data in others:
        counts = Looks(other)
        see_once(other, data, CPU, silent)
        assert counts.times == 1
    with torch.autocast("cpu", torch.bfloat16):
        counts = Looks(model)
        see_once(model, sighted, CPU, silent)
    assert counts.times == 1
    for path in cache.glob("features-*/features.rows"):
        path.rename(path.with_suffix(".old"))  # others may have it mapped
        path.write_bytes(b"")
    anew = see_once(model, sighted, CPU, silent)
    assert torch.equal(before, anew.features(images))


def test_who_still_learns_or_varies_looks_each_time(blank: dict[str, Any], tmp_path: Path) -> None:
    task = blank["answering"]
    knows: object = task
    assert isinstance(knows, SeesOnce)
    assert task.see_once(model_for(task).train(), CPU, silent) == []
    model = frozen(task)
    for part in model.modules():
        nn.Module.train(part)
    assert task.see_once(model, CPU, silent) == []  # its batch norms gather statistics
    assert task.batch(0).seen.images is not None
    data = str(user_captions(tmp_path / "data"))
    varied = prepared("fitting", data=data, image=32, augment="flip")
    assert varied.see_once(frozen(varied, "cells"), CPU, silent) == []


def test_where_there_is_no_room_it_looks_each_time_and_says_so(
    blank: dict[str, Any], cache: Path
) -> None:
    task = blank["answering"]
    model = frozen(task)
    cache.write_text("a file, not a folder")
    (line,) = task.see_once(model, CPU, silent)
    assert line.startswith("the image encoder looks at every image again and again, for what it")
    assert str(cache) in line
    assert losses(task, model, task.batch(0))


def test_a_frozen_encoder_goes_on_with_the_statistics_it_has(blank: dict[str, Any]) -> None:
    task = blank["fitting"]
    model = frozen(task)
    before = {name: x.clone() for name, x in model.image_encoder.state_dict().items()}
    losses(task, model, task.batch(0))
    assert all(torch.equal(x, before[name]) for name, x in model.image_encoder.state_dict().items())
    assert model.image_encoder.fixed
