"""What tests of several tasks need."""

from typing import Any

import torch
from torch import Tensor

from saccade.data.batching.batches import Batches
from saccade.data.batching.ragged import Ragged
from saccade.data.batching.row_choice import RowChoice
from saccade.data.batching.rows import Rows
from saccade.data.tokens.vocabulary import OURS
from saccade.tasks.base import LengthBound, MakeBatching, Task
from saccade.tasks.chapters import ChapteredBatches
from saccade.tasks.encoded_corpus import BoundedRows, EncodedPart, EncodedStream
from saccade.tasks.language.task import Sentences


def sequences(rows: Rows) -> list[list[int]]:
    """The real sequences, one by one."""
    ends = rows.starts[1 : len(rows.lengths) + 1].tolist()
    return [rows.tokens[end - n : end].tolist() for n, end in zip(rows.lengths.tolist(), ends)]


def total_loss(task: Task[Any], model: Any, batch: Any) -> Tensor:
    """What training follows: the sum of all losses of a batch."""
    return sum(task.losses(model, batch).values(), torch.zeros(()))


def bounded(columns: tuple[Ragged, ...], *, longest: int = 1000, **choice: Any) -> BoundedRows:
    """Rows of these columns that are short enough, or some of them."""
    part = EncodedPart(EncodedStream(columns, ""), RowChoice(**choice), "")
    return BoundedRows.of(part, LengthBound(longest, "--longest"))


def sentences(
    rows: list[list[int]], *, budget: int, make: MakeBatching = Batches.of_lengths
) -> Sentences:
    """Lines in batches."""
    lines = Ragged.of(rows)
    batches = ChapteredBatches(bounded((lines,)), make, budget=budget, seed=0)
    return Sentences(lines, OURS, batches)
