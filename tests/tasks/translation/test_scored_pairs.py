"""Pairs that stream for scores are those that are read at once."""

from pathlib import Path

import pytest

from saccade.errors import DataError
from saccade.tasks.translation import scored_pairs as module
from saccade.tasks.translation.scored_pairs import scored_pairs
from saccade.tasks.translation.task import TranslationSettings, read_corpus


@pytest.mark.parametrize("split", [None, "train", "valid", "test"])
def test_they_are_the_pairs_that_are_read_at_once(split: str | None, tmp_path: Path) -> None:
    for name, count in (("train", 120), ("test", 7)):
        for side in ("en", "de"):
            text = "".join(f"{side} {name} {number}\n" for number in range(count))
            (tmp_path / f"{name}.{side}").write_text(text)
    settings = TranslationSettings(data=str(tmp_path), source="en", target="de")
    expected = read_corpus(settings, split).pairs
    found = scored_pairs(settings, split)
    assert list(found.pairs()) == expected
    assert [pair for window in found.windows() for pair in window] == expected
    assert list(found.pairs()) == expected, "a second pass gives them again"


def test_built_in_pairs_come_with_their_alignment() -> None:
    found = scored_pairs(TranslationSettings(pairs=5), "train")
    assert [(one.source, one.target) for one in found.aligned] == list(found.pairs())


def test_windows_are_bounded_and_bad_rows_stop_a_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WINDOW", 4)
    file = tmp_path / "pairs.tsv"
    file.write_text("source\ttarget\n" + "a\tb\n" * 10)
    settings = TranslationSettings(data=str(file))
    sizes = [len(window) for window in scored_pairs(settings, None).windows()]
    assert sizes == [4, 4, 2]
    file.write_text("source\ttarget\n" + "a\tb\n" * 3 + "a\t\n")
    with pytest.raises(DataError, match="1 bad row"):
        list(scored_pairs(settings, None).pairs())
