"""Running text that is never held: what it gives is what it gave when it was."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from saccade.data.tokens import streamed_encoding, text_sample
from saccade.errors import DataError
from saccade.tasks import corpus as corpora
from saccade.tasks import running_texts
from saccade.tasks.base import Preparation
from saccade.tasks.language.task import LanguageModelling, LanguageSettings
from tests.marks import one_fast

HOW = Preparation(budget=64, seed=3)


@pytest.fixture(autouse=True)
def everything_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SACCADE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(corpora, "KEPT_FROM", 0)


def batches(task: LanguageModelling) -> list[Any]:
    return [task.batch(position) for position in range(9)]


TEXT = "".join(
    f"{'the' if n % 3 else 'a  small'} dog {n} sees,{' ' if n % 5 else chr(10) * 2}and é birds "
    for n in range(300)
)


@pytest.mark.parametrize("level", one_fast(["bpe", "words", "characters"]))
@pytest.mark.parametrize("with_valid", one_fast([False, True]))
def test_running_text_is_never_held_and_gives_what_it_gave_when_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: Any, with_valid: bool
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "train.txt").write_text(TEXT, encoding="utf-8-sig")
    if with_valid:
        (data / "valid.txt").write_text(TEXT[:500])
    how = LanguageSettings(data=str(data), level=level, vocabulary=300, window=16)
    monkeypatch.setattr(corpora, "KEPT_FROM", 1 << 30)
    held = LanguageModelling(how, HOW)
    monkeypatch.setattr(corpora, "KEPT_FROM", 0)
    monkeypatch.setattr(streamed_encoding, "PIECE", 40)
    monkeypatch.setattr("saccade.data.readers.text.running.CHUNK", 7)
    monkeypatch.setattr(streamed_encoding, "SHARD", 5)
    monkeypatch.setattr("saccade.data.readers.text.plain.document", lambda _: pytest.fail("whole"))
    for _ in range(2):
        kept = LanguageModelling(how, HOW)
        assert kept.report == held.report
        assert kept.vocabulary.to_json() == held.vocabulary.to_json()
        assert kept.fingerprint() == held.fingerprint()
        for one, other in zip(batches(kept), batches(held), strict=True):
            assert torch.equal(one.words.tokens, other.words.tokens)
            assert torch.equal(one.labels, other.labels)


def test_running_text_that_is_stopped_goes_on_after_the_last_shard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "book.txt").write_text(TEXT)
    how = LanguageSettings(data=str(tmp_path / "book.txt"), vocabulary=300, window=16)
    monkeypatch.setattr(streamed_encoding, "PIECE", 40)
    monkeypatch.setattr(running_texts, "PIECE", 40)
    monkeypatch.setattr(streamed_encoding, "SHARD", 20)
    fingerprint = LanguageModelling(how, HOW).fingerprint()
    monkeypatch.setenv("SACCADE_CACHE", str(tmp_path / "other"))
    seen = list[int]()

    def stop(done: int, total: int) -> None:
        seen.append(done)
        if len(seen) == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        LanguageModelling(how, Preparation(budget=64, seed=3, progress=stop))
    again = LanguageModelling(how, Preparation(budget=64, seed=3, progress=stop))
    assert seen[:6] == [20, 40, 60, 80, 100, 120]  # the fourth was noted before it was told of
    assert again.fingerprint() == fingerprint


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"one line\nanother \xff one", r":2: not UTF-8: byte 0xff at offset 17 of the text"),
        (b"one line\n\nanother \0 one", r":3: NUL character: at offset 18 of the text"),
        (b"cut short \xc3", r":1: not UTF-8: byte 0xc3 at offset 10 of the text"),
        (b"\0 and \n later \xff", r":2: not UTF-8: byte 0xff at offset 14 of the text"),
        (b"", "is empty: it holds no text"),
    ],
)
@pytest.mark.parametrize("large", [True, False])
def test_running_text_that_cannot_be_read_is_told_of_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raw: bytes, why: str, large: bool
) -> None:
    (tmp_path / "book.txt").write_bytes(raw)
    monkeypatch.setattr("saccade.data.readers.text.running.CHUNK", 4)
    monkeypatch.setattr(corpora, "KEPT_FROM", 0 if large else 1 << 30)
    with pytest.raises(DataError, match=why):
        LanguageModelling(LanguageSettings(data=str(tmp_path / "book.txt")), HOW)


def test_a_tokenizer_for_running_text_is_trained_on_some_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "book.txt").write_text(TEXT)
    monkeypatch.setattr(streamed_encoding, "PIECE", 40)
    monkeypatch.setattr(text_sample, "FEWEST_TEXTS", 100)
    monkeypatch.setattr(text_sample, "FOR_A_TOKEN", 0)
    monkeypatch.setattr(text_sample, "CHARACTERS", 30)
    how = LanguageSettings(data=str(tmp_path / "book.txt"), vocabulary=300, window=16)
    task = LanguageModelling(how, HOW)
    (told,) = [line for line in task.report if "tokenizer" in line]
    some = re.fullmatch(r"tokenizer: trained on (\d+) of (\d+) pieces of .*, drawn by chance", told)
    assert some is not None
    assert 10 < int(some[1]) < int(some[2]) // 2
