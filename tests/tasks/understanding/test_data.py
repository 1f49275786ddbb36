"""Which texts are learnt from, and how many labels; what is wrong is refused in a line."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.data.readers.labelled_texts.rows import LabelledText
from saccade.errors import ConfigError, DataError
from saccade.models.text.gpt import GptConfig
from saccade.tasks.understanding.data import (
    WORLDS,
    TextSplit,
    UnderstandingSettings,
    few_of,
    read_split,
    with_labels,
)
from saccade.tasks.understanding.labels import Labels, read_labels_asset
from tests.tasks.understanding.texts import settings_for, task_for, write_texts

classes = st.lists(st.sampled_from("abc"), min_size=1, max_size=60)


def split_of(labels: list[str]) -> TextSplit:
    rows = [LabelledText((f"text {i}",), label) for i, label in enumerate(labels)]
    return TextSplit(rows, Labels("classes", ("a", "b", "c")), "some texts")


@given(labels=classes, few=st.integers(1, 60), more=st.integers(0, 60))
def test_fewer_labels_lie_within_more(labels: list[str], few: int, more: int) -> None:
    read = split_of(labels)
    some, others = ({row.texts for row in few_of(read, count).rows} for count in (few, few + more))
    assert some <= others
    assert len(some) == min(few, len(labels))


@given(labels=classes, count=st.integers(1, 60))
def test_labels_are_balanced_as_far_as_the_classes_reach(labels: list[str], count: int) -> None:
    there, found = (
        Counter(labels),
        Counter(row.label for row in few_of(split_of(labels), count).rows),
    )
    short = {label for label in there if found[label] == there[label]}
    counts = [found[label] for label in there if label not in short]
    assert max(counts, default=0) - min(counts, default=0) <= 1
    assert all(found[label] <= max(counts, default=len(labels)) + 1 for label in short)


def test_no_number_of_labels_is_all_of_them_and_the_seed_changes_nothing(tmp_path: Path) -> None:
    data = write_texts(tmp_path, "classes")
    assert few_of(read := read_split(settings_for(data, "classes"), "train"), 0) is read
    one, other = (task_for(data, "classes", seed=seed, labelled=6) for seed in (0, 1))
    assert one.fingerprint() == other.fingerprint()
    assert len(one.vocabulary) == len(task_for(data, "classes").vocabulary)  # of all texts
    assert "6 labels of " in one.report[0]


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS)
def test_lingua_is_labelled_by_what_it_says_it_is(world: str) -> None:
    settings = replace(UnderstandingSettings(count=40), world=world)
    read = read_split(settings, "train")
    assert len(read) == 40
    assert read.labels.names == WORLDS[settings.world].names
    assert {len(row.texts) for row in read.rows} == {2 if read.labels.pairs else 1}
    for row in read.rows:
        labels = row.label if isinstance(row.label, tuple) else (row.label,)
        assert set(labels) <= set(read.labels.names)
        assert len(row.words) == (len(labels) if read.labels.kind == "tags" else 0)
    assert read_split(settings, "train").rows == read.rows
    assert read_split(settings, "valid").rows[:40] != read.rows


def test_a_validation_split_is_held_out_where_there_is_none(tmp_path: Path) -> None:
    data = write_texts(tmp_path, "classes")
    (data / "valid.jsonl").unlink()
    settings = settings_for(data, "classes", held_out=0.25)
    train, valid = (read_split(settings, split) for split in ("train", "valid"))
    assert len(train) + len(valid) == 40
    assert {(*row.texts, row.where) for row in train.rows}.isdisjoint(
        {(*row.texts, row.where) for row in valid.rows}
    )
    assert train.labels == valid.labels


def test_texts_without_a_label_are_left_out_and_counted() -> None:
    read = split_of(["a", "b"])
    rows = [*read.rows, LabelledText(("more",), None)]
    found = with_labels(replace(read, rows=rows))
    assert found.rows == read.rows
    assert found.report == "some texts; 1 without a label left out"
    with pytest.raises(DataError, match="nothing to learn from where nothing is labelled"):
        with_labels(replace(read, rows=rows[2:]))


@given(
    kind=st.sampled_from(["classes", "labels", "tags", "number"]),
    names=st.lists(st.text(), max_size=4),
    pairs=st.booleans(),
    mean=st.floats(-5, 5),
    deviation=st.floats(0.1, 5),
)
def test_labels_survive_the_run_folder(
    kind: str, names: list[str], pairs: bool, mean: float, deviation: float
) -> None:
    labels = Labels(kind, tuple(names), pairs, "", mean, deviation)  # type: ignore[arg-type]
    assert read_labels_asset(labels.to_json()) == labels


@pytest.mark.parametrize("raw", [b"[]", b"{}", b"\x00", b'{"kind": "poem"}'])
def test_labels_of_nobody_are_refused(raw: bytes) -> None:
    with pytest.raises(ValueError, match=r"not all there|Expecting value"):
        read_labels_asset(raw)


def test_names_are_those_that_people_understand_and_the_files_spelling_is_known() -> None:
    labels = Labels("classes", ("negative", "positive"), task="SST-2")
    rows = [LabelledText(("x",), label) for label in ("0", "1", "positive")]
    assert labels.targets(rows, "test") == [0, 1, 1]
    assert labels.spelt == ("0", "1")


def test_wrong_settings_are_refused() -> None:
    cases = {
        "labelled=-1 must be 0": {"labelled": -1},
        "longest=0 must be at least 1": {"longest": 0},
        "task=poem is of data of your own; give --data too": {"task": "poem"},
        "text=body is of data of your own": {"text": "body"},
        "task='poem' is neither auto": {"data": "x", "task": "poem"},
    }
    for message, wrong in cases.items():
        with pytest.raises(ConfigError, match=message):
            UnderstandingSettings(**wrong)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="GptConfig tells nothing of texts; take a bert"):
        UnderstandingSettings().check(GptConfig())


def test_what_was_not_learnt_is_refused(tmp_path: Path) -> None:
    data = write_texts(tmp_path, "classes")
    settings = settings_for(data, "classes")
    learnt = Labels("classes", ("dog", "cat"))
    read = read_split(settings, "valid", learnt)
    with pytest.raises(DataError, match="'tree' is not among: dog, cat, which are what was learnt"):
        learnt.targets(read.rows, "valid")
    with pytest.raises(DataError, match="1 texts, where 2 were learnt"):
        read_split(settings, "valid", Labels("classes", ("dog", "cat"), pairs=True))
    one = tmp_path / "one.jsonl"
    one.write_text('{"text": "a b", "label": "x"}\n{"text": "c", "label": "x"}\n' * 9)
    with pytest.raises(DataError, match=r"a single class \(x\) leaves nothing to tell apart"):
        task_for(one, "classes", held_out=0.25)
