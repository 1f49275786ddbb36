"""The README of a run: what it is, how well it does, how to use it."""

import math

from saccade.printable import printable
from saccade.tasks.base import Deciding
from saccade.train.recipe import Recipe
from saccade.train.storage.files import replace_file
from saccade.train.storage.folder import RunFolder


def write_card(
    run: RunFolder, recipe: Recipe, deciding: Deciding, best: dict[str, float], best_step: int
) -> None:
    """Write the model card beside the weights."""
    text = f"""---
library_name: saccade
tags: [attention, {recipe.system}]
---
# {run.path.name}

{recipe.about}. Trained by Saccade on {recipe.task.data or "built-in data"}{_start(recipe)}.

{_result(deciding, best, best_step)}{_changes(recipe)}

```
saccade eval {run.path}
saccade predict {run.path} {recipe.task.example}
```

Settings are in `config.json`, the course of training in `metrics.jsonl`.
"""
    replace_file(run.card, text.encode())


def _result(deciding: Deciding, best: dict[str, float], step: int) -> str:
    if not best:
        return "Not validated yet."
    others = {name: value for name, value in best.items() if name != deciding.figure}
    rest = [f"{name} {value:.2f}" for name, value in others.items() if math.isfinite(value)]
    beside = f" ({', '.join(rest)})" if rest else ""
    return (
        f"Best validation {deciding.label} {best[deciding.figure]:.4f}{beside}, at step {step:,}."
    )


def _start(recipe: Recipe) -> str:
    """What it started from, what that came from, and so on; and what of it has learnt since."""
    if not recipe.init:
        return ""
    first, *before = recipe.lineage or (recipe.init,)
    came = "".join(f", which came from {printable(one)}" for one in before)
    return f", from the weights of {printable(first)}{_learnt(recipe)}{came}"


def _learnt(recipe: Recipe) -> str:
    how = recipe.train
    if how.lora:
        return f" (LoRA of rank {how.lora}; the adapter alone is in adapter_model.safetensors)"
    return f" (its lowest {how.freeze} blocks are as they were)" if how.freeze else ""


def _changes(recipe: Recipe) -> str:
    if not recipe.changes:
        return ""
    lines = [f"- from step {one.step:,} on: {one}" for one in recipe.changes]
    return "\n".join(["\n\nSettings changed on the way:\n", *lines])
