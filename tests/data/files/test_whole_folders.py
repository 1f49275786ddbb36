"""Folders that appear whole: whoever waits for one says for whom."""

import logging
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from saccade.data.files import whole_folders
from saccade.data.files.whole_folders import sealed_index, whole_folder


def test_who_waits_says_for_whom_and_for_what(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home, begun, end = tmp_path / "tokens-1", threading.Event(), threading.Event()

    def slowly(_: Path) -> dict[str, Any]:
        begun.set()
        assert end.wait(20)
        return {"made": 1}

    first = threading.Thread(target=lambda: whole_folder(home, sealed_index, slowly))
    second = threading.Thread(
        target=lambda: whole_folder(home, sealed_index, lambda _: pytest.fail("made twice"))
    )
    with caplog.at_level(logging.WARNING):
        first.start()
        assert begun.wait(20)
        second.start()
        while not caplog.messages:
            assert second.is_alive()
        end.set()
        first.join()
        second.join()
    (told,) = caplog.messages
    assert told.startswith(f"waiting for process {os.getpid()} on ")
    assert told.endswith(f", which makes {home}")
    assert sealed_index(home) == {"made": 1}


def test_who_waits_long_is_told_how_much_is_there(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whole_folders, "TOLD_EVERY", 0.0)
    home, begun, end = tmp_path / "made", threading.Event(), threading.Event()

    def slowly(folder: Path) -> dict[str, int]:
        (folder / "tokens").write_bytes(bytes(3_000_000))
        begun.set()
        assert end.wait(20)
        return {"made": 1}

    threads = [
        threading.Thread(target=lambda: whole_folder(home, sealed_index, slowly)) for _ in "ab"
    ]
    with caplog.at_level(logging.WARNING):
        threads[0].start()
        assert begun.wait(20)
        threads[1].start()
        while len(caplog.messages) < 2:
            assert threads[1].is_alive()
        end.set()
        for thread in threads:
            thread.join()
    assert ": 3 MB are there, 0.0 MB/s, 0 s" in caplog.messages[1]


def test_nobody_is_told_of_where_nobody_waits(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        assert whole_folder(tmp_path / "x", sealed_index, lambda _: {"made": 2}) == {"made": 2}
    assert caplog.messages == []
