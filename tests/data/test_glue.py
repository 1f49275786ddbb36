"""The table of GLUE's tasks."""

import pytest

from saccade.data.glue import GLUE, glue_task, known_task
from saccade.errors import ConfigError

FIGURES = {"accuracy", "f1", "matthews", "pearson", "spearman"}


@pytest.mark.parametrize("name", GLUE)
def test_a_task_hangs_together(name: str) -> None:
    task = GLUE[name]
    assert task.name == name
    assert set(task.figures) <= FIGURES
    assert task.deciding in task.figures
    assert len(task.labels) == len(task.meanings) == len(set(task.labels))
    assert not task.positive or task.positive in task.labels
    assert set(task.submissions) <= set(task.splits)
    assert len({len(texts) for texts in task.texts}) == 1
    assert [task.label_of(label) for label in task.labels] == list(task.labels)
    assert [task.label_of(label) for label in task.meanings] == list(task.labels)
    assert [task.label_of(str(n)) for n in range(len(task.labels))] == list(task.labels)
    assert task.label_of(str(len(task.labels))) is None
    assert task.label_of("²") is None


def test_files_of_all_tasks_differ() -> None:
    every = [name for task in GLUE.values() for name in task.submissions.values()]
    assert len(every) == len(set(every)) == 11


def test_no_first_line_is_the_start_of_anothers() -> None:
    headers = [task.header for task in GLUE.values() if task.header]
    for one in headers:
        assert [other for other in headers if other[: len(one)] == one] == [one]


def test_a_task_is_known_however_it_is_spelt() -> None:
    for name in ("SST-2", "sst-2", "sst2", "SST_2"):
        assert known_task(name) is glue_task(name) is GLUE["SST-2"]
    assert known_task("diagnostic") is GLUE["AX"]
    assert known_task("my data") is None
    with pytest.raises(ConfigError, match="no task 'snli' in GLUE; it has CoLA, SST-2, MRPC"):
        glue_task("snli")
