"""A small ViLBERT, tasks on a few scenes of shapes, and data of a user's."""

import json
from pathlib import Path
from typing import Any

import torch

from saccade.data import shapes
from saccade.models.detection.detr import Detr
from saccade.models.joint.config import VilbertConfig
from saccade.models.joint.vilbert import Vilbert
from saccade.tasks.base import OpenRun, OtherRun, Preparation, no_runs
from saccade.tasks.detection.data import DetectionSettings
from saccade.tasks.detection.detector import ObjectDetector
from saccade.tasks.detection.task import ASSET
from saccade.tasks.joint.answering import Answering, AnsweringSettings
from saccade.tasks.joint.choosing import Choosing, ChoosingSettings
from saccade.tasks.joint.fitting import Fitting, FittingSettings
from saccade.tasks.joint.pretraining import JointPretraining, JointPretrainingSettings
from saccade.tasks.joint.referring import Referring, ReferringSettings
from tests.app.look.detectors import CONFIGS
from tests.data.images_made import in_folder, picture, rows
from tests.models import zoo

TINY = VilbertConfig(
    width=12,
    depth=2,
    heads=2,
    hidden=16,
    longest=64,
    region_width=8,
    region_depth=2,
    region_heads=2,
    region_hidden=12,
    joins=1,
    join_width=8,
    join_heads=2,
    dropout=0.0,
    encoder="resnet-mini",
    stage=1,
    regions="boxes",
    contrast=True,
)
SMALL: dict[str, Any] = {"image": 32, "scenes": 23}
Joint = Answering | Choosing | Fitting | Referring | JointPretraining
TASKS: dict[str, tuple[type[Any], type[Any]]] = {
    "answering": (Answering, AnsweringSettings),
    "fitting": (Fitting, FittingSettings),
    "referring": (Referring, ReferringSettings),
    "choosing": (Choosing, ChoosingSettings),
    "pretraining": (JointPretraining, JointPretrainingSettings),
}
VALID = 9  # scenes to validate on


def prepared(
    kind: str, *, budget: int = 30, seed: int = 0, open_run: OpenRun = no_runs, **settings: Any
) -> Any:
    task, kind_of_settings = TASKS[kind]
    given = settings if "data" in settings else {**SMALL, **settings}
    how = Preparation(budget=budget, seed=seed, open_run=open_run)
    return task(kind_of_settings(**given), how)


def model_for(
    task: Any, config: VilbertConfig = TINY, dtype: torch.dtype = torch.float32
) -> Vilbert:
    model = zoo.build(task.fit(config), dtype)
    assert isinstance(model, Vilbert)
    return model


QUESTIONS = ("what is it?", "is it red?", "how many are there?")


def user_questions(root: Path, images: int = 24, *, boxes: bool = True) -> Path:
    """Noise, with boxes in pixels: one more in each image, up to three."""
    files = {f"{n:02}.png": picture(n, side=40) for n in range(images)}
    said = [
        {"image": name, "question": QUESTIONS[n % 3], "answers": ["cat", "dog"][: 1 + n % 2]}
        | (
            {"boxes": [[4, 8, 20, 36], [0, 0, 8, 8], [20, 20, 40, 40]][: 1 + n % 3]}
            if boxes
            else {}
        )
        for n, name in enumerate(files)
    ]
    return in_folder(root, {**files, "train.jsonl": rows(*said)})


def user_phrases(root: Path, images: int = 24, *, boxes: bool = True) -> Path:
    files = {f"{n:02}.png": picture(n, side=40) for n in range(images)}
    said = [
        {"image": name, "phrase": "the dark corner", "box": [4, 8, 20, 36]}
        | ({"boxes": [[4, 8, 20, 32], [0, 0, 8, 8]]} if boxes else {})
        for name in files
    ]
    return in_folder(root, {**files, "train.jsonl": rows(*said)})


SENTENCES = ("a dog runs", "a cat sleeps on a mat", "two small birds", "nothing")


def user_choices(root: Path, images: int = 24, *, boxes: bool = True) -> Path:
    """Two rows about each image, the one of two sentences, the other of three or four."""
    files = {f"{n:02}.png": picture(n, side=40) for n in range(images)}
    said = [
        {"image": name, "sentences": SENTENCES[:count], "right": n % count}
        | ({"boxes": [[4, 8, 20, 36], [0, 0, 8, 8]]} if boxes else {})
        for n, name in enumerate(files)
        for count in (2, 3 + n % 2)
    ]
    return in_folder(root, {**files, "train.jsonl": rows(*said)})


def user_captions(root: Path, images: int = 24) -> Path:
    files = {f"{n:02}.png": picture(n, side=40) for n in range(images)}
    said = [
        {"file_name": name, "captions": [f"a dog {n % 5}", f"one small dog {n % 3}"]}
        for n, name in enumerate(files)
    ]
    return in_folder(root, {**files, "metadata.jsonl": rows(*said)})


def file_of_boxes(
    root: Path, images: int = 24, *, labels: bool = False, name: str = "boxes.jsonl"
) -> Path:
    """The boxes that `user_questions` has in its rows, in a file of their own."""
    sides = [[4, 8, 20, 36], [0, 0, 8, 8], [20, 20, 40, 40]]
    kinds = ["cat", "dog", ""]
    said = [
        {"image": f"{n:02}.png", "boxes": sides[: 1 + n % 3]}
        | ({"labels": kinds[: 1 + n % 3]} if labels else {})
        for n in range(images)
    ]
    (root / name).write_bytes(rows(*said))
    return root / name


class KnownRuns:
    """A detector of shapes with fresh weights, loud enough to be sure of something, for whoever
    opens it; and how often that was.
    """

    def __init__(
        self, folder: Path, *, kind: str = "plain", loud: float = 30, seed: int = 0
    ) -> None:
        torch.manual_seed(seed)
        self.network = CONFIGS[kind].build()
        assert isinstance(self.network, Detr)
        with torch.no_grad():
            self.network.to_scores.weight.mul_(loud)
        self.folder, self.opened = folder, 0
        self.task = DetectionSettings(image=32)
        folder.mkdir(parents=True)
        (folder / ASSET).write_text(json.dumps({"names": shapes.KINDS}))

    @property
    def detector(self) -> ObjectDetector:
        return ObjectDetector(self.network, shapes.KINDS, self.task)

    def open(self, folder: str, option: str) -> OtherRun:
        assert folder == str(self.folder)
        self.opened += 1
        return OtherRun(self.folder, self.task, self.network)
