"""Files that grow by shards: whatever stops the writer, the next ends with the same bytes."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.data.files.journalled_files import (
    JOURNAL,
    FileShard,
    Notes,
    whole_shards,
    write_shards,
)

shards_of_two_files = st.lists(
    st.tuples(st.binary(max_size=6), st.binary(max_size=3)), min_size=1, max_size=6
)
Content = list[tuple[bytes, bytes]]


class Kill(BaseException):
    """Where a process would be gone."""


def shards(content: Content, before: Notes, *, dies_at: int = -1) -> Iterator[FileShard]:
    for number in range(before[-1].rows if before else 0, len(content)):
        if number == dies_at:
            raise Kill
        one, two = content[number]
        yield FileShard(1, {"one": one, "two": two})


def bytes_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@given(content=shards_of_two_files, dies_at=st.integers(0, 5), rest=st.binary(max_size=4))
def test_who_goes_on_writes_the_same_bytes(
    content: Content, dies_at: int, rest: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    whole, killed = tmp_path_factory.mktemp("whole"), tmp_path_factory.mktemp("killed")
    notes, before = write_shards(whole, lambda before: shards(content, before))
    assert (len(notes), before) == (len(content), [])
    if dies_at < len(content):
        with pytest.raises(Kill):
            write_shards(killed, lambda before: shards(content, before, dies_at=dies_at))
        with (killed / "one").open("ab") as file:
            file.write(rest)  # of a shard that was not noted
    again, before = write_shards(killed, lambda before: shards(content, before))
    assert len(before) == (dies_at if dies_at < len(content) else 0)
    assert again == notes
    assert bytes_in(killed) == bytes_in(whole)
    assert whole_shards(killed, again) == notes


@pytest.mark.parametrize("damaged", [0, 1, 2])
def test_a_damaged_shard_and_those_after_it_are_written_again(tmp_path: Path, damaged: int) -> None:
    content = [(b"abc", b"x"), (b"def", b"y"), (b"ghi", b"z")]
    write_shards(tmp_path, lambda before: shards(content, before))
    expected = bytes_in(tmp_path)
    raw = bytearray(expected["one"])
    raw[3 * damaged + 1] ^= 1
    (tmp_path / "one").write_bytes(raw)
    _, before = write_shards(tmp_path, lambda before: shards(content, before))
    assert len(before) == damaged
    assert bytes_in(tmp_path) == expected


def test_of_other_files_only_the_size_is_looked_at(tmp_path: Path) -> None:
    content = [(b"abc", b"x"), (b"def", b"y")]
    notes, _ = write_shards(tmp_path, lambda before: shards(content, before))
    (tmp_path / "one").write_bytes(b"......")
    assert whole_shards(tmp_path, notes, only=["two"]) == notes
    assert whole_shards(tmp_path, notes) == []
    (tmp_path / "one").write_bytes(b".....")
    assert whole_shards(tmp_path, notes, only=["two"]) == notes[:1]


def test_a_journal_whose_line_was_changed_is_believed_up_to_it(tmp_path: Path) -> None:
    content = [(b"abc", b"x"), (b"def", b"y")]
    write_shards(tmp_path, lambda before: shards(content, before))
    first, second = (tmp_path / JOURNAL).read_bytes().splitlines()
    note = json.loads(second.partition(b" ")[2])
    note[0] = 7
    changed = b"%s %s" % (second.partition(b" ")[0], json.dumps(note).encode())
    (tmp_path / JOURNAL).write_bytes(first + b"\n" + changed + b"\n")
    _, before = write_shards(tmp_path, lambda before: shards(content, before))
    assert [one.rows for one in before] == [1]
