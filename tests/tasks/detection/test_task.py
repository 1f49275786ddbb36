"""Every image once an epoch, with its objects; figures of what was held out."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from saccade.data import shapes
from saccade.data.boxes import to_corners
from saccade.errors import ConfigError, DataError
from saccade.models.detection.config import DetrConfig
from saccade.models.detection.detr import Detections, Detr
from saccade.tasks.base import Preparation
from saccade.tasks.detection import data as detected
from saccade.tasks.detection.data import DetectionSettings, read_split
from saccade.tasks.detection.task import Detection, best_objects, find_all
from saccade.tasks.detection.vary import VaryBoxes
from tests.tasks import total_loss

SMALL = DetectionSettings(scenes=23, image=64)
TINY = DetrConfig(
    encoder="resnet-nano",
    stage=3,
    queries=8,
    width=16,
    encoder_depth=1,
    depth=2,
    heads=2,
    hidden=16,
    dropout=0.0,
)
SINCE = {"no_object": False, "anchored": True, "proposed": True, "box_bias": True, "groups": 2}


def task(settings: DetectionSettings = SMALL, *, images: int = 6, seed: int = 0) -> Detection:
    return Detection(settings, Preparation(budget=images, seed=seed))


@pytest.fixture(scope="module", autouse=True)
def few_held_back() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(detected, "HELD_BACK", 12)
        yield


def built(task: Detection, **more: Any) -> Detr:
    torch.manual_seed(0)
    model = task.fit(replace(TINY, **more)).build()
    assert isinstance(model, Detr)
    return model


@pytest.mark.slow
def test_an_epoch_has_every_image_once_with_its_objects() -> None:
    plain = task(replace(SMALL, vary=VaryBoxes(flip=False, cut=0.0)))
    assert plain.batches_per_epoch == 4
    for epoch in range(2):
        batches = [plain.batch(4 * epoch + number) for number in range(4)]
        assert sum(batch.items for batch in batches) == 23
        assert sum(batch.tokens for batch in batches) == sum(
            len(shapes.scene("train", index).objects) for index in range(23)
        )
        images = torch.cat([batch.images for batch in batches])
        drawn = read_split(plain.settings, "train").images[torch.arange(23)]
        key = [image.numpy().tobytes() for image in images]
        assert sorted(key) == sorted(image.numpy().tobytes() for image in drawn)
    batch = plain.batch(0)
    which = next(
        index
        for index in range(23)
        if torch.equal(
            read_split(plain.settings, "train").images[torch.tensor([index])][0], batch.images[0]
        )
    )
    scene = shapes.scene("train", which)
    boxes = to_corners(torch.from_numpy(shapes.visible_boxes(scene, 64)))
    count = len(scene.objects)
    torch.testing.assert_close(to_corners(batch.boxes[0, :count]), boxes)
    kinds = [shapes.KINDS[label] for label in batch.labels[0, :count]]
    assert kinds == [thing.kind for thing in scene.objects]
    assert batch.there[0].tolist() == [place < count for place in range(batch.there.shape[1])]


@pytest.mark.parametrize("more", [{}, SINCE], ids=["published", "since"])
def test_shards_sum_to_the_whole(more: dict[str, Any]) -> None:
    """Processes share a batch, and the sums of their losses are those of one process.

    But for the published cross-entropy, which is a mean over the queries of each process.
    """
    whole = task()
    frozen = built(whole, frozen_norms=True, **more)
    losses = whole.losses(frozen, whole.batch(1))
    batches = [whole.batch(1, shard=n, shards=2) for n in range(2)]
    assert sum(batch.tokens for batch in batches) == whole.batch(1).tokens
    parts = [whole.losses(frozen, batch) for batch in batches]
    for name in ("box", "overlap") if not more else losses:
        torch.testing.assert_close(parts[0][name] + parts[1][name], losses[name])


@pytest.mark.slow
@pytest.mark.parametrize("more", [{}, SINCE], ids=["published", "since"])
def test_a_few_updates_learn(more: dict[str, Any]) -> None:
    some = task(replace(SMALL, vary=VaryBoxes(flip=False, cut=0.0)), images=23)
    model = built(some, **more)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    batch, found = some.batch(0), list[float]()
    for _ in range(25):
        optimizer.zero_grad()
        loss = total_loss(some, model, batch)
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    assert found[-1] < 0.8 * found[0]


def test_validation_scores_what_is_found() -> None:
    some = task()
    model = built(some).eval()
    figures = some.validate(model, torch.device("cpu"))
    assert figures.keys() == {"AP", "AP50", "AP75"}
    assert all(0 <= value <= 1 for value in figures.values())


class Knows(torch.nn.Module):
    """It says what is there; it has been told."""

    def __init__(self, split: str) -> None:
        super().__init__()
        self.split, self.next = read_split(SMALL, split), 0

    def forward(self, images: torch.Tensor, inside: Any = None) -> Detections:
        from saccade.data.boxes import to_centres

        scores = torch.full((1, len(images), 8, len(shapes.KINDS)), -9.0)
        boxes = torch.full((1, len(images), 8, 4), 0.1)
        for row in range(len(images)):
            objects = self.split.objects[self.next]
            count = len(objects.labels)
            boxes[0, row, :count] = to_centres(objects.boxes)
            scores[0, row, torch.arange(count), objects.labels] = 9.0
            self.next += 1
        return Detections(scores, boxes, (1.0,))


def test_whoever_knows_all_scores_one() -> None:
    some: Any = task()
    assert some.validate(Knows("valid"), torch.device("cpu"))["AP"] == pytest.approx(1.0)


def test_the_likeliest_come_first_and_queries_are_told() -> None:
    z = torch.tensor([[[[0.0, 2.0], [1.0, -3.0]]]])  # one pass, one image, two queries
    boxes = torch.tensor([[[[0.5, 0.5, 0.2, 0.2], [0.1, 0.1, 0.4, 0.4]]]])
    (best,) = best_objects(Detections(z, boxes, (1.0,)), classes=2)
    assert best.queries.tolist() == [0, 1, 0, 1]
    assert best.objects.labels.tolist() == [1, 0, 0, 1]
    torch.testing.assert_close(best.objects.scores[0], torch.tensor(2.0).sigmoid())
    torch.testing.assert_close(best.objects.boxes[1], torch.tensor([0.0, 0.0, 0.3, 0.3]))
    (alone,) = best_objects(Detections(z, boxes, (1.0,)), classes=1)  # the last class is: nothing
    assert alone.objects.labels.tolist() == [0, 0]
    torch.testing.assert_close(alone.objects.scores, z[0, 0].softmax(dim=-1)[[1, 0], 0])


def made(folder: Path, rows: list[dict[str, Any]], *, split: str = "train") -> Path:
    folder.mkdir(exist_ok=True)
    for row in rows:
        Image.new("RGB", (40, 30), "white").save(folder / row["image"])
    (folder / f"{split}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return folder


def row(name: str, *objects: tuple[str, list[float]]) -> dict[str, Any]:
    return {"image": name, "objects": [{"label": a, "box": b} for a, b in objects]}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SACCADE_CACHE", str(tmp_path / "cache"))


def test_data_of_ones_own_are_held_out_and_images_without_objects_count(tmp_path: Path) -> None:
    rows = [row(f"{n}.png", ("cat", [4, 3, 20, 15])) for n in range(9)] + [row("none.png")]
    data = made(tmp_path / "data", rows)
    some = task(replace(SMALL, data=str(data), held_out=0.2), images=3)
    assert some.classes == ("cat",)
    assert "2 held out for validation" in some.report[1]
    model = built(some, **SINCE)
    for position in range(some.batches_per_epoch):
        assert total_loss(some, model, some.batch(position)).isfinite()
    found = list(
        find_all(model.eval(), some.vary, read_split(some.settings, "train"), torch.device("cpu"))
    )
    assert len(found) == 8


def test_a_batch_without_objects_trains(tmp_path: Path) -> None:
    rows = [row("a.png", ("cat", [4, 3, 20, 15])), *(row(f"{n}.png") for n in range(12))]
    made(tmp_path / "data", rows[:1], split="valid")
    some = task(replace(SMALL, data=str(made(tmp_path / "data", rows))), images=1)
    model = built(some)
    empty = next(b for b in map(some.batch, range(13)) if not b.there.any())
    assert empty.tokens == 1
    loss = total_loss(some, model, empty)
    loss.backward()
    assert loss > 0
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


def test_what_cannot_be_learnt_is_refused(tmp_path: Path) -> None:
    strange = made(tmp_path / "a", [row("a.png", ("cat", [4, 3, 20, 15]))])
    made(strange, [row("b.png", ("dog", [4, 3, 20, 15]))], split="valid")
    with pytest.raises(DataError, match="'dog' is not among the 1 classes of the training data"):
        task(replace(SMALL, data=str(strange)))
    nothing = made(tmp_path / "b", [row(f"{n}.png") for n in range(20)])
    with pytest.raises(DataError, match="no object in any image"):
        task(replace(SMALL, data=str(nothing)))
    crowd = made(
        tmp_path / "c", [row(f"{n}.png", *[("cat", [4, 3, 20, 15])] * 9) for n in range(20)]
    )
    with pytest.raises(ConfigError, match=r"9 objects, and queries=8: .* --model.queries, to 18"):
        built(task(replace(SMALL, data=str(crowd))))
    with pytest.raises(ConfigError, match="image=50 must be a multiple of 32"):
        DetectionSettings(image=50)


def test_the_fingerprint_changes_with_images_boxes_and_names(tmp_path: Path) -> None:
    def fingerprint(name: str, label: str, box: list[float]) -> str:
        rows = [row(f"{n}.png", (label, box)) for n in range(20)]
        return task(replace(SMALL, data=str(made(tmp_path / name, rows)))).fingerprint()

    first = fingerprint("a", "cat", [4, 3, 20, 15])
    assert fingerprint("b", "cat", [4, 3, 20, 15]) == first
    assert fingerprint("c", "dog", [4, 3, 20, 15]) != first
    assert fingerprint("d", "cat", [4, 3, 20, 16]) != first
