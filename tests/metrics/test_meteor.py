"""METEOR is nltk's, of the best reference, and missing where nltk or WordNet are."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from saccade.metrics.meteor import MISSING, nltk_meteor


class Synonyms:
    """A WordNet in which a few words mean the same."""

    def synsets(self, word: str) -> list[Any]:
        same = {"couch", "sofa"}
        named = [SimpleNamespace(name=lambda w=w: w) for w in sorted(same)]
        return [SimpleNamespace(lemmas=lambda: named)] if word in same else []


class Nothing:
    def synsets(self, word: str) -> list[Any]:
        raise LookupError("Resource wordnet not found")


@pytest.mark.parametrize(
    ("caption", "references", "matches", "chunks"),
    [
        ("A dog runs .", ["a dog runs"], 3, 1),  # case and marks do not count
        ("dogs running", ["dog runs"], 2, 1),  # the same stems
        ("a red sofa", ["a red couch"], 3, 1),
        ("b a", ["a b"], 2, 2),
        ("a dog runs", ["nothing alike here", "a dog runs"], 3, 1),
    ],
)
def test_words_match_as_they_are_by_stem_or_as_synonyms(
    caption: str, references: list[str], matches: int, chunks: int
) -> None:
    pytest.importorskip("nltk")
    found = nltk_meteor([caption], [references], wordnet=Synonyms())
    assert found == pytest.approx(100 * (1 - 0.5 * (chunks / matches) ** 3))


def test_precision_counts_a_tenth_of_recall_and_captions_are_averaged() -> None:
    pytest.importorskip("nltk")
    scores = [
        nltk_meteor([caption], [["a dog runs on grass"]], wordnet=Synonyms())
        for caption in ("a dog", "cat", "")
    ]
    harmonic = 1.0 * 0.4 / (0.9 * 1.0 + 0.1 * 0.4)
    assert scores == pytest.approx([100 * harmonic * (1 - 0.5 / 8), 0, 0])
    same = nltk_meteor(["a dog"], [["a dog"]], wordnet=Synonyms())
    references = [["a dog runs on grass"], ["a dog"]]
    mean = nltk_meteor(["a dog", "a dog"], references, wordnet=Synonyms())
    assert mean == pytest.approx((scores[0] + same) / 2)  # type: ignore[operator]


def test_without_nltk_or_wordnet_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert nltk_meteor(["a dog"], [["a dog"]], wordnet=Nothing()) is None
    monkeypatch.setitem(sys.modules, "nltk.translate.meteor_score", None)
    assert nltk_meteor(["a dog"], [["a dog"]], wordnet=Synonyms()) is None
    assert "nltk.downloader wordnet" in MISSING
