"""Finding by meeting: what is found is what a loop over all pairs finds, one by one."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from saccade.models.joint.vilbert import Vilbert
from saccade.tasks.joint import retrieval
from saccade.tasks.joint.batch import SightedTexts, seen_regions
from saccade.tasks.joint.retrieval import alone_states, closer_look, recalls
from tests.tasks.joint.made import TINY, VALID, model_for, prepared

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def task() -> Any:
    return prepared("fitting")


@pytest.fixture(scope="module")
def model(task: Any) -> Vilbert:
    return model_for(task)


@pytest.fixture(scope="module")
def z(task: Any, model: Vilbert) -> Tensor:
    return one_by_one(model, task._valid, VALID)


@pytest.fixture(params=[2, 64])
def read_at_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Images; and few pairs at a time, too."""
    monkeypatch.setattr(retrieval, "READ", request.param)
    monkeypatch.setattr(retrieval, "MET", 7)
    return request.param


@torch.no_grad()
def one_by_one(model: Vilbert, data: SightedTexts, images: int) -> Tensor:
    """Every text with every image, each in a pass of its own."""
    texts = int(data.first[images])
    found = torch.zeros(texts, images)
    for text in range(texts):
        for image in range(images):
            batch = data.batch(torch.tensor([image]), torch.tensor([text]), torch.tensor([0]))
            regions = seen_regions(model, batch.seen)
            found[text, image] = model.fits(model(batch.text, batch.types, regions, batch.of))[0]
    return found


def recall(z: Tensor, right: Tensor, k: int) -> float:
    """Of all who ask and have something to find: whether it is among their first so many."""
    hits, asking = 0, 0
    for scores, mine in zip(z.tolist(), right.tolist()):
        if any(mine):
            asking += 1
            best = sorted(range(len(scores)), key=lambda i: -scores[i])[:k]
            hits += any(mine[i] for i in best)
    return hits / asking


def by_hand(z: Tensor, data: SightedTexts, images: int) -> dict[str, dict[int, float]]:
    own = data.image_of[: len(z), None] == torch.arange(images)
    return {
        "image": {k: recall(z, own, k) for k in (1, 5, 10)},
        "sentence": {k: recall(z.mT, own.mT, k) for k in (1, 5, 10)},
    }


@pytest.mark.slow
@pytest.mark.parametrize("shortlist", [0, 10_000])
def test_recalls_are_those_of_a_loop_over_all_pairs(
    task: Any, model: Vilbert, z: Tensor, read_at_once: int, shortlist: int
) -> None:
    data = task._valid
    alone, of = alone_states(model, data, torch.arange(VALID), CPU)
    likely = -(1 + (-z).exp()).log()
    if shortlist:  # then they were compared before they met, and both count
        with torch.no_grad():
            likely = likely + model.compared(alone)
    found = recalls(model, data, torch.arange(VALID), CPU, shortlist=shortlist)
    assert found == by_hand(likely, data, VALID)
    assert torch.equal(of, data.image_of)
    texts, images = torch.meshgrid(torch.arange(len(z)), torch.arange(VALID), indexing="ij")
    found = closer_look(model, alone, texts.flatten(), images.flatten()).view(z.shape)
    torch.testing.assert_close(found, z, atol=1e-4, rtol=1e-4)


@pytest.mark.slow
def test_cells_are_found_just_so(task: Any, read_at_once: int) -> None:
    model = model_for(task, replace(TINY, regions="cells"))
    z = one_by_one(model, task._valid, 3)
    found = recalls(model, task._valid, torch.arange(3), CPU, shortlist=0)
    assert found == by_hand(z, task._valid, 3)


def test_a_shortlist_keeps_those_that_seem_alike(task: Any, model: Vilbert, z: Tensor) -> None:
    data, images = task._valid, torch.arange(VALID)
    alone, _ = alone_states(model, data, images, CPU)
    with torch.no_grad():
        alike = model.compared(alone)
    short = torch.zeros_like(alike, dtype=torch.bool)
    short.scatter_(1, alike.topk(3, dim=1).indices, value=True)
    found = recalls(model, data, images, CPU, shortlist=3)["image"]
    kept = (z.sigmoid().log() + alike).masked_fill(~short, -torch.inf)
    own = data.image_of[:, None] == images
    hits = [bool(own[text, int(kept[text].argmax())]) for text in range(len(z))]
    assert found[1] == pytest.approx(sum(hits) / len(hits))
    assert found[10] == pytest.approx(float((own & short).any(dim=1).float().mean()))


def test_batches_whose_images_have_other_numbers_of_regions_are_put_together(
    task: Any, model: Vilbert, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each by itself is even; all together are not."""
    monkeypatch.setattr(retrieval, "READ", 1)
    counts = task._valid.sighted.counts
    assert len(counts.unique()) > 1
    alone, _ = alone_states(model, task._valid, torch.arange(VALID), CPU)
    assert not alone.equal
    assert alone.region_starts.diff().tolist() == (counts + 1).tolist()
    same = (counts == counts.mode().values).nonzero()[:, 0]
    even, _ = alone_states(model, task._valid, same, CPU)
    assert (even.equal, even.slots) == (True, int(counts[same[0]]) + 1)


@pytest.mark.slow
@pytest.mark.parametrize("lost", [0, VALID - 1])
def test_an_image_of_which_nothing_is_said_can_be_found_and_finds_nothing(
    task: Any, model: Vilbert, z: Tensor, lost: int, read_at_once: int
) -> None:
    whole = task._valid
    kept = whole.image_of != lost
    first = torch.cat(
        [torch.zeros(1, dtype=torch.long), whole.image_of[kept].bincount(minlength=VALID).cumsum(0)]
    )
    data = SightedTexts(whole.sighted, whole.texts.where(kept), first, whole.sizes[kept])
    found = recalls(model, data, torch.arange(VALID), CPU, shortlist=0)
    assert found == by_hand(z[kept], data, VALID)


def test_validation_searches_so_many_images(model: Vilbert, z: Tensor) -> None:
    few = prepared("fitting", validated=4, shortlist=0)
    found = few.validate(model, CPU)
    expected = by_hand(z[: int(few._valid.first[4]), :4], few._valid, 4)
    assert found["image R@1"] == expected["image"][1]
    assert found["sentence R@5"] == expected["sentence"][5]
    assert found["R@1"] == (expected["image"][1] + expected["sentence"][1]) / 2
