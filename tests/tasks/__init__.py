"""What tests of several tasks need."""

from typing import Any

import torch
from torch import Tensor

from saccade.data.batching.rows import Rows
from saccade.tasks.base import Task


def sequences(rows: Rows) -> list[list[int]]:
    """The real sequences, one by one."""
    ends = rows.starts[1 : len(rows.lengths) + 1].tolist()
    return [rows.tokens[end - n : end].tolist() for n, end in zip(rows.lengths.tolist(), ends)]


def total_loss(task: Task[Any], model: Any, batch: Any) -> Tensor:
    """What training follows: the sum of all losses of a batch."""
    return sum(task.losses(model, batch).values(), torch.zeros(()))
