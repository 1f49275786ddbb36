"""The README of a run: what it is, how well it does, how to use it."""

import math

from saccade.tasks.captioning.data import CaptioningSettings
from saccade.train.files import replace_file
from saccade.train.folder import RunFolder
from saccade.train.recipe import Recipe


def write_card(run: RunFolder, recipe: Recipe, best_loss: float, best_step: int) -> None:
    """Write the model card beside the weights."""
    data = recipe.task.data or "built-in data"
    result = (
        f"Best validation loss {best_loss:.4f} per token (perplexity {math.exp(best_loss):.2f}), "
        f"at step {best_step:,}."
        if math.isfinite(best_loss)
        else "Not validated yet."
    )
    example = "photo.jpg" if isinstance(recipe.task, CaptioningSettings) else '"…"'
    text = f"""---
library_name: saccade
tags: [attention, {recipe.system}]
---
# {run.path.name}

{recipe.about}. Trained by Saccade on {data}.

{result}

```
saccade eval {run.path}
saccade predict {run.path} {example}
```

Settings are in `config.json`, the course of training in `metrics.jsonl`.
"""
    replace_file(run.card, text.encode())
