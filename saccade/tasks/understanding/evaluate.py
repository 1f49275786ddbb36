"""Scoring a model on texts that it was not trained on."""

import time
from pathlib import Path
from typing import Any

import torch

from saccade.data.submission import submission_file, write_submission
from saccade.tasks.base import Progress, silent
from saccade.tasks.guesses import one_class_report, several_classes_report
from saccade.tasks.understanding.classifier import TextClassifier
from saccade.tasks.understanding.data import UnderstandingSettings, read_split
from saccade.tasks.understanding.encode import EncodedTexts
from saccade.tasks.understanding.figures import held_out_figures, predicted_labels, task_of
from saccade.tasks.understanding.labels import as_tensor
from saccade.tasks.understanding.scores import text_scores


def evaluate_texts(
    tool: TextClassifier,
    settings: UnderstandingSettings,
    split: str | None,
    *,
    submission: Path | None = None,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Figures of those texts of a split that have labels, as plain values; predictions of all.

    `submission` is a file for the leaderboard of GLUE, or a folder where it gets its usual name.
    """
    labels, needed = tool.labels, None if submission is None else False
    read = read_split(settings, split, labels, labels_needed=needed)
    task = task_of(read.labels)
    if submission is not None and task is not None:
        submission = submission_file(submission, task, split or Path(settings.data).stem)
    texts, words = [row.texts for row in read.rows], [row.words for row in read.rows]
    begun = time.perf_counter()
    tagged = words if labels.kind == "tags" else ()
    encoded = EncodedTexts.of(tool.vocabulary, texts, tagged, longest=tool.longest)
    with torch.inference_mode():
        scores = text_scores(tool.network, encoded, labels, tool.device, progress)
    found: dict[str, Any] = {
        "split": split or "all",
        "texts": len(read),
        "cut": len(encoded.cut),
        "seconds": time.perf_counter() - begun,
    }
    if submission is not None and task is not None:
        said = predicted_labels(labels, scores)
        write_submission(submission, task, said, [row.row_index for row in read.rows])
        found["submission"] = str(submission)
    known = [place for place, row in enumerate(read.rows) if row.label is not None]
    found["unlabelled"] = len(read) - len(known)
    if not known:
        return found
    scores = [scores[place] for place in known]
    targets = labels.targets([read.rows[place] for place in known], split or "given")
    return {
        **found,
        **held_out_figures(read.labels, scores, targets),
        **_by_class(tool, scores, targets),
    }


def _by_class(tool: TextClassifier, scores: list[Any], targets: list[Any]) -> dict[str, Any]:
    labels, kind = tool.labels, tool.labels.kind
    if kind == "number":
        return {}
    every = torch.cat(scores) if kind == "tags" else torch.stack(scores)
    truth, counted = as_tensor(kind, targets), "words" if kind == "tags" else "texts"
    read = ~every.isnan().any(dim=1)
    report = several_classes_report if labels.several else one_class_report
    return {"counted": counted, **report(labels.names, every[read], truth[read], unit=counted)}
