"""Several processes encode: the same shards in the same order, whoever is killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest
import torch

from saccade.data.tokens import parallel_encoding, streamed_encoding
from saccade.data.tokens.parallel_encoding import THREADS, encoded_in_parallel
from saccade.data.tokens.streamed_encoding import encoded_shards
from saccade.data.tokens.token_shards import Shard
from saccade.data.tokens.vocabulary import Vocabulary

ROWS = [(f"the dog {n} sees {'a cat ' * (n % 5)}", f"le chien {n * n}") for n in range(97)]
VOCABULARY = Vocabulary.train((text for row in ROWS for text in row), level="bpe", size=300)


@pytest.fixture(autouse=True)
def short_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed_encoding, "SHARD", 10)


def same(ones: list[Shard], others: list[Shard]) -> bool:
    return len(ones) == len(others) and all(
        torch.equal(one.marks, other.marks)
        and all(
            torch.equal(a.flat, b.flat) and torch.equal(a.starts, b.starts)
            for a, b in zip(one.columns, other.columns, strict=True)
        )
        for one, other in zip(ones, others, strict=True)
    )


@pytest.mark.slow
@pytest.mark.parametrize("first", [0, 30])
def test_shards_are_those_of_one_process(first: int, capfd: pytest.CaptureFixture[str]) -> None:
    VOCABULARY.encode_all(["warm", "up"])  # its threads have run when processes are forked
    threads = os.environ.get(THREADS)
    found = list(encoded_in_parallel(VOCABULARY, iter(ROWS), first=first, processes=3))
    assert same(found, list(encoded_shards(VOCABULARY, ROWS, first=first)))
    assert len(found) == -(-(97 - first) // 10)
    assert os.environ.get(THREADS) == threads
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_what_a_killed_process_had_is_encoded_here() -> None:
    def killing() -> Iterator[tuple[str, ...]]:
        for number, row in enumerate(ROWS):
            if number == 35:
                for child in psutil.Process().children():
                    child.kill()
            yield row

    found = list(encoded_in_parallel(VOCABULARY, killing(), first=0, processes=2))
    assert same(found, list(encoded_shards(VOCABULARY, ROWS, first=0)))


@pytest.mark.slow
def test_nobody_is_left_when_reading_stops_or_the_rows_are_bad() -> None:
    def bad() -> Iterator[tuple[str, ...]]:
        yield from ROWS[:25]
        raise ValueError("a bad row")

    before = psutil.Process().children()  # of other tests
    with pytest.raises(ValueError, match="a bad row"):
        list(encoded_in_parallel(VOCABULARY, bad(), first=0, processes=2))
    shards = encoded_in_parallel(VOCABULARY, iter(ROWS), first=0, processes=2)
    next(shards)
    shards.close()  # type: ignore[attr-defined]
    assert set(psutil.Process().children()) <= set(before)


ENDLESS = """
import itertools
from saccade.data.tokens.parallel_encoding import encoded_in_parallel
from saccade.data.tokens.vocabulary import Vocabulary
vocabulary = Vocabulary.train(["a dog"], level="characters", size=20)
for shard in encoded_in_parallel(vocabulary, itertools.repeat(("a dog",)), first=0, processes=2):
    print("shard", flush=True)
"""


@pytest.mark.slow
def test_nobody_is_left_when_the_parent_is_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "shard\n"
        children = psutil.Process(process.pid).children()
        process.send_signal(signal.SIGKILL)
    assert len(children) == 2
    gone, alive = psutil.wait_procs(children, timeout=10)
    assert (len(gone), alive) == (2, [])


def test_there_are_no_more_processes_than_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})
    assert parallel_encoding.workers() == 3
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)))
    assert parallel_encoding.workers() == parallel_encoding.MOST
