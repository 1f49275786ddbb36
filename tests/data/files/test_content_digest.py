"""A digest of files: that of their bytes, however it came about."""

import hashlib
import os
import time
from pathlib import Path

import pytest

from saccade.data.files import file_state
from saccade.data.files.content_digest import content_digest


def aged(path: Path, text: str, *, seconds: int = 60) -> Path:
    """A file that nobody has written for a while, as far as the clock can be told so."""
    path.write_text(text)
    then = time.time_ns() - seconds * 10**9
    os.utime(path, ns=(then, then))
    return path


@pytest.fixture(autouse=True)
def nothing_is_young(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time at which a file's status changed cannot be set back, so here it never is recent."""
    monkeypatch.setattr(file_state, "YOUNG", -(10**15))


def test_equal_bytes_have_one_digest_wherever_they_lie(tmp_path: Path) -> None:
    one, other = aged(tmp_path / "a", "x"), aged(tmp_path / "b", "x", seconds=90)
    memory = tmp_path / "memory"
    assert content_digest([one], memory) == content_digest([other], memory)
    assert content_digest([one, other], memory) != content_digest([one], memory)


def test_the_order_of_files_counts(tmp_path: Path) -> None:
    one, other = aged(tmp_path / "a", "x"), aged(tmp_path / "b", "y")
    assert content_digest([one, other], tmp_path) != content_digest([other, one], tmp_path)


def test_a_file_is_read_once_for_as_long_as_nobody_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, memory = aged(tmp_path / "a", "x"), tmp_path / "memory"
    digest = content_digest([path], memory)
    monkeypatch.setattr(hashlib, "file_digest", lambda *_: pytest.fail("read again"))
    assert content_digest([path], memory) == digest


def test_a_change_is_seen_though_size_and_time_are_the_same(tmp_path: Path) -> None:
    path, memory = aged(tmp_path / "a", "x"), tmp_path / "memory"
    before, status = content_digest([path], memory), path.stat()
    time.sleep(0.02)
    path.write_text("y")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert path.stat().st_mtime_ns == status.st_mtime_ns
    assert content_digest([path], memory) != before


def test_what_was_just_written_is_not_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_state, "YOUNG", 2 * 10**9)
    path, memory = tmp_path / "a", tmp_path / "memory"
    path.write_text("x")
    content_digest([path], memory)
    assert not memory.exists()


@pytest.mark.parametrize("note", ["", "[]", "{}", '{"state": 1}'])
def test_a_damaged_memory_is_no_memory(note: str, tmp_path: Path) -> None:
    path, memory = aged(tmp_path / "a", "x"), tmp_path / "memory"
    before = content_digest([path], memory)
    (kept,) = memory.iterdir()
    kept.write_text(note)
    assert content_digest([path], memory) == before


def test_where_nothing_can_be_remembered_the_digest_is_the_same(tmp_path: Path) -> None:
    path = aged(tmp_path / "a", "x")
    (tmp_path / "file").write_text("not a folder")
    assert content_digest([path], tmp_path / "file") == content_digest([path], tmp_path / "b")
