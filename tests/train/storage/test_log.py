"""metrics.jsonl after a resume holds what led to the checkpoint and nothing else."""

import json
from pathlib import Path

import pytest

from saccade.errors import RunError, WriteError
from saccade.train.storage.log import Log, read_validations


def steps(path: Path) -> list[int]:
    return [json.loads(line)["step"] for line in path.read_text().splitlines()]


def test_resuming_forgets_what_lies_beyond_the_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    log = Log(path, after=0)
    for step in range(1, 8):
        log.write(step, {"loss": step / 3})
    before = path.read_bytes().splitlines()
    Log(path, after=4).write(5, {"loss": 0.0})
    assert steps(path) == [1, 2, 3, 4, 5]
    assert path.read_bytes().splitlines()[:4] == before[:4]


TORN = [
    b'{"step": 3, "lo',
    b'{"step": 3',
    b'"step"',
    b"3",
    b"\xff\xfe",
    b"{}",
    b'{"step": "x"}',
    b"[",
]


@pytest.mark.parametrize("torn", TORN)
def test_a_torn_line_belongs_to_no_step(torn: bytes, tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"step": 1}\n{"step": 2}\n' + torn)
    Log(path, after=9).write(3, {})
    assert steps(path) == [1, 2, 3]


def test_validations_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    log = Log(path, after=0)
    log.write(1, {"loss": 2.0})
    log.write(2, {"valid_AP": 0.1 + 0.2, "valid_loss": float("nan")})
    log.write(4, {"valid_AP": 1})
    assert read_validations(path) == {2: {"AP": 0.1 + 0.2}, 4: {"AP": 1.0}}


FOREIGN = [
    b'{"step": -1, "valid_AP": 1.0}',
    b'{"step": 1e3, "valid_AP": 1.0}',
    *(b'{"step": 3, "valid_AP": %s}' % value for value in (b"true", b"1e999", b"NaN", b'"a"')),
    b'{"step": 3, "valid_AP": 1%s}' % (b"0" * 400),
    b"[" * 100_000,
]


@pytest.mark.parametrize("line", [*TORN, *FOREIGN])
def test_lines_of_nobody_are_no_validations(line: bytes, tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(line + b'\n{"step": 2, "valid_AP": 0.5}\n' + line)
    assert read_validations(path) == {2: {"AP": 0.5}}


def test_a_folder_is_no_diary(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="is a directory where a file should be"):
        read_validations(tmp_path)


def test_a_number_survives_the_log_to_its_last_bit(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    Log(path, after=0).write(1, {"loss": 0.1 + 0.2})
    assert json.loads(path.read_text())["loss"] == 0.1 + 0.2


def test_a_log_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    log = Log(tmp_path / "metrics.jsonl", after=0)
    (tmp_path / "metrics.jsonl").mkdir()
    with pytest.raises(WriteError, match=r"metrics\.jsonl: Is a directory \(.* bytes needed"):
        log.write(1, {})


def test_tensorboard_gets_the_same_numbers(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    log = Log(tmp_path / "metrics.jsonl", after=0, tensorboard=True)
    for step in (1, 2, 3):
        log.write(step, {"loss": step / 2})
    log.close()
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload().Scalars("loss")
    assert [(event.step, event.value) for event in events] == [(1, 0.5), (2, 1.0), (3, 1.5)]


def test_a_validation_that_is_owed_is_forgotten_and_its_update_is_not(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    log = Log(path, after=0)
    for step in (4, 5):
        log.write(step, {"loss": 1.0})
        log.write(step, {"valid_loss": 2.0})
    kept = path.read_bytes().splitlines()[:3]
    Log(path, after=5, owed=True)
    assert path.read_bytes().splitlines() == kept
