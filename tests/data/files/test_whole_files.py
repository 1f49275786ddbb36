"""A user's file is the old or the new one, never half of it."""

import errno
import os
import resource
import stat
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from saccade.app.look.draw.figure import write
from saccade.data.files.whole_files import write_whole
from saccade.data.glue import GLUE
from saccade.data.submission import write_submission
from saccade.errors import WriteError


@contextmanager
def no_room(size: int) -> Generator[None]:
    """No file may grow beyond so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_without_room_what_was_there_stays(tmp_path: Path) -> None:
    """Looks, figures and drawn images go through one door, submissions through another."""
    page, labels = tmp_path / "look.html", tmp_path / "CoLA.tsv"
    for old in (page, labels):
        old.write_bytes(b"old")
    with no_room(1000):
        with pytest.raises(WriteError, match=r"cannot write .*look\.html: File too large"):
            write(page, b"x" * 2000)
        with pytest.raises(WriteError, match=r"cannot write .*CoLA\.tsv: File too large"):
            write_submission(labels, GLUE["CoLA"], ["1"] * 1000)
    assert (page.read_bytes(), labels.read_bytes()) == (b"old", b"old")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["CoLA.tsv", "look.html"]


def test_a_link_leads_to_the_file_and_rights_stay(tmp_path: Path) -> None:
    place, link = tmp_path / "there.svg", tmp_path / "link.svg"
    place.write_bytes(b"old")
    place.chmod(0o600)
    link.symlink_to(place)
    write_whole(link, b"new")
    assert link.is_symlink()
    assert place.read_bytes() == b"new"
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    write_whole(tmp_path / "new.svg", b"new")
    assert (tmp_path / "new.svg").read_bytes() == b"new"


def test_two_writers_of_one_file_do_not_tear_it(tmp_path: Path) -> None:
    place, seen, ended = tmp_path / "look.json", set[bytes](), threading.Event()
    whole = {mark * 200_000 for mark in (b"a", b"b")}
    write_whole(place, min(whole))

    def read() -> None:
        while not ended.is_set():
            seen.add(place.read_bytes())

    failures = list[OSError]()

    def keep_writing(content: bytes) -> None:
        try:
            for _ in range(200):
                write_whole(place, content)
        except OSError as error:
            failures.append(error)

    reader = threading.Thread(target=read)
    writers = [threading.Thread(target=keep_writing, args=(content,)) for content in whole]
    for thread in (reader, *writers):
        thread.start()
    for writer in writers:
        writer.join()
    ended.set()
    reader.join()
    assert not failures
    assert seen <= whole
    assert [path.name for path in tmp_path.iterdir()] == ["look.json"]


def test_a_name_may_be_as_long_as_names_may_be_and_a_new_file_has_usual_rights(
    tmp_path: Path,
) -> None:
    place = tmp_path / ("x" * 255)
    write_whole(place, b"new")
    assert place.read_bytes() == b"new"
    (tmp_path / "usual").touch()
    assert place.stat().st_mode == (tmp_path / "usual").stat().st_mode


@pytest.mark.parametrize("reason", ["EACCES", "EBUSY", "EXDEV"])
@pytest.mark.parametrize("step", ["open", "replace"])
def test_where_nothing_may_be_moved_into_its_place_the_file_is_written_over(
    reason: str, step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests may run as root, whom no folder's rights stop."""
    place, usual = tmp_path / "look.json", getattr(Path, step)
    place.write_bytes(b"old")

    def refused(self: Path, *arguments: object, **more: object) -> object:
        if self.name.startswith(".tmp-"):
            raise OSError(getattr(errno, reason), "no")
        return usual(self, *arguments, **more)

    monkeypatch.setattr(Path, step, refused)
    write_whole(place, b"new")
    assert place.read_bytes() == b"new"
    with pytest.raises(OSError, match="no"):
        write_whole(tmp_path / "other.json", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["look.json"]


def test_a_pipe_takes_it(tmp_path: Path) -> None:
    pipe, taken = tmp_path / "pipe.json", list[bytes]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: taken.append(pipe.read_bytes()))
    reader.start()
    write_whole(pipe, b"new")
    reader.join(10)
    assert taken == [b"new"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_pipe_without_a_name_takes_it() -> None:
    """As /dev/stdout does, whose real path names nothing that there is."""
    out, into = os.pipe()
    write_whole(Path(f"/dev/fd/{into}"), b"new")
    os.close(into)
    assert os.read(out, 10) == b"new"
    os.close(out)
