"""Runs of joint models with fresh weights, and images to ask them about."""

import json
from pathlib import Path
from typing import Any

import torch
from PIL import Image

from saccade.data import shapes
from saccade.models.joint.config import RegionKind
from saccade.tasks.joint.answering import ASSET, answers_asset
from saccade.tasks.tokenizer import tokenizer_asset
from saccade.train.recipe import Recipe
from saccade.train.settings import TrainSettings
from saccade.train.storage.folder import RunFolder
from tests.tasks.joint.pair_tools import (
    ANSWERS,
    HEADS,
    joint_config,
    joint_settings,
    loud,
    vocabulary,
)

BOXES = [[4, 4, 30, 30], [20, 10, 60, 40], [1, 30, 20, 44]]


def joint_run(
    folder: Path, kind: str, regions: RegionKind = "boxes", *, seed: int = 0, **more: Any
) -> Path:
    """A run of its own folder."""
    folder.mkdir(parents=True)
    torch.manual_seed(seed)
    model, task = joint_config(kind, regions), joint_settings(kind, **more)
    recipe = Recipe(
        about="tiny", system="", lecture="", model=model, task=task, train=TrainSettings()
    )
    run = RunFolder(folder)
    run.save_recipe(recipe)
    answers = {ASSET: answers_asset(ANSWERS)} if kind == "answering" else {}
    run.save_assets({**tokenizer_asset(vocabulary()), **answers})
    run.save_weights(loud(model.build(), seed))
    return folder


def joint_runs(folder: Path) -> dict[str, Path]:
    """One of each kind, and one that looks at cells."""
    made = {kind: joint_run(folder / kind, kind, seed=n) for n, kind in enumerate(HEADS)}
    return {**made, "cells": joint_run(folder / "cells", "answering", "cells", seed=9)}


def write_images(folder: Path) -> Path:
    """Some scenes, wide and high, and a file that says where their regions are."""
    folder.mkdir()
    lines = list[str]()
    for number, size in enumerate(((64, 48), (64, 48), (48, 64))):
        scene = Image.fromarray(shapes.render(shapes.scene("test", number), 64)).resize(size)
        scene.save(folder / f"{number}.png")
        some = [[left, top, min(right, size[0]), bottom] for left, top, right, bottom in BOXES]
        lines.append(json.dumps({"image": f"{number}.png", "boxes": some[: 3 - number]}))
    (folder / "boxes.jsonl").write_text("\n".join(lines) + "\n")
    return folder
