"""BLEU and chrF are sacreBLEU's own, and the bands of length share the corpus out."""

import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from saccade.metrics.translation import score_translations

HYPOTHESES = [
    "the cat sat on the mat .",
    "Dogs are not running in the old garden today",
    "a very long sentence that goes on and on",
]
REFERENCES = [
    "the cat is on the mat .",
    "dogs are running in the garden today",
    "a very long sentence which goes on and on",
]


@pytest.mark.parametrize("lowercase", [False, True])
def test_scores_are_sacrebleus(lowercase: bool) -> None:
    scores = score_translations(HYPOTHESES, REFERENCES, [7, 7, 9], lowercase=lowercase)
    bleu = sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES], lowercase=lowercase)
    assert scores.bleu == bleu.score
    if not lowercase:
        assert scores.chrf == sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score
    assert f"case:{'lc' if lowercase else 'mixed'}" in scores.signature
    assert "nrefs:1" in scores.signature


def test_case_counts_unless_told_otherwise() -> None:
    strict = score_translations(HYPOTHESES, REFERENCES, [7, 7, 9])
    lenient = score_translations(HYPOTHESES, REFERENCES, [7, 7, 9], lowercase=True)
    assert strict.bleu < lenient.bleu
    assert strict.chrf < lenient.chrf


def test_the_reference_itself_scores_a_hundred() -> None:
    scores = score_translations(REFERENCES, REFERENCES, [7, 7, 9])
    assert scores.bleu == pytest.approx(100)
    assert scores.chrf == pytest.approx(100)


def test_each_band_of_length_is_scored_as_its_own_corpus() -> None:
    scores = score_translations(HYPOTHESES, REFERENCES, [5, 25, 1])
    assert scores.count_by_length == {"1-5": 2, "21-30": 1}
    short = sacrebleu.corpus_bleu(HYPOTHESES[::2], [REFERENCES[::2]]).score
    long = sacrebleu.corpus_bleu(HYPOTHESES[1:2], [REFERENCES[1:2]]).score
    assert scores.bleu_by_length == {"1-5": short, "21-30": long}


@given(st.lists(st.integers(1, 20_000), min_size=1, max_size=12))
def test_bands_of_length_share_the_corpus_out(lengths: list[int]) -> None:
    texts = ["a b c d"] * len(lengths)
    scores = score_translations(texts, texts, lengths)
    assert sum(scores.count_by_length.values()) == len(lengths)
    assert set(scores.bleu_by_length) == set(scores.count_by_length)
    over = sum(words > 50 for words in lengths)
    assert scores.count_by_length.get("over 50", 0) == over
