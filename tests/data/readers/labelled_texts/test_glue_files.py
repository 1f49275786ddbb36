"""GLUE's own files, each task with its columns and quirks."""

from pathlib import Path

import pytest

from saccade.data.glue import GLUE
from saccade.data.readers import (
    LabelledText,
    TextColumns,
    labelled_text_splits,
    read_labelled_texts,
)
from saccade.errors import DataError
from tests.data.glue_made import FILES, MARK, glue_folder, lines

# What the made files hold: labels of train, texts of the first row, indices of test.
EXPECTED: dict[str, tuple[list[str | float], tuple[str, ...], list[str]]] = {
    "CoLA": (["1", "0"], ('The "cat" sleeps.',), ["0", "1"]),
    "SST-2": (["1", "0"], ("a fine film ",), ["0", "1"]),
    "MRPC": (["1", "0"], ('He said " yes .', "Yes , he said ."), ["0"]),
    "STS-B": ([5.0, 0.25], ("A dog runs.", "A dog is running."), ["3"]),
    "QQP": (["1", "0"], ("Who am I?", "Who is I?"), ["0", "1"]),
    "MNLI": (
        ["neutral", "entailment", "contradiction"],
        ('A "cat" sleeps 0.', "An animal rests."),
        ["0", "1", "2", "3"],
    ),
    "QNLI": (["entailment", "not_entailment"], ("Who?", "A man did."), ["0"]),
    "RTE": (
        ["entailment", "not_entailment"],
        ("No man is an island.", "Men are no islands."),
        ["0"],
    ),
    "WNLI": (["1", "0"], ("I put it there, it fell.", "It fell."), ["0"]),
}


def test_every_task_of_glue_is_tried() -> None:
    assert set(FILES) == set(GLUE) == {*EXPECTED, "AX"}


@pytest.mark.parametrize("task", EXPECTED)
@pytest.mark.parametrize("name", ["", "my data"])
def test_each_task_is_read_by_its_folder_or_when_it_is_named(
    task: str, name: str, tmp_path: Path
) -> None:
    data = glue_folder(tmp_path, task, name)
    columns = TextColumns(task=task.lower()) if name else TextColumns()
    labels, texts, indices = EXPECTED[task]
    read = read_labelled_texts(data, "train", columns)
    assert read.task is GLUE[task]
    assert read.kind == ("classes" if GLUE[task].labels else "number")
    assert read.labels == list(GLUE[task].labels)
    assert [row.label for row in read.rows] == labels
    assert read.rows[0].texts == texts
    assert read.rows[0].where == f"{data / 'train.tsv'}:{1 if task == 'CoLA' else 2}"
    valid = read_labelled_texts(data, "valid", columns)
    assert all(row.label in GLUE[task].labels or row.label == 4.0 for row in valid.rows)
    test = read_labelled_texts(data, "test", columns)
    assert [(row.label, row.row_index) for row in test.rows] == [(None, i) for i in indices]
    assert "without labels" in test.summary()


@pytest.mark.parametrize("task", ["CoLA", "MRPC", "STS-B", "QQP", "MNLI", "QNLI"])
def test_a_first_line_that_only_one_task_has_tells_it(task: str, tmp_path: Path) -> None:
    data = glue_folder(tmp_path, task, "x")
    assert read_labelled_texts(data, "train").task is GLUE[task]
    assert read_labelled_texts(data, "test").task is GLUE[task]
    assert read_labelled_texts(data / "train.tsv", "train").task is GLUE[task]


def test_a_first_line_that_anyone_may_have_tells_nothing(tmp_path: Path) -> None:
    for task in ("SST-2", "RTE", "WNLI"):
        data = glue_folder(tmp_path, task, f"own {task}")
        read = read_labelled_texts(data, "train")
        assert (read.task, read.kind) == (None, "classes")
        assert [row.label for row in read.rows] == EXPECTED[task][0]


def test_a_folder_that_is_only_named_so_is_read_by_its_columns(tmp_path: Path) -> None:
    (tmp_path / "rte").mkdir()
    (tmp_path / "rte" / "train.csv").write_text("text,label\nwe eat,yes\n")
    read = read_labelled_texts(tmp_path / "rte", "train")
    assert (read.task, read.rows[0].label) == (None, "yes")


def test_mnli_has_splits_of_its_own(tmp_path: Path) -> None:
    data = glue_folder(tmp_path, "MNLI")
    mismatched = ["valid_mismatched", "test_mismatched"]
    assert sorted(labelled_text_splits(data)) == sorted(["train", "valid", "test", *mismatched])
    sizes = {s: len(read_labelled_texts(data, s).rows) for s in labelled_text_splits(data)}
    assert sizes == {
        **{"train": 3, "valid": 3, "valid_mismatched": 2, "test": 4, "test_mismatched": 1}
    }
    by_file = read_labelled_texts(data, "dev_mismatched", labels_needed=True)
    assert by_file.rows == read_labelled_texts(data, "valid_mismatched").rows
    assert read_labelled_texts(data, "train").summary() == (
        "MNLI: 3 pairs of 3 classes from train.tsv; 1 row passed over (1 no gold label)"
    )


def test_broken_rows_of_qqp_are_passed_over_and_counted(tmp_path: Path) -> None:
    read = read_labelled_texts(glue_folder(tmp_path, "QQP"), "train")
    assert read.passed_over == {"too few columns": 3}
    assert [row.where.rpartition(":")[2] for row in read.rows] == ["2", "6"]
    assert read.rows[1].texts == ("Why not?", "")
    assert read.summary() == (
        "QQP: 2 pairs of 2 classes from train.tsv; 3 rows passed over (3 too few columns)"
    )


def test_in_other_tasks_a_row_with_too_few_columns_is_bad(tmp_path: Path) -> None:
    data = glue_folder(tmp_path, "QNLI")
    with (data / "train.tsv").open("a") as file:
        file.write("2\tWho?\n")
    with pytest.raises(DataError, match=r"train\.tsv:4: not 4 columns: 2 found"):
        read_labelled_texts(data, "train")
    assert read_labelled_texts(data, "train", skip_bad=1).skipped == {"not 4 columns": 1}


def test_the_diagnostic_set_is_a_test_alone(tmp_path: Path) -> None:
    for name in ("AX", "diagnostic"):
        data = glue_folder(tmp_path, "AX", name)
        assert labelled_text_splits(data) == ["test"]
        read = read_labelled_texts(data, "test")
        assert (read.task, read.rows[0].row_index) == (GLUE["AX"], "0")
        assert labelled_text_splits(data / "diagnostic.tsv") == ["test"]
        assert read_labelled_texts(data / "diagnostic.tsv", "test").rows == read.rows
        for where in (data, data / "diagnostic.tsv"):
            with pytest.raises(DataError, match="AX, which has no 'train'; train on MNLI, and ask"):
                read_labelled_texts(where, "train")


def test_the_diagnostic_set_asks_models_of_mnli(tmp_path: Path) -> None:
    mnli, data = TextColumns(task="MNLI"), glue_folder(tmp_path, "AX", "diagnostic")
    (tmp_path / "AX.tsv").write_bytes((data / "diagnostic.tsv").read_bytes())
    for where in (data, data / "diagnostic.tsv", tmp_path / "AX.tsv"):
        assert read_labelled_texts(where, "test", mnli).task is GLUE["AX"]
    assert read_labelled_texts(glue_folder(tmp_path, "MNLI"), "test", mnli).task is GLUE["MNLI"]


def test_the_diagnostic_set_with_its_labels_is_read(tmp_path: Path) -> None:
    names = ("Logic", "Domain", "Premise", "Hypothesis", "Label")
    rows = lines(names, ("Negation", "News", "No cat.", "A cat.", "contradiction"))
    (tmp_path / "diagnostic-full.tsv").write_text(rows)
    mnli = TextColumns(task="MNLI")
    read = read_labelled_texts(tmp_path / "diagnostic-full.tsv", "test", mnli)
    assert (read.task, read.rows[0].label) == (GLUE["AX"], "contradiction")


def test_cola_is_read_as_its_authors_give_it(tmp_path: Path) -> None:
    for name in ("in_domain_train", "in_domain_dev", "out_of_domain_dev"):
        (tmp_path / f"{name}.tsv").write_text(lines(("gj04", "1", "", f"Of {name}.")))
    assert labelled_text_splits(tmp_path) == ["train", "valid"]
    for split, name in (("valid", "in_domain_dev"), ("out_of_domain_dev", "out_of_domain_dev")):
        read = read_labelled_texts(tmp_path, split)
        assert (read.task, read.rows[0].texts) == (GLUE["CoLA"], (f"Of {name}.",))


def test_mrpc_is_read_as_its_authors_give_it(tmp_path: Path) -> None:
    header = ("Quality", "#1 ID", "#2 ID", "#1 String", "#2 String")
    for split in ("train", "test"):
        rows = MARK + lines(header, ("1", "11", "12", "It rains .", "Rain ."), end="\r\n")
        (tmp_path / f"msr_paraphrase_{split}.txt").write_bytes(rows.encode())
    (tmp_path / "msr_paraphrase_data.txt").write_text("Sentence ID\tString\n11\tIt rains .\n")
    for data in (tmp_path, tmp_path / "msr_paraphrase_train.txt"):
        read = read_labelled_texts(data, "train")
        assert (read.task, read.rows[0].texts) == (GLUE["MRPC"], ("It rains .", "Rain ."))
    assert read_labelled_texts(tmp_path, "test").rows[0].label == "1"


def test_copies_that_have_labels_in_test_and_no_index_are_read(tmp_path: Path) -> None:
    data = glue_folder(tmp_path, "SST-2")
    (data / "test.tsv").write_text("sentence\tlabel\na bore\t0\nfine\t1\n")
    read = read_labelled_texts(data, "test")
    assert [(row.label, row.row_index) for row in read.rows] == [("0", ""), ("1", "")]


def test_cola_with_names_of_columns_is_read_too(tmp_path: Path) -> None:
    data = glue_folder(tmp_path, "CoLA")
    (data / "train.tsv").write_text("label\tsentence\n1\tWe eat.\n")
    assert read_labelled_texts(data, "train").rows[0][:2] == (("We eat.",), "1")


COPIES = {
    "sst2": ('{"sentence": "a bore", "label": 0, "idx": 5}', LabelledText(("a bore",), "0")),
    "mnli": (
        '{"premise": "a", "hypothesis": "b", "label": 2, "idx": 5}',
        LabelledText(("a", "b"), "contradiction"),
    ),
    "wnli": (
        '{"sentence1": "a", "sentence2": "b", "label": "entailment", "idx": 5}',
        LabelledText(("a", "b"), "1"),
    ),
    "stsb": (
        '{"sentence1": "a", "sentence2": "b", "label": 3, "idx": 5}',
        LabelledText(("a", "b"), 3.0),
    ),
}


@pytest.mark.parametrize("name", COPIES)
def test_copies_in_the_columns_of_hugging_face_are_the_same_task(name: str, tmp_path: Path) -> None:
    raw, row = COPIES[name]
    data = tmp_path / name
    data.mkdir()
    (data / "train.jsonl").write_text(raw)
    (data / "test.jsonl").write_text(raw.replace(": 5", ": 7").replace("label", "else"))
    read = read_labelled_texts(data, "train")
    assert read.task is not None
    assert [r._replace(where="", row_index="") for r in read.rows] == [row]
    assert read.rows[0].row_index == "5"


def test_a_secret_label_of_a_test_is_none(tmp_path: Path) -> None:
    data = tmp_path / "rte"
    data.mkdir()
    row = '{"sentence1": "a", "sentence2": "b", "label": %s}\n'
    (data / "train.jsonl").write_text(row % 0)
    (data / "test.jsonl").write_text(row % -1 + row % '""' + row % "null")
    assert [row.label for row in read_labelled_texts(data, "test").rows] == [None] * 3
    (data / "train.jsonl").write_text(row % -1)
    with pytest.raises(DataError, match="no such label: '-1' is none of RTE's entailment, not_en"):
        read_labelled_texts(data, "train")


def test_a_label_that_a_task_does_not_have_is_told_with_a_way_out(tmp_path: Path) -> None:
    data = glue_folder(tmp_path, "SST-2")
    (data / "train.tsv").write_text("sentence\tlabel\nwe eat\tgreat\n")
    with pytest.raises(DataError, match=r"'great' is none of SST-2's 0, 1; pass --task classes"):
        read_labelled_texts(data, "train")
    read = read_labelled_texts(data, "train", TextColumns(task="classes"))
    assert (read.task, read.labels) == (None, ["great"])
    data = glue_folder(tmp_path, "STS-B")
    (data / "train.tsv").write_text("sentence1\tsentence2\tscore\na\tb\tmuch\n")
    with pytest.raises(DataError, match="no such label: 'much' is not a number"):
        read_labelled_texts(data, "train")
