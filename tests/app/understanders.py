"""Tiny runs that understand texts: one for each kind of label, and one of GLUE's."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from saccade.tasks.understanding.data import UnderstandingSettings
from saccade.train.recipe import Recipe
from saccade.train.recipes import RECIPES
from saccade.train.run import train
from tests.app.conftest import QUICK
from tests.tasks.understanding.texts import TINY, sentence, settings_for, write_texts


def tiny_understander(task: UnderstandingSettings) -> Recipe:
    quick = replace(QUICK, steps=2, batch_tokens=256)
    return replace(RECIPES["bert-classify"], model=TINY, task=task, train=quick)


def trained_understander(folder: Path, kind: str, *, pairs: bool = False, **more: Any) -> Path:
    """On data of its own; the run lies beside them."""
    data = write_texts(folder / "data", kind, pairs=pairs)
    run = folder / kind
    train(tiny_understander(settings_for(data, kind, **more)), run, lambda event: None)
    return run


def write_glue(folder: Path, *, labelled: bool = True) -> Path:
    """SST-2's own files, small; the test split has no labels on the leaderboard."""
    folder.mkdir(parents=True, exist_ok=True)
    for split, count in (("train", 40), ("dev", 10)):
        rows = [f"{sentence(n)}\t{n % 2}" for n in range(count)]
        (folder / f"{split}.tsv").write_text("\n".join(["sentence\tlabel", *rows]) + "\n")
    test = [f"{n}\t{sentence(n)}" for n in range(7)]
    (folder / "test.tsv").write_text("\n".join(["index\tsentence", *test]) + "\n")
    return folder
