"""A corpus in chapters: a later start looks through those it reaches, and learns the same."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from saccade.data.tokens import streamed_encoding
from saccade.tasks import chapters
from saccade.tasks import corpus as corpora
from saccade.tasks.base import Preparation
from saccade.tasks.chapters import ChapteredBatches
from saccade.tasks.language.task import LanguageModelling, LanguageSettings
from saccade.tasks.masked.task import MaskedLanguageModelling, MaskedSettings
from saccade.tasks.translation.task import Translation
from tests.tasks.test_corpus import HOW, PAIRS, keep_everything, settings, write_pairs


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return keep_everything(monkeypatch, tmp_path / "cache")


def in_chapters(patch: pytest.MonkeyPatch) -> None:
    """Chapters of twenty rows and more, in stretches of four."""
    patch.setattr(chapters, "CHAPTER_ROWS", 20)
    patch.setattr(chapters, "STRETCH", 4)


MANY: dict[str, Callable[[Path, Preparation], Any]] = {
    "translation": lambda data, how: Translation(settings(data), how),
    "language": lambda data, how: LanguageModelling(
        LanguageSettings(data=str(data), unit="lines", vocabulary=300, window=40), how
    ),
    "stream": lambda data, how: LanguageModelling(
        LanguageSettings(data=str(data), unit="stream", vocabulary=300, window=8), how
    ),
    "masked": lambda data, how: MaskedLanguageModelling(
        MaskedSettings(data=str(data), vocabulary=300, window=40), how
    ),
    "pairs": lambda data, how: MaskedLanguageModelling(
        MaskedSettings(data=str(data), vocabulary=300, window=80, next_sentence=True), how
    ),
    "pieces": lambda data, how: MaskedLanguageModelling(
        MaskedSettings(data=str(data), vocabulary=300, window=12, unit="stream"), how
    ),
}


def data_for(name: str, folder: Path) -> Path:
    if name == "translation":
        return write_pairs(folder / "data", PAIRS)
    (folder / "data.txt").write_text("\n".join(source for source, _ in PAIRS))
    return folder / "data.txt"


def same_epochs(one: Any, other: Any) -> bool:
    counts = {one.batches_per_epoch, other.batches_per_epoch}
    return len(counts) == 1 and all(
        torch.equal(a, b)
        for position in range(2 * counts.pop())
        for a, b in zip(
            tensors_of(one.batch(position)), tensors_of(other.batch(position)), strict=True
        )
    )


@pytest.mark.parametrize("batching", ["similar", "mixed"])
@pytest.mark.parametrize("name", MANY)
def test_a_later_start_looks_through_the_chapter_it_begins_with(
    name: str, batching: Any, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_chapters(monkeypatch)
    data, how = data_for(name, tmp_path), Preparation(budget=400, seed=3, batching=batching)
    cold = MANY[name](data, how)
    assert len(list(cache.glob("plan-*.lock"))) == (name != "stream")
    looked, look = list[int](), ChapteredBatches._looked_through

    def noted(self: ChapteredBatches, number: int) -> Any:
        if self.chapters > 1:
            looked.append(number)
        return look(self, number)

    monkeypatch.setattr(ChapteredBatches, "_looked_through", noted)
    warm = MANY[name](data, how)
    assert not looked
    warm.batch(0)
    assert len(looked) == (name != "stream")  # windows of a stream are all alike
    assert warm.fingerprint() == cold.fingerprint()
    assert warm.padding == cold.padding
    assert warm.report == cold.report
    assert same_epochs(warm, cold)


@pytest.mark.parametrize("batching", ["similar", "mixed"])
@pytest.mark.parametrize("name", MANY)
def test_what_is_counted_of_chapters_is_of_one_budget_and_batching_and_seed(
    name: str, batching: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_chapters(monkeypatch)
    data = data_for(name, tmp_path)
    every = [
        Preparation(budget=budget, seed=seed) for budget, seed in ((400, 3), (500, 3), (400, 4))
    ]
    every = [*every, replace(every[0], batching=batching)]
    kept = [MANY[name](data, how) for how in every]
    monkeypatch.setattr(corpora, "KEPT_FROM", 1 << 40)
    for how, ours in zip(every, kept):
        held = MANY[name](data, how)
        assert held.fingerprint() == ours.fingerprint()
        assert same_epochs(held, ours)


def tensors_of(batch: Any) -> list[torch.Tensor]:
    parts = [tensors_of(x) if isinstance(x, tuple) else [x] for x in batch]
    return [x for part in parts for x in part if isinstance(x, torch.Tensor)]


@pytest.mark.parametrize("name", MANY)
def test_in_chapters_other_data_have_another_fingerprint(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_chapters(monkeypatch)
    found = set[str]()
    for text in (PAIRS, [*PAIRS[:40], ("the cat", "le chat"), *PAIRS[41:]]):
        folder = tmp_path / str(len(found))
        folder.mkdir()
        (folder / "train.txt").write_text("\n".join(source for source, _ in text))
        (folder / "valid.txt").write_text("the dog 1 sees a bird\n" * 5)
        data = write_pairs(folder / "data", text) if name == "translation" else folder
        found.add(
            MANY[name](data, HOW if name != "pairs" else replace(HOW, budget=200)).fingerprint()
        )
    assert len(found) == 2


def test_running_texts_that_are_kept_have_the_fingerprint_of_those_that_cannot_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is kept of them is of pieces; where one text ends and another begins counts as well."""
    monkeypatch.setattr(chapters, "CHAPTER_TOKENS", 8)
    monkeypatch.setattr(streamed_encoding, "PIECE", 40)
    (tmp_path / "train.txt").write_text("the dog sees a bird " * 30)
    (tmp_path / "valid.txt").write_text("the dog sees a cat " * 4)
    given = LanguageSettings(data=str(tmp_path), unit="stream", vocabulary=300, window=8)
    kept = [LanguageModelling(given, HOW) for _ in range(2)]
    assert kept[0]._train.is_large
    monkeypatch.setattr(corpora, "KEPT_FROM", 1 << 40)
    held = LanguageModelling(given, HOW)
    assert {one.fingerprint() for one in kept} == {held.fingerprint()}
