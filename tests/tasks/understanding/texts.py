"""Small data of every kind of label, and models that are too small to know anything."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from saccade.models.text.bert import Bert, BertConfig
from saccade.tasks.base import Preparation
from saccade.tasks.understanding.data import UnderstandingSettings
from saccade.tasks.understanding.task import Understanding

TINY = BertConfig(
    vocabulary=300, width=16, depth=2, heads=2, hidden=32, longest=64, dropout=0.0, types=2
)
NOUNS = ("dog", "cat", "tree", "house", "river")
VERBS = ("sleeps", "runs", "falls", "sings")


def sentence(number: int) -> str:
    """Of three to six words; the same number gives the same."""
    noun, verb = NOUNS[number % 5], VERBS[number % 4]
    return f"the {'very ' * (number % 3)}old {noun} {verb}" + " ." * (number % 2)


def label_of(kind: str, number: int) -> Any:
    if kind == "number":
        return number % 7 / 2
    if kind == "labels":
        return [name for name in ("a", "b", "c") if (number + ord(name)) % 2]
    return NOUNS[number % 3]


def write_texts(folder: Path, kind: str, *, count: int = 40, pairs: bool = False) -> Path:
    """train.jsonl and valid.jsonl, or CoNLL for tags."""
    folder.mkdir(parents=True, exist_ok=True)
    for split, first, size in (("train", 0, count), ("valid", 100, 12), ("test", 200, 12)):
        numbers = range(first, first + size)
        if kind == "tags":
            text = "\n".join(map(_tagged, numbers))
            (folder / f"{split}.conll").write_text(text, encoding="utf-8")
            continue
        rows = [
            {"sentence1": sentence(n), "sentence2": sentence(n + 1), "label": label_of(kind, n)}
            if pairs
            else {"text": sentence(n), "label": label_of(kind, n)}
            for n in numbers
        ]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{split}.jsonl").write_text(text, encoding="utf-8")
    return folder


def _tagged(number: int) -> str:
    return "".join(f"{word}\tT{word[0].upper()}\n" for word in sentence(number).split())


def settings_for(folder: Path, kind: str, **more: Any) -> UnderstandingSettings:
    made: dict[str, Any] = {"vocabulary": 300, "longest": 32, **more}
    return UnderstandingSettings(data=str(folder), task=kind, **made)


def task_for(
    folder: Path, kind: str, *, seed: int = 0, budget: int = 128, **more: Any
) -> Understanding:
    how = Preparation(budget=budget, seed=seed, batching=more.pop("batching", "mixed"))
    task = settings_for(folder, kind, **more).prepare(how)
    assert isinstance(task, Understanding)
    return task


def model_for(task: Understanding, *, seed: int = 0) -> Bert:
    torch.manual_seed(seed)
    fitted = task.fit(replace(TINY))
    assert isinstance(fitted, BertConfig)
    model = fitted.build()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model.eval()
