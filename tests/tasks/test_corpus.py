"""A corpus that is kept: the same batches as ever, made once, and never those of other data."""

import gzip
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from saccade.data.batching.ragged import Ragged
from saccade.data.tokens import streamed_encoding, text_sample
from saccade.data.tokens.streamed_encoding import StreamEncoder
from saccade.errors import DataError
from saccade.tasks import corpus as corpora
from saccade.tasks.base import Preparation
from saccade.tasks.language.task import LanguageModelling, LanguageSettings, read_language
from saccade.tasks.masked.task import MaskedLanguageModelling, MaskedSettings, read_masked
from saccade.tasks.translation.task import Translation, TranslationSettings, read_corpus
from saccade.tasks.translation.task import collate as collate_pairs

PAIRS = [
    (f"the dog {i % 7} sees {'a cat and ' * (i % 4)}a bird", f"le chien {i} voit")
    for i in range(90)
]
HOW = Preparation(budget=64, seed=3)


def keep_everything(patch: pytest.MonkeyPatch, folder: Path) -> Path:
    """Whatever is read is kept there, in shards of some rows."""
    patch.setenv("SACCADE_CACHE", str(folder))
    patch.setattr(corpora, "KEPT_FROM", 0)
    patch.setattr(streamed_encoding, "SHARD", 16)
    return folder


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return keep_everything(monkeypatch, tmp_path / "cache")


def write_pairs(folder: Path, pairs: list[tuple[str, str]], split: str = "train") -> Path:
    folder.mkdir(exist_ok=True)
    for side, ending in enumerate(("en", "fr")):
        lines = "".join(pair[side] + "\n" for pair in pairs)
        (folder / f"{split}.{ending}").write_text(lines)
    return folder


def settings(data: Path, **options: Any) -> TranslationSettings:
    given: dict[str, Any] = {"source": "en", "target": "fr", "vocabulary": 300, **options}
    return TranslationSettings(data=str(data), **given)


def batches(task: Any, count: int = 9) -> list[Any]:
    return [task.batch(position) for position in range(count)]


def same(ones: list[Any], others: list[Any]) -> bool:
    return all(
        torch.equal(a.labels, b.labels) and torch.equal(a.source.tokens, b.source.tokens)
        for a, b in zip(ones, others, strict=True)
    )


def in_lists(task: Translation, longest: int) -> tuple[str, list[Any]]:
    """Fingerprint and batches as runs had them when all was held in lists."""
    parts = list[Ragged]()
    for split, most in (("train", longest), ("valid", 10 * longest)):
        pairs = read_corpus(task.settings, split).pairs
        sides = [task.vocabulary.encode_all([pair[side] for pair in pairs]) for side in (0, 1)]
        fits = [max(len(a), len(b)) < most for a, b in zip(*sides)]
        parts += [Ragged.of([row for row, fit in zip(side, fits) if fit]) for side in sides]
    lengths = torch.stack([part.lengths + 1 for part in parts[:2]], dim=1)
    plan = HOW.make_batching(lengths, budget=HOW.budget, seed=HOW.seed)
    every = [rows for epoch in range(9) for rows in plan.epoch(epoch)][:9]
    made = [collate_pairs((parts[0], parts[1]), rows, task.vocabulary.special) for rows in every]
    return " ".join(part.fingerprint() for part in parts), made


@pytest.mark.parametrize("longest", [200, 12])
@pytest.mark.parametrize("with_valid", [False, True])
@pytest.mark.parametrize("kept_from", [0, 1 << 40])
def test_batches_and_fingerprints_are_those_that_runs_have_always_had(
    longest: int, with_valid: bool, kept_from: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpora, "KEPT_FROM", kept_from)
    data = write_pairs(tmp_path / "data", PAIRS)
    if with_valid:
        write_pairs(data, PAIRS[::5], "valid")
    for _ in range(2):
        task = Translation(settings(data, longest=longest), HOW)
        fingerprint, made = in_lists(task, longest)
        assert task.fingerprint() == fingerprint
        assert same(batches(task), made)
        train, valid = (read_corpus(task.settings, split).report for split in ("train", "valid"))
        assert task.report[:2] == [f"train: {train}", f"valid: {valid}"]


@pytest.mark.parametrize("unit", ["lines", "stream"])
@pytest.mark.parametrize("rows", [1, 2, 40])
@pytest.mark.parametrize("form", ["txt", "jsonl"])
def test_texts_are_those_that_runs_have_always_had(
    unit: Any, rows: int, form: str, tmp_path: Path
) -> None:
    lines = [source for source, _ in PAIRS[:rows]]
    if (rows, unit) == (1, "lines"):
        lines *= 2
    shown = [f'{{"text": "{line}"}}' for line in lines] if form == "jsonl" else lines
    path = tmp_path / f"data.{form}"
    path.write_text("\n".join(shown))
    given = LanguageSettings(data=str(path), unit=unit, window=16, vocabulary=300)
    for _ in range(2):
        task = LanguageModelling(given, HOW)
        parts = [read_language(given, split) for split in ("train", "valid")]
        encoded = [task.vocabulary.encode_all(texts) for texts, _ in parts]
        if unit == "lines":
            encoded[0] = [line for line in encoded[0] if len(line) < 16]
        old = " ".join(Ragged.of(rows).fingerprint() for rows in encoded)
        assert task.fingerprint() == old
        assert task.report[:2] == [f"train: {parts[0][1]}", f"valid: {parts[1][1]}"]


@pytest.mark.parametrize("whole_words", [False, True])
def test_texts_to_hide_words_of_are_those_that_runs_have_always_had(
    whole_words: bool, tmp_path: Path
) -> None:
    path = tmp_path / "data.txt"
    path.write_text("\n".join(source for source, _ in PAIRS))
    given = MaskedSettings(data=str(path), vocabulary=300, whole_words=whole_words)
    for _ in range(2):
        task = MaskedLanguageModelling(given, HOW)
        parts = [read_masked(given, split) for split in ("train", "valid")]
        encoded = [Ragged.of(task.vocabulary.encode_all(texts)) for texts, _ in parts]
        assert task.fingerprint() == " ".join(one.fingerprint() for one in encoded)
        assert task.report[:2] == [f"train: {parts[0][1]}", f"valid: {parts[1][1]}"]


def count_encodings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many texts were encoded, each time some were."""
    counts, encode = list[int](), StreamEncoder.encode

    def counting(self: StreamEncoder, texts: Any) -> Ragged:
        ragged = encode(self, texts)
        counts.append(len(ragged))
        return ragged

    monkeypatch.setattr(StreamEncoder, "encode", counting)
    return counts


def test_a_second_start_encodes_nothing_and_trains_no_tokenizer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, counts = write_pairs(tmp_path / "data", PAIRS), count_encodings(monkeypatch)
    first = Translation(settings(data), HOW)
    assert sum(counts) == 2 * len(PAIRS)
    monkeypatch.setattr(corpora, "learnt", lambda *_, **__: pytest.fail("trained again"))
    second = Translation(settings(data, longest=20), Preparation(budget=64, seed=4))
    assert sum(counts) == 2 * len(PAIRS)
    assert second.vocabulary.to_json() == first.vocabulary.to_json()


def change_a_word(data: Path) -> dict[str, Any]:
    text = (data / "train.fr").read_text()
    (data / "train.fr").write_text(text.replace("chien 41", "chats 41"))  # as many bytes
    return {}


def swap_sides(data: Path) -> dict[str, Any]:
    return {"source": "fr", "target": "en"}


def other_tokenizer(data: Path) -> dict[str, Any]:
    return {"vocabulary": 290}


def lower_case(data: Path) -> dict[str, Any]:
    return {"lowercase": True}


def pack(data: Path) -> dict[str, Any]:
    for path in list(data.iterdir()):
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    return {}


@pytest.mark.parametrize("change", [change_a_word, swap_sides, other_tokenizer, lower_case, pack])
def test_what_changed_is_never_taken_from_the_cache(
    change: Callable[[Path], dict[str, Any]], tmp_path: Path, cache: Path
) -> None:
    data = write_pairs(tmp_path / "data", PAIRS)
    Translation(settings(data), HOW)
    given = settings(data, **change(data))
    warm = Translation(given, HOW)
    shutil.rmtree(cache)
    cold = Translation(given, HOW)
    assert warm.fingerprint() == cold.fingerprint()
    assert same(batches(warm), batches(cold))


def test_data_that_moved_are_known_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, counts = write_pairs(tmp_path / "data", PAIRS), count_encodings(monkeypatch)
    Translation(settings(data), HOW)
    before = sum(counts)
    task = Translation(settings(data.rename(tmp_path / "elsewhere")), HOW)
    assert sum(counts) == before
    assert "elsewhere" not in task.report[0]


def test_data_that_change_while_they_are_read_are_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, write = write_pairs(tmp_path / "data", PAIRS), corpora.encoded_shards

    def meanwhile(*args: Any, **options: Any) -> Any:
        yield from write(*args, **options)
        (data / "train.en").write_text((data / "train.en").read_text().upper())

    monkeypatch.setattr(corpora, "encoded_shards", meanwhile)
    with pytest.raises(DataError, match=r"train.en \+ train.fr changed while it was read; run"):
        Translation(settings(data), HOW)


@pytest.mark.parametrize("warm", [False, True])
def test_bad_rows_are_told_of_whether_tokens_are_kept_or_not(warm: bool, tmp_path: Path) -> None:
    data = write_pairs(tmp_path / "data", [*PAIRS, ("one side", ""), PAIRS[0]])
    if warm:
        Translation(settings(data, skip_bad=1), HOW)
    with pytest.raises(DataError) as told:
        Translation(settings(data), HOW)
    with pytest.raises(DataError) as read:
        read_corpus(settings(data), "train")
    assert str(told.value) == str(read.value)
    task = Translation(settings(data, skip_bad=1), HOW)
    assert "1 bad row skipped (1 one side empty); 1 duplicate kept" in task.report[0]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_nobody_may_write_to_is_a_line(tmp_path: Path, cache: Path) -> None:
    cache.mkdir(mode=0o500)
    task = Translation(settings(write_pairs(tmp_path / "data", PAIRS)), HOW)
    assert any("Permission denied" in line for line in task.report)


def test_no_room_is_a_line_and_no_failure(tmp_path: Path, cache: Path) -> None:
    data = write_pairs(tmp_path / "data", PAIRS)
    kept = Translation(settings(data), HOW)
    shutil.rmtree(cache)
    cache.write_text("a file where the folder should be")
    task = Translation(settings(data), HOW)
    assert task.report[2:] == [
        f"{what} cannot be kept in {cache} (File exists), and will be made anew at every start; "
        "make room there, or name another place by --cache"
        for what in ("a tokenizer", "tokens")
    ]
    assert task.fingerprint() == kept.fingerprint()
    assert same(batches(task), batches(kept))


def test_bad_rows_of_validation_are_told_before_anything_is_learnt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write_pairs(tmp_path / "data", PAIRS)
    write_pairs(data, [("good", "bon"), ("bad", " ")], "valid")
    monkeypatch.setattr(corpora, "learnt", lambda *_, **__: pytest.fail("learnt from train"))
    with pytest.raises(DataError, match=r"valid\.en \+ valid\.fr: 1 bad row"):
        Translation(settings(data), HOW)


def test_with_a_tokenizer_validation_is_encoded_before_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write_pairs(tmp_path / "data", PAIRS)
    write_pairs(data, PAIRS[:5], "valid")
    run = tmp_path / "run"
    run.mkdir()
    for name, raw in Translation(settings(data), HOW).assets().items():
        (run / name).write_bytes(raw)
    write_pairs(data, [("good", "bon"), ("bad", " ")], "valid")
    read = list[str]()
    encoded = corpora.CorpusEncoder.encode

    def noted(self: Any, part: Any) -> Any:
        read.append(part.corpus.stream.paths[0].stem)
        return encoded(self, part)

    monkeypatch.setattr(corpora.CorpusEncoder, "encode", noted)
    with pytest.raises(DataError, match=r"valid\.en \+ valid\.fr: 1 bad row"):
        Translation(settings(data), Preparation(budget=64, seed=3, folder=run))
    assert read == ["valid"]


@pytest.mark.slow
def test_several_processes_encode_to_the_same_tokens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write_pairs(tmp_path / "data", PAIRS)
    alone = Translation(settings(data), HOW)
    monkeypatch.setenv("SACCADE_CACHE", str(tmp_path / "other"))
    monkeypatch.setattr(corpora, "PARALLEL_FROM", 0)
    monkeypatch.setattr(corpora, "workers", lambda: 2)
    monkeypatch.setattr(corpora, "encoded_shards", lambda *_, **__: pytest.fail("alone"))
    together = Translation(settings(data), HOW)
    assert together.fingerprint() == alone.fingerprint()
    kept = [
        sorted(path.read_bytes() for path in home.glob("tokens-*/[tsm]*"))
        for home in (tmp_path / "cache", tmp_path / "other")
    ]
    assert kept[0] == kept[1]


def test_a_tokenizer_trained_on_a_sample_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, whole = write_pairs(tmp_path / "data", PAIRS), settings(tmp_path / "data")
    monkeypatch.setattr(text_sample, "MOST_TEXTS", 60)
    write_pairs(data, PAIRS[::5], "valid")
    lines = [Translation(whole, HOW).report[2] for _ in range(2)]
    assert lines[0] == lines[1]
    assert lines[0].startswith("tokenizer: trained on ")
    assert lines[0].endswith(" of 90 pairs, drawn by chance")


def test_progress_is_told_shard_by_shard(tmp_path: Path) -> None:
    told = list[tuple[int, int]]()
    how = Preparation(budget=64, seed=3, progress=lambda *seen: told.append(seen))
    Translation(settings(write_pairs(tmp_path / "data", PAIRS)), how)
    assert told == [(done, 90) for done in (16, 32, 48, 64, 80, 90)]
