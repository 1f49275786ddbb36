"""Tokens on disk: what was written is read, a kill costs a shard, and damage is made good."""

import errno
import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from saccade.data.batching.ragged import Ragged, token_type
from saccade.data.files import file_state, journalled_files
from saccade.data.tokens import token_shards as shards_of_tokens
from saccade.data.tokens.token_shards import Shard, TokenShards, token_shards

Rows = list[list[int]]
KIND = token_type(100)


def small(rows: Rows) -> Ragged:
    ragged = Ragged.of(rows)
    return Ragged(ragged.flat.to(torch.uint16), ragged.starts)


class Source:
    """Rows in two columns, the second turned round; notes from where on it was asked."""

    def __init__(self, rows: Rows, size: int, *, fails_at: int = -1) -> None:
        self.rows, self.size, self.fails_at = rows, size, fails_at
        self.asked = list[int]()

    def __call__(self, first: int) -> Iterator[Shard]:
        self.asked.append(first)
        for start in range(first, len(self.rows), self.size):
            if start == self.fails_at:
                raise KeyboardInterrupt
            some = self.rows[start : start + self.size]
            marks = torch.tensor([hash(tuple(row)) for row in some])
            yield Shard((small(some), small([row[::-1] for row in some])), marks)


def kept(home: Path, source: Source) -> TokenShards:
    return token_shards(home, KIND, source, lambda: {"rows": len(source.rows)})


def read(tokens: TokenShards) -> list[Rows]:
    return [[column[i].tolist() for i in range(len(column))] for column in tokens.columns]


def columns(rows: Rows) -> list[Rows]:
    return [rows, [row[::-1] for row in rows]]


ROWS = [[1, 2, 3], [], [4], [5, 6], [4], [7, 8, 9, 10], [11]]
sequences = st.lists(st.lists(st.integers(0, 99), max_size=5), min_size=1, max_size=12)


@given(rows=sequences, size=st.integers(1, 5))
def test_what_was_written_is_read_whatever_the_shards(
    rows: Rows, size: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    source = Source(rows, size)
    home = tmp_path_factory.mktemp("cache") / "tokens"
    for _ in range(2):
        tokens = kept(home, source)
        assert read(tokens) == columns(rows)
        assert tokens.duplicates == len(rows) - len(set(map(tuple, rows)))
        assert tokens.about == {"rows": len(rows)}
        assert tokens.columns[0].flat.dtype == torch.uint16
    assert source.asked == [0]


def test_nobody_can_change_the_file_through_what_is_mapped(tmp_path: Path) -> None:
    source = Source(ROWS, 3)
    kept(tmp_path / "tokens", source).columns[0].flat.zero_()
    assert read(kept(tmp_path / "tokens", source)) == columns(ROWS)
    assert source.asked == [0]


@pytest.mark.parametrize("fails_at", [0, 2, 4, 6])
def test_who_is_interrupted_goes_on_after_the_last_shard(fails_at: int, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        kept(tmp_path / "tokens", Source(ROWS, 2, fails_at=fails_at))
    assert not (tmp_path / "tokens").exists()
    source = Source(ROWS, 2)
    assert read(kept(tmp_path / "tokens", source)) == columns(ROWS)
    assert source.asked == [fails_at]


def _slowly(home: Path, wrote: Any) -> None:
    source = Source(ROWS, 1)

    def shards(first: int) -> Iterator[Shard]:
        for shard in source(first):
            yield shard
            wrote.value += 1
            time.sleep(0.05 if wrote.value < 4 else 60)

    token_shards(home, KIND, shards, dict[str, Any])


def test_killed_while_writing_costs_one_shard_at_most(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    wrote = context.Value("i", 0)
    child = context.Process(target=_slowly, args=(tmp_path / "tokens", wrote))
    child.start()
    while wrote.value < 4:
        time.sleep(0.01)
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    child.join()
    source = Source(ROWS, 1)
    assert read(kept(tmp_path / "tokens", source)) == columns(ROWS)
    assert source.asked == [4]


@pytest.mark.parametrize("name", ["tokens-0", "starts-1", "marks", "journal.jsonl"])
@pytest.mark.parametrize("how", ["flipped", "short", "long", "gone", "empty"])
def test_what_a_kill_has_spoilt_is_not_gone_on_from(name: str, how: str, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        kept(tmp_path / "tokens", Source(ROWS, 2, fails_at=4))
    damage(tmp_path / "tokens.tmp" / name, how)
    source = Source(ROWS, 2)
    assert read(kept(tmp_path / "tokens", source)) == columns(ROWS)
    assert source.asked[0] in ((4,) if how == "long" else (0, 2))


@pytest.mark.parametrize("name", ["tokens-0", "tokens-1", "starts-0", "marks", "index.json"])
@pytest.mark.parametrize("how", ["flipped", "short", "gone", "empty"])
def test_what_is_damaged_is_made_anew(name: str, how: str, tmp_path: Path) -> None:
    source = Source(ROWS, 2)
    kept(tmp_path / "tokens", source)
    damage(tmp_path / "tokens" / name, how)
    assert read(kept(tmp_path / "tokens", source)) == columns(ROWS)
    assert len(source.asked) == 2
    assert read(kept(tmp_path / "tokens", source)) == columns(ROWS)
    assert len(source.asked) == 2


def test_tokens_are_checked_once_for_as_long_as_nobody_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here nothing counts as just written, which would be checked again."""
    monkeypatch.setattr(file_state, "YOUNG", -(10**15))
    source, checked = Source(ROWS, 2), list[Path]()
    check = journalled_files.whole_shards

    def noted(folder: Path, *rest: Any) -> Any:
        checked.append(folder)
        return check(folder, *rest)

    monkeypatch.setattr(shards_of_tokens, "whole_shards", noted)
    for _ in range(3):
        assert read(kept(tmp_path / "tokens", source)) == columns(ROWS)
    assert checked == [tmp_path / "tokens"]
    time.sleep(0.02)  # a clock that has not moved on would say that nobody wrote
    damage(tmp_path / "tokens" / "tokens-0", "flipped")
    assert read(kept(tmp_path / "tokens", source)) == columns(ROWS)
    assert len(source.asked) == 2


def test_of_damaged_tokens_the_shards_before_the_damage_are_used_again(tmp_path: Path) -> None:
    source = Source(ROWS, 2)
    kept(tmp_path / "tokens", source)
    damage(tmp_path / "tokens" / "tokens-0", "short")  # the last shard
    assert read(kept(tmp_path / "tokens", source)) == columns(ROWS)
    assert source.asked == [0, 6]


def damage(path: Path, how: str) -> None:
    raw = bytearray(path.read_bytes())
    match how:
        case "flipped":
            raw[len(raw) // 2] ^= 1
            path.write_bytes(raw)
        case "short":
            path.write_bytes(raw[:-2])
        case "long":
            path.write_bytes(raw + b"rest of a shard")
        case "gone":
            path.unlink()
        case _:
            path.write_bytes(b"")


def _read_in_a_process(home: Path, results: Any) -> None:
    source = Source(ROWS, 2)

    def shards(first: int) -> Iterator[Shard]:
        for shard in source(first):
            time.sleep(0.1)
            yield shard

    tokens = token_shards(home, KIND, shards, dict[str, Any])
    results.put((read(tokens), source.asked))


def test_of_two_processes_one_writes_and_both_read(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    args = (tmp_path / "tokens", results)
    children = [context.Process(target=_read_in_a_process, args=args) for _ in range(2)]
    for child in children:
        child.start()
    found = [results.get(timeout=20) for _ in children]
    for child in children:
        child.join()
    assert [tokens for tokens, _ in found] == [columns(ROWS)] * 2
    assert sorted(asked for _, asked in found) == [[], [0]]


def test_a_full_disk_is_the_callers_and_leaves_nothing(tmp_path: Path) -> None:
    def shards(first: int) -> Iterator[Shard]:
        yield next(Source(ROWS, 2)(first))
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OSError, match="No space"):
        token_shards(tmp_path / "tokens", KIND, shards, dict[str, Any])
    assert not list(tmp_path.glob("tokens*/*"))


def test_large_tokens_take_four_bytes(tmp_path: Path) -> None:
    wide = Ragged.of([[70_000, 1]])

    def shards(first: int) -> Iterator[Shard]:
        yield Shard((wide,), torch.zeros(1, dtype=torch.long))

    tokens = token_shards(tmp_path / "tokens", np.dtype(np.int32), shards, dict[str, Any])
    assert tokens.columns[0][0].tolist() == [70_000, 1]
