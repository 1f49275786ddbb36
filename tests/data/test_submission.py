"""Files as GLUE's leaderboard takes them."""

import math
from pathlib import Path

import pytest

from saccade.data.glue import GLUE
from saccade.data.readers import read_labelled_texts
from saccade.data.submission import submission_file, write_submission
from saccade.errors import ConfigError, WriteError
from tests.data.glue_made import glue_folder

EXPECTED: dict[str, tuple[list[str | float], list[str]]] = {
    "CoLA": (["1", "unacceptable"], ["1", "0"]),
    "SST-2": (["positive", "0"], ["1", "0"]),
    "MRPC": (["equivalent"], ["1"]),
    "STS-B": ([5.2, -0.1, 2.34567, 3], ["5.000", "0.000", "2.346", "3.000"]),
    "QQP": (["0", "1"], ["0", "1"]),
    "MNLI": (["neutral", "entailment", "contradiction", "neutral"], []),
    "QNLI": (["not_entailment"], ["not_entailment"]),
    "RTE": (["entailment"], ["entailment"]),
    "WNLI": (["1"], ["1"]),
    "AX": (["contradiction"], ["contradiction"]),
}


@pytest.mark.parametrize("name", GLUE)
def test_a_file_is_to_the_letter_what_the_leaderboard_takes(name: str, tmp_path: Path) -> None:
    predictions, spelt = EXPECTED[name]
    path = tmp_path / GLUE[name].submissions["test"]
    assert write_submission(path, GLUE[name], predictions) == path
    rows = [f"{n}\t{one}\n" for n, one in enumerate(spelt or predictions)]
    assert path.read_bytes() == "".join(["index\tprediction\n", *rows]).encode()


@pytest.mark.parametrize("name", GLUE)
def test_indices_are_those_of_the_test_file(name: str, tmp_path: Path) -> None:
    read = read_labelled_texts(glue_folder(tmp_path, name), "test")
    predictions = [(GLUE[name].labels or (2.5,))[0] for _ in read.rows]
    indices = [row.row_index for row in read.rows]
    written = write_submission(tmp_path / "x.tsv", GLUE[name], predictions, indices)
    told = [line.split("\t")[0] for line in written.read_text().splitlines()]
    assert told == ["index", *indices]
    assert name != "STS-B" or indices == ["3"]


def test_in_a_folder_a_file_is_named_as_the_leaderboard_does(tmp_path: Path) -> None:
    mnli = GLUE["MNLI"]
    for split, name in {
        "test": "MNLI-m.tsv",
        "test_matched": "MNLI-m.tsv",
        "test_mismatched": "MNLI-mm.tsv",
    }.items():
        assert submission_file(tmp_path, mnli, split) == tmp_path / name
        assert submission_file(tmp_path / "x.tsv", mnli, split) == tmp_path / "x.tsv"
    assert submission_file(tmp_path, GLUE["AX"], "diagnostic") == tmp_path / "AX.tsv"
    with pytest.raises(ConfigError, match=r"asks for no 'valid' of MNLI; name a \.tsv file in"):
        submission_file(tmp_path, mnli, "valid")


def test_rows_without_an_index_count_from_0(tmp_path: Path) -> None:
    path = write_submission(tmp_path / "x.tsv", GLUE["RTE"], ["entailment"] * 2, ["", ""])
    assert path.read_text() == "index\tprediction\n0\tentailment\n1\tentailment\n"


def test_what_the_leaderboard_would_refuse_is_not_written(tmp_path: Path) -> None:
    wrong: list[tuple[str, list[str | float], str]] = [
        (
            "RTE",
            ["neutral"],
            "prediction 'neutral' is none of RTE's labels: entailment, not_entail",
        ),
        ("RTE", [1.0], "prediction 1.0 is none of RTE's labels"),
        ("STS-B", [math.nan], "prediction nan of STS-B is not a finite number"),
        ("STS-B", ["3"], "prediction '3' of STS-B is not a finite number"),
    ]
    for name, predictions, told in wrong:
        with pytest.raises(ConfigError, match=told):
            write_submission(tmp_path / "x.tsv", GLUE[name], predictions)
    with pytest.raises(ConfigError, match="1 predictions for 2 rows of RTE: there must be one for"):
        write_submission(tmp_path / "x.tsv", GLUE["RTE"], ["entailment"], ["0", "1"])
    assert not (tmp_path / "x.tsv").exists()
    with pytest.raises(WriteError, match=r"cannot write .*no/x.tsv: No such file or directory"):
        write_submission(tmp_path / "no" / "x.tsv", GLUE["RTE"], ["entailment"])
