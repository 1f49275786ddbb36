"""Predictions as GLUE's leaderboard takes them: a TSV file for each task, a row for each text."""

import math
from collections.abc import Sequence
from pathlib import Path

from saccade.data.files.whole_files import write_whole
from saccade.data.glue import SCORES, GlueTask
from saccade.errors import ConfigError, WriteError
from saccade.printable import printable

HEADER = "index\tprediction"


def submission_file(given: Path, task: GlueTask, split: str) -> Path:
    """The file that was named; in a folder, what the leaderboard calls that of a split.

    A split may also be called as its file is, without the ending.
    """
    if not given.is_dir():
        return given
    names = {stem: name for name, stems in task.splits.items() for stem in stems}
    known = task.submissions.get(names.get(split, split))
    if known is None:
        raise ConfigError(
            f"the leaderboard asks for no {printable(split)!r} of {task.name}; name a .tsv file in "
            f"{printable(given)}"
        )
    return given / known


def write_submission(
    path: Path,
    task: GlueTask,
    predictions: Sequence[str | float],
    indices: Sequence[str] | None = None,
) -> Path:
    """Write the predictions in the order of the test file.

    `indices` are those of its rows (`row_index`); where it has none they count from 0. A label is
    given as the files spell it or by its meaning; a score is clipped to 0 … 5.
    """
    if not indices or not all(indices):
        indices = [str(number) for number in range(len(predictions))]
    if len(indices) != len(predictions):
        raise ConfigError(
            f"{len(predictions):,} predictions for {len(indices):,} rows of {task.name}: there "
            "must be one for each; read the whole test split"
        )
    spell = _label if task.labels else _score
    rows = [f"{i}\t{spell(task, one)}" for i, one in zip(indices, predictions)]
    try:
        write_whole(path, ("\n".join([HEADER, *rows]) + "\n").encode())
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise WriteError(f"cannot write {printable(path)}: {reason}") from error
    return path


def _label(task: GlueTask, prediction: str | float) -> str:
    label = task.label_of(prediction) if isinstance(prediction, str) else None
    if label is None:
        raise ConfigError(
            f"prediction {prediction!r} is none of {task.name}'s labels: {', '.join(task.labels)}"
        )
    return label


def _score(task: GlueTask, prediction: str | float) -> str:
    if isinstance(prediction, str) or not math.isfinite(prediction):
        raise ConfigError(f"prediction {prediction!r} of {task.name} is not a finite number")
    least, most = SCORES
    return f"{min(max(prediction, least), most):.3f}"
