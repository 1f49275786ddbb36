"""Small data of every form that a recipe may ask for, and recipes made small enough to hurry."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from PIL import Image

from saccade.data import lingua, shapes
from saccade.data.lingua.tasks import TASKS
from saccade.data.shapes import ShapesSettings
from saccade.train.recipe import Recipe, Stage
from saccade.train.recipes import RECIPES

PAIRS = {"train": 1500, "valid": 60, "test": 60}
IMAGES = {"train": 160, "valid": 16, "test": 16}


def parallel(folder: Path) -> Path:
    for split, count in PAIRS.items():
        pairs = lingua.pairs(split, count)
        sides = {"en": [p.source for p in pairs], "fr": [p.target for p in pairs]}
        for language, lines in sides.items():
            (folder / f"{split}.{language}").write_text("\n".join(lines) + "\n")
    return folder


def plain_text(folder: Path) -> Path:
    for split, count in PAIRS.items():
        text = "\n".join(pair.source for pair in lingua.pairs(split, 4 * count))
        (folder / f"{split}.txt").write_text(text + "\n")
    return folder


def photographs(folder: Path) -> Path:
    for split, count in IMAGES.items():
        (folder / split).mkdir()
        rows: list[dict[str, Any]] = []
        for index in range(count):
            scene = shapes.scene(split, index, ShapesSettings(size=128))
            Image.fromarray(shapes.render(scene, 128)).save(folder / split / f"{index}.png")
            rows.append({"file_name": f"{index}.png", "captions": shapes.captions(scene)})
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / split / "metadata.jsonl").write_text(lines)
    return folder


def class_folders(folder: Path) -> Path:
    for split, count in IMAGES.items():
        for index in range(count):
            scene = shapes.scene(split, index)
            home = folder / split / scene.main.kind
            home.mkdir(parents=True, exist_ok=True)
            Image.fromarray(shapes.render(scene, 32)).save(home / f"{index}.png")
    return folder


def boxed_images(folder: Path) -> Path:
    for split, count in IMAGES.items():
        rows: list[dict[str, Any]] = []
        for index in range(count):
            scene = shapes.scene(split, index)
            Image.fromarray(shapes.render(scene, 128)).save(folder / f"{split}-{index}.png")
            objects = [
                {"label": thing.kind, "box": [128 * edge for edge in thing.box.xyxy]}
                for thing in scene.objects
            ]
            rows.append({"image": f"{split}-{index}.png", "objects": objects})
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{split}.jsonl").write_text(lines)
    return folder


def labelled_texts(folder: Path) -> Path:
    for split, count in PAIRS.items():
        rows = [
            {"sentence1": one.texts[0], "sentence2": one.texts[1], "label": one.label}
            for one in TASKS["paraphrase"](split, count)
        ]
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{split}.jsonl").write_text(lines)
    return folder


NEEDS: dict[str, Callable[[Path], Path]] = {
    "transformer-multi30k": parallel,
    "rnn-attention-multi30k": parallel,
    "gpt-shakespeare": plain_text,
    "rnn-lm-ptb": plain_text,
    "bert-glue": labelled_texts,
    "detr-few-images": boxed_images,
    **{name: photographs for name in RECIPES if name.endswith("-photos")},
    **{name: class_folders for name in RECIPES if name.endswith("-32")},
}
# Of built-in data, where a task has them.
SMALLER: dict[str, int] = {"pairs": 3000, "sentences": 3000, "scenes": 600, "count": 600}


def hurried(name: str, folder: Path, *, steps: int) -> Recipe:
    """A recipe with its own model and batches, over less data and few updates."""
    recipe, task = RECIPES[name], vars(RECIPES[name].task)
    fields: dict[str, Any] = {key: size for key, size in SMALLER.items() if key in task}
    if name in NEEDS:
        folder.mkdir()
        fields["data"] = str(NEEDS[name](folder))
        fields |= {"source": "en", "target": "fr"} if "source" in task else {}
    train = replace(
        recipe.train,
        steps=steps,
        epochs=0.0,
        warmup=5,
        warmup_share=0.0,
        validate_every=steps // 2,
        save_every=steps // 3,
        log_every=1,
        device="cuda",
    )
    stages = tuple(_hurried_stage(stage, train.steps) for stage in recipe.stages)
    return replace(recipe, task=replace(recipe.task, **fields), train=train, stages=stages)


def _hurried_stage(stage: Stage, steps: int) -> Stage:
    train = replace(stage.recipe.train, steps=steps, validate_every=steps)
    return replace(stage, recipe=replace(stage.recipe, train=train))
