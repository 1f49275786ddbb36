"""Every image once an epoch, losses as their formulas say, figures of what was held out."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.data import shapes
from saccade.data.images.mixing import Mixing
from saccade.errors import ConfigError, DataError
from saccade.models.vision.vit import VitConfig
from saccade.tasks.base import Preparation
from saccade.tasks.classification import data as classified
from saccade.tasks.classification.data import ClassificationSettings, read_split
from saccade.tasks.classification.task import Classification, read_classes_asset
from saccade.tasks.classification.vary import VarySettings
from tests.data.images_made import picture
from tests.tasks import total_loss

SMALL = ClassificationSettings(scenes=23, image=32)
VARIED = VarySettings(
    crop="shift", flip=True, policy="auto", erase=0.5, mixup=1.0, cutmix=1.0, mixed=0.5
)


def task(settings: ClassificationSettings = SMALL, *, images: int = 6, seed: int = 0):  # noqa: ANN201
    return Classification(settings, Preparation(budget=images, seed=seed))


@pytest.fixture(scope="module", autouse=True)
def few_held_back() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(classified, "HELD_BACK", 12)
        yield


class Bright(nn.Module):
    """Scores are what the mean colour times fixed weights gives."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.readout = nn.Linear(3, classes, bias=False)
        nn.init.normal_(self.readout.weight, generator=torch.Generator().manual_seed(0))

    def forward(self, images: Tensor) -> Tensor:
        return self.readout(images.mean(dim=(2, 3)))


def class_folders(folder: Path, counts: dict[str, int]) -> Path:
    for label, count in counts.items():
        (folder / label).mkdir(parents=True)
        for number in range(count):
            (folder / label / f"{number:03}.png").write_bytes(picture(number + hash(label) % 50))
    return folder


def test_an_epoch_has_every_image_once_in_batches_of_one_size() -> None:
    small = task()
    assert small.batches_per_epoch == 4
    sizes, seen = [], Counter[bytes]()
    for position in range(4):
        batch = small.batch(position)
        sizes.append(len(batch.images))
        seen.update(image.numpy().tobytes() for image in batch.images)
    assert max(sizes) - min(sizes) <= 1
    assert sum(sizes) == 23
    assert set(seen.values()) == {1}
    again = small.batch(4)
    assert not torch.equal(again.images, small.batch(0).images)  # another order


def test_shapes_are_told_apart_by_their_largest_object() -> None:
    read = read_split(SMALL, "test")
    for scene, label in zip(read.scenes, read.labels.tolist()):
        largest = max(scene.objects, key=lambda thing: thing.scale)
        assert read.classes.names[label] == largest.kind
    assert read.classes.names == shapes.KINDS


def test_copies_of_an_image_lie_in_one_batch_and_vary_each() -> None:
    repeated = task(replace(SMALL, vary=replace(VARIED, mixed=0.0, repeats=3)), images=6)
    batch = repeated.batch(0)
    found = Counter(image.numpy().tobytes() for image in batch.images)
    assert sorted(found.values()) == [3, 3]
    shown = repeated.vary.shown(batch.images, batch.drawn).images
    assert all(not torch.equal(shown[0], other) for other in shown[1:3])
    assert repeated.batches_per_epoch == task(images=6).batches_per_epoch


def test_what_is_random_belongs_to_the_example_and_the_epoch() -> None:
    varied = replace(SMALL, vary=VARIED)
    few, many = task(varied, images=4), task(varied, images=12)

    def by_image(one: Classification) -> dict[bytes, bytes]:
        return {
            image.numpy().tobytes(): batch.drawn[i].numpy().tobytes()
            for position in range(one.batches_per_epoch)
            for batch in [one.batch(position)]
            for i, image in enumerate(batch.images)
        }

    assert by_image(few) == by_image(many)
    alone = task(replace(varied, vary=replace(VARIED, mixed=0.0)), images=4).batch(0).drawn
    assert few.batch(0).drawn.shape[1] == alone.shape[1] + Mixing.draws
    later = few.batch(few.batches_per_epoch)
    assert not torch.equal(later.drawn, few.batch(0).drawn)


def test_cross_entropy_is_that_of_torch_and_smoothing_too() -> None:
    for smoothing in (0.0, 0.1):
        small = task(replace(SMALL, label_smoothing=smoothing))
        batch, model = small.batch(0), Bright(8)
        scores = model(small.vary.plain(batch.images))
        expected = F.cross_entropy(scores, batch.labels, reduction="sum", label_smoothing=smoothing)
        assert total_loss(small, model, batch).item() == pytest.approx(expected.item(), 1e-5)


def test_mixed_images_have_mixed_classes() -> None:
    mixing = VarySettings(mixup=1.0)
    small = task(replace(SMALL, vary=mixing))
    batch, model = small.batch(0), Bright(8)
    shown = small.vary.shown(batch.images, batch.drawn)
    logs, own = model(shown.images).log_softmax(dim=1), shown.own
    mine = F.nll_loss(logs, batch.labels, reduction="none")
    theirs = F.nll_loss(logs, batch.labels.flip(0), reduction="none")
    expected = (own * mine + (1 - own) * theirs).sum()
    assert total_loss(small, model, batch).item() == pytest.approx(expected.item(), 1e-5)


def test_the_binary_loss_takes_every_class_that_is_there_at_all() -> None:
    small = task(replace(SMALL, loss="binary", vary=VarySettings(mixup=1.0)))
    batch, model = small.batch(0), Bright(8)
    shown = small.vary.shown(batch.images, batch.drawn)
    there = F.one_hot(batch.labels, 8)
    there = ((there + there.flip(0)) > 0).float()
    each = F.binary_cross_entropy_with_logits(model(shown.images), there, reduction="none")
    expected = each.mean(dim=1).sum().item()
    assert total_loss(small, model, batch).item() == pytest.approx(expected, 1e-5)


COMPILED = """
import torch
from torch import nn
from saccade.models.vision.vit import VitConfig
from saccade.tasks.base import Preparation
from saccade.tasks.classification.data import ClassificationSettings
from saccade.tasks.classification.task import Classification
from saccade.tasks.classification.vary import VarySettings
from saccade.train.devices.distributed import World
from saccade.train.fit import Trainer
from saccade.train.settings import TrainSettings

def lightly(module, **how):
    module._compiled_call_impl = torch.compile(module._call_impl, backend="eager")

nn.Module.compile = lightly
vary = VarySettings(crop="shift", flip=True, policy="auto", erase=0.5, mixup=1.0, cutmix=1.0)
losses = []
for compiled in (False, True):
    torch.manual_seed(0)
    settings = ClassificationSettings(scenes=23, image=32, vary=vary)
    task = Classification(settings, Preparation(budget=6, seed=0))
    model = VitConfig(image=32, patch=16, width=8, depth=1, heads=2, classes=8).build()
    how = TrainSettings(learning_rate=1e-3, warmup=0, batches="mixed", compile=compiled)
    trainer = Trainer(model, task, how, World(0, 1, torch.device("cpu")))
    losses.append(torch.tensor([trainer.update().loss for _ in range(2)]))
torch.testing.assert_close(*losses)
"""


@pytest.mark.slow
def test_a_compiled_update_is_the_plain_one_whatever_the_images_go_through() -> None:
    # In a process of its own: here, signatures are checked, which cannot be traced.
    subprocess.run([sys.executable, "-c", COMPILED], check=True)


def test_shards_share_a_batch_and_one_without_rows_counts_nothing() -> None:
    small = task(images=2)
    whole = small.batch(0)
    parts = [small.batch(0, shard=i, shards=3) for i in range(3)]
    assert [part.tokens for part in parts] == [1, 1, 0]
    model = Bright(8)
    losses = [total_loss(small, model, part).item() for part in parts]
    assert losses[2] == 0
    assert sum(losses) == pytest.approx(total_loss(small, model, whole).item(), 1e-5)


def test_validation_is_of_the_whole_split() -> None:
    small = task()
    figures = small.validate(Bright(8), torch.device("cpu"))
    assert set(figures) == {"top1", "top5", "loss"}
    read = read_split(SMALL, "valid")
    scores = Bright(8)(small.vary.plain(read.images[torch.arange(12)]))
    right = (scores.argmax(dim=1) == read.labels).float().mean().item()
    assert figures["top1"] == pytest.approx(right)
    assert small.deciding.better(0.5, than=0.4)


def test_each_class_gives_its_share_for_validation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SACCADE_CACHE", str(tmp_path / "cache"))
    data = class_folders(tmp_path / "data", {"ant": 40, "bee": 20, "cat": 4})
    settings = ClassificationSettings(data=str(data), image=16, held_out=0.1)
    valid, train = (read_split(settings, split) for split in ("valid", "train"))
    assert valid.labels.bincount(minlength=3).tolist() == [4, 2, 0]
    assert train.labels.bincount(minlength=3).tolist() == [36, 18, 4]
    assert {row.image.name for row in valid.rows}.isdisjoint(row.image.name for row in train.rows)
    learnt = task(settings)
    assert read_classes_asset(learnt.assets()["classes.json"]).names == ("ant", "bee", "cat")
    fitted = learnt.fit(VitConfig(image=64, patch=8))
    assert (fitted.classes, fitted.image) == (3, 16)  # type: ignore[attr-defined]


def test_a_share_is_of_each_class_and_lies_in_a_larger_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SACCADE_CACHE", str(tmp_path / "cache"))
    data = class_folders(tmp_path / "data", {"ant": 27, "bee": 23, "cat": 4})
    settings = ClassificationSettings(data=str(data), image=16, held_out=0.1)

    def rows(share: float, split: str) -> dict[Path, str]:
        read = read_split(replace(settings, share=share), split)
        assert len(read) == len(read.images) == len(read.rows)
        return {Path(str(row.image)): row.extras["labels"][0] for row in read.rows}

    # 25, 21 and 4 are left to learn from; 0.28 · 25 is a little more than 7 in floating point.
    for share, counts in {
        1.0: (25, 21, 4),
        0.5: (13, 11, 2),
        0.28: (7, 6, 2),
        0.1: (3, 3, 1),
        1e-6: (1, 1, 1),
    }.items():
        found = Counter(rows(share, "train").values())
        assert tuple(found[name] for name in ("ant", "bee", "cat")) == counts
        assert rows(share, "valid") == rows(1.0, "valid")
    assert rows(0.1, "train").keys() < rows(0.3, "train").keys() < rows(1.0, "train").keys()
    prints = {task(replace(settings, share=share)).fingerprint() for share in (1.0, 0.5, 0.1)}
    assert len(prints) == 3
    some = replace(settings, share=0.1)
    assert task(some, seed=1).fingerprint() == task(some, seed=2).fingerprint()
    assert some.data_name == "10% of data"
    assert "7, 10% of each class, 50 of " in task(some).report[0]


@pytest.mark.parametrize(("share", "scenes"), [(0.1, 30), (0.3, 30), (0.25, 23)])
def test_a_share_of_shapes_is_no_more_than_asked_for(share: float, scenes: int) -> None:
    whole = read_split(replace(SMALL, scenes=scenes), "train")
    part = read_split(replace(SMALL, scenes=scenes, share=share), "train")
    for has, of in zip(part.labels.bincount(minlength=8), whole.labels.bincount(minlength=8)):
        assert share * of <= has < share * of + 1
    assert [scene.label for scene in part.scenes] == part.labels.tolist()


@pytest.mark.parametrize("share", [0.0, -1.0, 1.5, float("nan")])
def test_a_share_that_cannot_be_is_refused(share: float) -> None:
    with pytest.raises(ConfigError, match=r"share=.* must be above 0 and at most 1"):
        ClassificationSettings(share=share)


def test_a_changed_image_or_label_changes_the_fingerprint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SACCADE_CACHE", str(tmp_path / "cache"))
    data = class_folders(tmp_path / "data", {"ant": 25, "bee": 25})
    settings = ClassificationSettings(data=str(data), image=16)
    first = task(settings).fingerprint()
    assert task(settings).fingerprint() == first
    (data / "ant" / "003.png").write_bytes(picture(77))
    second = task(settings).fingerprint()
    (data / "ant" / "003.png").rename(data / "bee" / "z.png")
    assert len({first, second, task(settings).fingerprint()}) == 3


def test_what_cannot_be_learnt_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SACCADE_CACHE", str(tmp_path / "cache"))
    data = class_folders(tmp_path / "one", {"ant": 25})
    with pytest.raises(DataError, match="single class"):
        task(ClassificationSettings(data=str(data), image=16))
    data = class_folders(tmp_path / "few", {"ant": 2, "bee": 3})
    with pytest.raises(DataError, match="too few to hold some out"):
        task(ClassificationSettings(data=str(data), image=16))
    with pytest.raises(ConfigError, match="keep=16 is below image=32"):
        ClassificationSettings(image=32, keep=16)
    with pytest.raises(ConfigError, match="patch=8 does not tile image=36"):
        ClassificationSettings(image=36).check(VitConfig(image=64, patch=8))
    ClassificationSettings(image=28).check(VitConfig(image=64, patch=7))  # the data's size counts
    with pytest.raises(DataError, match="no split 'extra'"):
        read_split(SMALL, "extra")
