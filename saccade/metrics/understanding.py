"""How well texts are understood: the figures of GLUE, and those of tags.

Correlations and F1 are computed by scipy and scikit-learn, which come with `saccade[glue]` and are
imported when a figure needs them.
"""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from statistics import fmean
from typing import Any

from saccade.data.glue import GLUE, NOT_COUNTED, GlueTask, known_task
from saccade.data.readers.labelled_texts.rows import LabelKind
from saccade.errors import ConfigError
from saccade.metrics.tagging import has_spans, span_f1, word_accuracy

Classes = Sequence[str]
Numbers = Sequence[float]

# What is measured where it is not GLUE; of each kind the first decides, and needs nothing more.
FIGURES: Mapping[LabelKind, tuple[str, ...]] = {
    "classes": ("accuracy", "f1"),
    "number": ("mean_squared_error", "pearson", "spearman"),
    "labels": ("accuracy", "f1"),
    "tags": ("accuracy", "span_f1"),
}
LOWER_IS_BETTER = frozenset({"mean_squared_error"})
_LIBRARIES = {
    **dict.fromkeys(("f1", "matthews"), "sklearn"),
    **dict.fromkeys(("pearson", "spearman"), "scipy"),
}


def figures_of(kind: LabelKind, task: GlueTask | None = None) -> tuple[str, ...]:
    """Which figures there are for some labels, the one that decides first.

    GLUE's are all there must be; of others those are left out whose library is not installed.
    """
    if task:
        return (task.deciding, *(name for name in task.figures if name != task.deciding))
    return tuple(
        name
        for name in FIGURES[kind]
        if name not in _LIBRARIES or find_spec(_LIBRARIES[name]) is not None
    )


def measure_labels(
    predicted: Sequence[Any], labels: Sequence[Any], kind: LabelKind, task: GlueTask | None = None
) -> dict[str, float]:
    """All figures of some predictions, labels as `LabelledText` has them.

    F1 of spans is left out where tags are none of spans: NOUN, VERB …
    """
    if not labels or len(predicted) != len(labels):
        raise ConfigError(
            f"{len(predicted):,} predictions for {len(labels):,} labels: there must be one for "
            "each, and at least one"
        )
    if kind == "tags":
        found = {"accuracy": word_accuracy(predicted, labels)}
        spans = has_spans(tag for tags in labels for tag in tags)
        return {**found, "span_f1": span_f1(predicted, labels).f1} if spans else found
    several = kind == "labels"
    by_name: dict[str, Callable[[], float]] = {
        "accuracy": lambda: accuracy(predicted, labels),
        "f1": lambda: (
            f1_of_sets(predicted, labels)
            if several
            else f1(predicted, labels, positive=task.positive if task else "")
        ),
        "matthews": lambda: matthews(predicted, labels),
        "pearson": lambda: pearson(predicted, labels),
        "spearman": lambda: spearman(predicted, labels),
        "mean_squared_error": lambda: mean_squared_error(predicted, labels),
    }
    return {name: by_name[name]() for name in figures_of(kind, task)}


def accuracy(predicted: Sequence[object], labels: Sequence[object]) -> float:
    """The share of texts whose label, or set of labels, is right."""
    return fmean(one == other for one, other in zip(predicted, labels, strict=True))


def mean_squared_error(predicted: Numbers, labels: Numbers) -> float:
    """Σ (p − y)² / R"""
    return fmean((one - other) ** 2 for one, other in zip(predicted, labels, strict=True))


def f1(predicted: Classes, labels: Classes, *, positive: str = "") -> float:
    """2 · precision · recall / (precision + recall) of one class, or the mean over all classes.

    Where there is nothing to divide by it is 0.
    """
    metrics = _library("sklearn.metrics")
    if positive:
        found, true = ([one == positive for one in side] for side in (predicted, labels))
        return float(metrics.f1_score(true, found, zero_division=0))
    score = metrics.f1_score(list(labels), list(predicted), average="macro", zero_division=0)
    return float(score)


def f1_of_sets(predicted: Sequence[Classes], labels: Sequence[Classes]) -> float:
    """The mean of F1 over all classes, where a text may have any number of them."""
    sets = [[set(row) for row in side] for side in (predicted, labels)]
    names = sorted({name for side in sets for row in side for name in row})
    each = (
        f1(*([str(name in row) for row in side] for side in sets), positive="True")
        for name in names
    )
    return fmean(each) if names else 0.0


def matthews(predicted: Classes, labels: Classes) -> float:
    """Matthews' correlation of two ways to part texts in classes; 0 where one has a single class.

    (tp · tn − fp · fn) / √((tp + fp)(tp + fn)(tn + fp)(tn + fn))        for two classes
    """
    if len(set(predicted)) < 2 or len(set(labels)) < 2:
        return 0.0
    return float(_library("sklearn.metrics").matthews_corrcoef(list(labels), list(predicted)))


def pearson(predicted: Numbers, labels: Numbers) -> float:
    """Σ (p − p̄)(y − ȳ) / √(Σ (p − p̄)² Σ (y − ȳ)²); 0 where one side is always the same."""
    return _correlation(lambda stats: stats.pearsonr, predicted, labels)


def spearman(predicted: Numbers, labels: Numbers) -> float:
    """Pearson's correlation of the ranks; 0 where one side is always the same."""
    return _correlation(lambda stats: stats.spearmanr, predicted, labels)


def glue_average(scores: Mapping[str, Mapping[str, float]]) -> float:
    """The leaderboard's score: the mean over its nine tasks of the mean of a task's figures.

    `scores` are figures by task: CoLA, SST-2 … Those of MNLI may be given as MNLI-m and MNLI-mm,
    which are averaged first. AX does not count, nor do figures that are not GLUE's.
    """
    by_task: dict[str, list[float]] = {name: [] for name in GLUE if name not in NOT_COUNTED}
    for name, figures in scores.items():
        task = known_task(name.removesuffix("-mm").removesuffix("-m"))
        if task is None:
            raise ConfigError(f"no task {name!r} in GLUE; it has {', '.join(GLUE)}")
        lacking = [figure for figure in task.figures if figure not in figures]
        if lacking:
            raise ConfigError(f"{name} has no {lacking[0]!r}; GLUE asks for it, so measure it")
        if task.name not in NOT_COUNTED:
            by_task[task.name].append(fmean(figures[figure] for figure in task.figures))
    if missing := [name for name, found in by_task.items() if not found]:
        raise ConfigError(
            f"no scores of {', '.join(missing)}: the average is over all {len(by_task)} tasks; "
            "add them"
        )
    return fmean(fmean(found) for found in by_task.values())


def _correlation(
    correlate: Callable[[Any], Callable[..., Any]], predicted: Numbers, labels: Numbers
) -> float:
    if not all(math.isfinite(one) for side in (predicted, labels) for one in side):
        return math.nan
    if len(set(predicted)) < 2 or len(set(labels)) < 2:
        return 0.0
    with warnings.catch_warnings(action="ignore"):  # at what hardly differs
        found = correlate(_library("scipy.stats"))(list(predicted), list(labels))
    return float(found.statistic)


def _library(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        package = {"sklearn": "scikit-learn"}.get(module.partition(".")[0], "scipy")
        raise ConfigError(
            f"this figure needs {package}, which is not installed: pip install 'saccade[glue]'"
        ) from None
