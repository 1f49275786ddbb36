"""The figures of GLUE against their definitions, and its average."""

import importlib
import math
import subprocess
import sys
from collections.abc import Sequence
from statistics import correlation, fmean
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saccade.data.glue import GLUE
from saccade.errors import ConfigError
from saccade.metrics import understanding
from saccade.metrics.understanding import (
    accuracy,
    f1,
    f1_of_sets,
    figures_of,
    glue_average,
    matthews,
    mean_squared_error,
    measure_labels,
    pearson,
    spearman,
)

binary = st.lists(st.tuples(*[st.sampled_from("01")] * 2), min_size=1, max_size=30)
classes = st.lists(st.tuples(*[st.sampled_from("abc")] * 2), min_size=1, max_size=30)
number = st.integers(-9, 9).map(float)
numbers = st.lists(st.tuples(number, number), min_size=1, max_size=30)


def sides(pairs: list[tuple[Any, Any]]) -> tuple[list[Any], list[Any]]:
    return [one for one, _ in pairs], [other for _, other in pairs]


def f1_by_hand(predicted: Sequence[str], labels: Sequence[str], one: str) -> float:
    right = sum(p == y == one for p, y in zip(predicted, labels))
    there = sum(p == one for p in predicted) + sum(y == one for y in labels)
    return 2 * right / there if there else 0.0


@settings(deadline=None)
@given(pairs=binary)
def test_f1_of_one_class_is_its_definition(pairs: list[tuple[str, str]]) -> None:
    predicted, labels = sides(pairs)
    assert f1(predicted, labels, positive="1") == pytest.approx(f1_by_hand(predicted, labels, "1"))


@settings(deadline=None)
@given(pairs=classes)
def test_f1_of_all_classes_is_their_mean(pairs: list[tuple[str, str]]) -> None:
    predicted, labels = sides(pairs)
    each = [f1_by_hand(predicted, labels, one) for one in {*predicted, *labels}]
    assert f1(predicted, labels) == pytest.approx(fmean(each))


@settings(deadline=None)
@given(rows=st.lists(st.tuples(*[st.sets(st.sampled_from("abc"))] * 2), min_size=1, max_size=9))
def test_f1_of_sets_is_the_mean_over_classes(rows: list[tuple[set[str], set[str]]]) -> None:
    predicted, labels = ([tuple(sorted(row)) for row in side] for side in zip(*rows))
    names = {name for side in (predicted, labels) for row in side for name in row}
    each = [
        f1_by_hand(
            *(["y" if one in row else "n" for row in side] for side in (predicted, labels)), "y"
        )
        for one in names
    ]
    assert f1_of_sets(predicted, labels) == pytest.approx(fmean(each) if each else 0)


@settings(deadline=None)
@given(pairs=binary)
def test_matthews_is_the_correlation_of_indicators(pairs: list[tuple[str, str]]) -> None:
    predicted, labels = sides(pairs)
    if len(set(predicted)) < 2 or len(set(labels)) < 2:
        assert matthews(predicted, labels) == 0
    else:
        expected = correlation([int(p) for p in predicted], [int(y) for y in labels])
        assert matthews(predicted, labels) == pytest.approx(expected, abs=1e-9)


@settings(deadline=None)
@given(pairs=numbers)
def test_correlations_are_those_of_values_and_ranks(pairs: list[tuple[float, float]]) -> None:
    predicted, labels = sides(pairs)
    if len(set(predicted)) < 2 or len(set(labels)) < 2:
        assert pearson(predicted, labels) == spearman(predicted, labels) == 0
    else:
        assert pearson(predicted, labels) == pytest.approx(correlation(predicted, labels), abs=1e-9)
        expected = correlation(ranks(predicted), ranks(labels))
        assert spearman(predicted, labels) == pytest.approx(expected, abs=1e-9)


def ranks(values: Sequence[float]) -> list[float]:
    """Those that are equal share the mean of their places."""
    return [sum(b < a for b in values) + (sum(b == a for b in values) + 1) / 2 for a in values]


@settings(deadline=None)
@given(pairs=numbers)
def test_spearman_sees_the_order_alone(pairs: list[tuple[float, float]]) -> None:
    predicted, labels = sides(pairs)
    bent = [math.exp(one) for one in predicted]
    assert spearman(bent, labels) == pytest.approx(spearman(predicted, labels), abs=1e-9)


def test_what_is_not_finite_has_no_correlation() -> None:
    assert math.isnan(pearson([1.0, math.nan], [1.0, 2.0]))
    assert math.isnan(spearman([1.0, math.inf], [1.0, 2.0]))
    assert math.isfinite(pearson([1.0, 1.0 + 1e-16, 1.0 + 3e-16], [1.0, 2.0, 3.0]))


def test_accuracy_and_error_by_hand() -> None:
    assert accuracy(["a", "b", "b"], ["a", "b", "c"]) == 2 / 3
    assert accuracy([("a", "b"), ()], [("a", "b"), ("a",)]) == 1 / 2
    assert mean_squared_error([1.0, 2.0], [1.0, 4.0]) == 2


def test_each_task_of_glue_has_its_figures() -> None:
    for task in GLUE.values():
        labels: list[Any] = list(task.labels) * 2 or [0.0, 1.5, 5.0]
        kind = "classes" if task.labels else "number"
        found = measure_labels(labels, labels, kind, task)
        assert found == {name: pytest.approx(1) for name in task.figures}
        assert next(iter(found)) == task.deciding
    wrong = measure_labels(["1", "1", "0"], ["1", "0", "0"], "classes", GLUE["MRPC"])
    assert wrong == {"f1": pytest.approx(2 / 3), "accuracy": pytest.approx(2 / 3)}


def test_other_labels_have_theirs() -> None:
    assert measure_labels(["a"], ["a"], "classes") == {"accuracy": 1, "f1": 1}
    assert measure_labels([("a",)], [("a",)], "labels") == {"accuracy": 1, "f1": 1}
    tags = [("B-X", "O")]
    assert measure_labels(tags, tags, "tags") == {"accuracy": 1, "span_f1": 1}
    assert measure_labels([("NOUN",)], [("NOUN",)], "tags") == {"accuracy": 1}
    found = measure_labels([1.0, 2.0], [1.0, 2.5], "number")
    ones = dict.fromkeys(("pearson", "spearman"), pytest.approx(1))
    assert found == {"mean_squared_error": 0.125, **ones}
    with pytest.raises(ConfigError, match="1 predictions for 2 labels: there must be one for each"):
        measure_labels(["a"], ["a", "b"], "classes")
    with pytest.raises(ConfigError, match="0 predictions for 0 labels"):
        measure_labels([], [], "classes")


SCORES: dict[str, dict[str, float]] = {
    "CoLA": {"matthews": 60.5},
    "SST-2": {"accuracy": 94.9, "loss": 0.2},
    "MRPC": {"f1": 89.3, "accuracy": 85.4},
    "STS-B": {"pearson": 87.6, "spearman": 86.5},
    "QQP": {"f1": 72.1, "accuracy": 89.3},
    "MNLI-m": {"accuracy": 86.7},
    "MNLI-mm": {"accuracy": 85.9},
    "QNLI": {"accuracy": 92.7},
    "RTE": {"accuracy": 70.1},
    "WNLI": {"accuracy": 65.1},
    "AX": {"matthews": 39.6},
}


def test_the_average_of_bert_large_is_that_of_the_leaderboard() -> None:
    """Its row there, with 80.5 as the score."""
    assert round(glue_average(SCORES), 1) == 80.5


def test_the_average_is_over_all_tasks_and_their_figures() -> None:
    both = {**SCORES, "MNLI": {"accuracy": (86.7 + 85.9) / 2}}
    del both["MNLI-m"], both["MNLI-mm"], both["AX"]
    assert glue_average(both) == pytest.approx(glue_average(SCORES))
    with pytest.raises(ConfigError, match="no scores of RTE, WNLI: the average is over all 9 task"):
        glue_average({name: SCORES[name] for name in SCORES if name not in ("RTE", "WNLI")})
    with pytest.raises(ConfigError, match="MRPC has no 'f1'; GLUE asks for it, so measure it"):
        glue_average({**SCORES, "MRPC": {"accuracy": 1}})
    with pytest.raises(ConfigError, match="no task 'snli' in GLUE"):
        glue_average({**SCORES, "snli": {"accuracy": 1}})


def test_without_the_extra_glue_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(understanding, "import_module", absent)
    monkeypatch.setattr(understanding, "find_spec", lambda _: None)
    for figure, package in (
        (lambda: f1(["a"], ["a"]), "scikit-learn"),
        (lambda: matthews(["a", "b"], ["a", "b"]), "scikit-learn"),
        (lambda: spearman([1.0, 2.0], [1.0, 2.0]), "scipy"),
        (lambda: measure_labels(["1"], ["1"], "classes", GLUE["MRPC"]), "scikit-learn"),
    ):
        told = (
            rf"this figure needs {package}, which is not installed: pip install 'saccade\[glue\]'"
        )
        with pytest.raises(ConfigError, match=told):
            figure()
    assert figures_of("classes") == ("accuracy",)
    assert figures_of("number") == ("mean_squared_error",)
    assert measure_labels(["a"], ["a"], "classes") == {"accuracy": 1}
    assert importlib.import_module("saccade.data.submission")


@pytest.mark.slow
def test_the_libraries_are_imported_only_for_a_figure() -> None:
    script = (
        "import sys\n"
        "from saccade.metrics import understanding as u\n"
        "u.measure_labels([('O',)], [('O',)], 'tags')\n"
        "assert not {'sklearn', 'scipy'} & set(sys.modules)\n"
        "u.pearson([1.0, 2.0], [1.0, 3.0])\n"
        "assert 'scipy' in sys.modules and 'sklearn' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=100)
