"""Out of memory is told from every other failure, whoever ran out of it."""

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from saccade.app import cli
from saccade.errors import out_of_memory

ASKED: dict[str, Callable[[], Any]] = {
    "torch": lambda: torch.empty(1 << 55),
    "python": lambda: bytearray(1 << 62),
    "numpy": lambda: np.empty(1 << 55),
}


@pytest.mark.parametrize("who", ASKED)
@pytest.mark.parametrize("command", ["train", "predict"])
def test_asking_for_too_much_is_one_line_with_what_to_lower(
    who: str, command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "import_module", lambda _: SimpleNamespace(greedy=greedy))
    place = cli.COMMANDS[command]._replace(home="anywhere:greedy", parses=True)
    monkeypatch.setitem(cli.COMMANDS, command, place)
    monkeypatch.setattr(sys, "argv", ["saccade", command, who])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    told = capsys.readouterr().err
    assert ended.value.code == 1
    assert told.count("\n") == 1
    assert told.startswith("saccade: out of memory (")
    assert ("--train.batch-tokens" if command == "train" else "--beam") in told


def greedy(arguments: list[str]) -> int:
    ASKED[arguments[0]]()
    return 0


@pytest.mark.parametrize(
    ("error", "is_that"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"), True),
        (RuntimeError("MPS backend out of memory"), True),
        (OSError(12, "Cannot allocate memory"), True),
        (OSError(28, "No space left on device"), False),
        (RuntimeError("size mismatch"), False),
        (ValueError("out of memory"), False),
    ],
)
def test_it_is_told_from_other_failures(error: Exception, is_that: bool) -> None:
    assert out_of_memory(error) == is_that
