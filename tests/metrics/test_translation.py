"""BLEU and chrF are sacreBLEU's own, and the bands of length share the corpus out."""

import re

import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from saccade.errors import ConfigError
from saccade.metrics.translation import (
    TranslationScorer,
    _bleu,
    _installed,
    choose_tokenizer,
    score_translations,
)

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
    assert scores.sentences_by_length == {"1-5": 2, "21-30": 1}
    short = sacrebleu.corpus_bleu(HYPOTHESES[::2], [REFERENCES[::2]]).score
    long = sacrebleu.corpus_bleu(HYPOTHESES[1:2], [REFERENCES[1:2]]).score
    assert scores.bleu_by_length == {"1-5": short, "21-30": long}


@given(st.lists(st.integers(0, 2), min_size=1, max_size=9), st.integers(1, 4))
def test_a_corpus_in_parts_scores_as_the_whole(rows: list[int], size: int) -> None:
    hypotheses, references = ([side[row] for row in rows] for side in (HYPOTHESES, REFERENCES))
    words = [7 + 10 * row for row in rows]
    scorer = TranslationScorer("13a", "for words between blanks")
    for first in range(0, len(rows), size):
        part = slice(first, first + size)
        scorer.add(hypotheses[part], references[part], words[part])
    assert scorer.scores() == score_translations(hypotheses, references, words)
    assert scorer.scores().bleu == sacrebleu.corpus_bleu(hypotheses, [references]).score
    assert scorer.scores().chrf == sacrebleu.corpus_chrf(hypotheses, [references]).score


@given(st.lists(st.integers(1, 20_000), min_size=1, max_size=12))
def test_bands_of_length_share_the_corpus_out(lengths: list[int]) -> None:
    texts = ["a b c d"] * len(lengths)
    scores = score_translations(texts, texts, lengths)
    assert sum(scores.sentences_by_length.values()) == len(lengths)
    assert set(scores.bleu_by_length) == set(scores.sentences_by_length)
    over = sum(words > 50 for words in lengths)
    assert scores.sentences_by_length.get("over 50", 0) == over


PERFECT = {
    "zh": ["我喜欢学习中文。", "老师看见一只小猫。"],
    "char": ["私は日本語が好きです。", "先生は子猫を見ます。"],
    "13a": ["나는 고양이를 아주 좋아한다 .", "선생님은 오늘 학교에 간다 ."],
}


@pytest.mark.parametrize(
    ("references", "tokenizer", "why"),
    [
        (PERFECT["zh"], "zh", "for Chinese references"),
        (PERFECT["char"], "char", r"for Japanese references; pip install 'sacrebleu\[ja\]'"),
        (PERFECT["13a"], "13a", r"pip install 'sacrebleu\[ko\]'"),
        (["ฉันรักภาษาไทยมาก", "ครูเห็นแมวตัวเล็ก"], "char", "a script without blanks"),
        (["ខ្ញុំចូលចិត្តភាសាខ្មែរ"], "char", "a script without blanks"),
        (["أنا أحب القراءة في المساء ."], "13a", "for words between blanks"),
        (["The word 猫 means a cat in this sentence ."], "13a", "for words between blanks"),
        (["我用iPhone学习中文。"], "zh", "for Chinese references"),
    ],
)
def test_the_tokenizer_suits_the_script_and_the_perfect_scores_a_hundred(
    references: list[str], tokenizer: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("saccade.metrics.translation._installed", lambda name: False)
    scores = score_translations(references, references, [5] * len(references))
    assert re.match(rf"{tokenizer}, .*{why}", scores.tokenizer)
    assert f"tok:{tokenizer}|" in scores.signature
    assert scores.bleu == pytest.approx(100)
    assert scores.chrf == pytest.approx(100)
    assert scores.ter == 0
    assert scores.bleu_by_length == {"1-5": pytest.approx(100)}
    other = [text[::-1] for text in references]
    worse = score_translations(other, references, [5] * len(references))
    assert worse.bleu < 100
    assert worse.ter is not None
    assert worse.ter > 0


@pytest.mark.parametrize("name", ["ja-mecab", "ko-mecab"])
def test_a_better_tokenizer_is_taken_where_it_is_installed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("saccade.metrics.translation._installed", lambda asked: asked == name)
    assert choose_tokenizer(PERFECT["char" if name == "ja-mecab" else "13a"])[0] == name


def test_ter_is_sacrebleus() -> None:
    scores = score_translations(HYPOTHESES, REFERENCES, [7, 7, 9])
    expected = sacrebleu.corpus_ter(HYPOTHESES, [REFERENCES], case_sensitive=True)
    assert scores.ter == pytest.approx(expected.score)
    assert "case:mixed|tok:tercom" in scores.ter_signature
    lenient = score_translations(HYPOTHESES, REFERENCES, [7, 7, 9], lowercase=True)
    assert lenient.ter == pytest.approx(sacrebleu.corpus_ter(HYPOTHESES, [REFERENCES]).score)
    assert "case:lc" in lenient.ter_signature
    chinese = score_translations(["我不喜欢中文。"], ["我喜欢中文。"], [5])
    assert chinese.ter == pytest.approx(100 / 6)


def test_ter_that_takes_too_long_is_given_up() -> None:
    scores = score_translations(HYPOTHESES, REFERENCES, [7, 7, 9], ter_seconds=0.0)
    assert scores.ter is None
    assert "--ter-seconds" in scores.ter_signature


def test_a_tokenizer_can_be_chosen_and_one_that_is_not_there_is_refused() -> None:
    chosen = score_translations(PERFECT["zh"], PERFECT["zh"], [5, 5], tokenize="char")
    assert "tok:char" in chosen.signature
    assert chosen.tokenizer == "char, as asked for"
    with pytest.raises(ConfigError, match="tokenize='x' is not one of sacreBLEU's: auto, 13a"):
        _bleu("x", False)
    if not _installed("ja-mecab"):
        with pytest.raises(ConfigError, match=r"ja-mecab cannot be used here: .*sacrebleu\[ja\]"):
            _bleu("ja-mecab", False)
