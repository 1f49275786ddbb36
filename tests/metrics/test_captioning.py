"""Caption scores: the definitions' own cases, laws, and the public scorers where installed."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saccade.errors import DataError
from saccade.metrics.captioning import (
    bleu_scores,
    caption_scores,
    caption_words,
    cider_d,
    rouge_l,
)

word = st.sampled_from(["a", "red", "blue", "circle", "square", "left", "of"])
sentence = st.lists(word, min_size=1, max_size=9).map(" ".join)
image = st.tuples(sentence, st.lists(sentence, min_size=1, max_size=5))
corpus = st.lists(image, min_size=1, max_size=7)
Corpus = list[tuple[str, list[str]]]


def scores(images: Corpus) -> dict[str, float]:
    return caption_scores([c for c, _ in images], [r for _, r in images])


@pytest.mark.slow
@settings(deadline=None)
@given(corpus)
def test_they_are_those_of_the_coco_evaluation(images: Corpus) -> None:
    bleu = pytest.importorskip("pycocoevalcap.bleu.bleu")
    cider = pytest.importorskip("pycocoevalcap.cider.cider")
    rouge = pytest.importorskip("pycocoevalcap.rouge.rouge")
    said = {i: [caption] for i, (caption, _) in enumerate(images)}
    right = {i: references for i, (_, references) in enumerate(images)}
    found = scores(images)
    expected = bleu.Bleu(4).compute_score(right, said, verbose=0)[0]
    for n in range(1, 5):
        ours, theirs = found[f"bleu_{n}"], 100 * expected[n - 1]
        # Theirs adds 1e-15 to counts, so that no match at all becomes a small number, not 0.
        assert ours == pytest.approx(theirs, rel=1e-6) if ours else theirs < 0.11
    assert found["rouge_l"] == pytest.approx(100 * rouge.Rouge().compute_score(right, said)[0])
    rare = cider.Cider().compute_score(right, said)[0]
    assert found["cider_d"] == pytest.approx(100 * rare, abs=1e-7)


@given(corpus)
def test_a_caption_that_is_a_reference_is_perfect_for_bleu_1_and_rouge(images: Corpus) -> None:
    perfect = [(references[0], references) for _, references in images]
    found = scores(perfect)
    assert found["bleu_1"] == pytest.approx(100)
    assert found["rouge_l"] == pytest.approx(100)


@given(corpus)
def test_the_order_of_images_and_references_does_not_matter(images: Corpus) -> None:
    shuffled = [(caption, references[::-1]) for caption, references in images[::-1]]
    found, again = scores(images), scores(shuffled)
    assert found == pytest.approx(again)


def test_cider_rewards_the_rare_word() -> None:
    references = [[("a", "red", "star")], [("a", "blue", "star")], [("a", "blue", "ring")]]
    rare = cider_d([("red",), ("blue",), ("blue",)], references)
    common = cider_d([("a",), ("a",), ("a",)], references)
    assert rare > common == 0.0  # what every image has says nothing


def test_cider_of_a_perfect_corpus_is_ten() -> None:
    sentences = [("one", "two", "three", "four", "five"), ("six", "seven", "eight", "nine", "ten")]
    assert cider_d(sentences, [[one] for one in sentences]) == pytest.approx(10)


def test_bleu_by_hand() -> None:
    # Four of five words are right, two of four pairs; as long as the reference.
    found = bleu_scores([("the", "cat", "is", "on", "it")], [[("the", "cat", "sat", "on", "is")]])
    assert found[0] == pytest.approx(4 / 5)
    assert found[1] == pytest.approx(math.sqrt(4 / 5 * 1 / 4))
    assert found[2] == 0


def test_a_short_corpus_is_punished_by_the_closest_reference() -> None:
    found = bleu_scores([("a", "b")], [[("a", "b", "c"), ("a", "b", "c", "d", "e")]])
    assert found[0] == pytest.approx(math.exp(1 - 3 / 2))


def test_rouge_by_hand() -> None:
    found = rouge_l(("a", "b", "c", "d"), [("a", "c", "e")])
    precision, recall = 2 / 4, 2 / 3
    assert found == pytest.approx(2.44 * precision * recall / (recall + 1.44 * precision))
    assert rouge_l((), [("a",)]) == 0


def test_words_are_lower_case_without_punctuation() -> None:
    assert caption_words("A dog's ball, (red)!") == ("a", "dog's", "ball", "red")


@pytest.mark.parametrize(("captions", "references"), [([], []), (["a"], []), (["a"], [[]])])
def test_what_cannot_be_scored_is_refused(captions: list[str], references: list[list[str]]) -> None:
    with pytest.raises(DataError, match="captions and"):
        caption_scores(captions, references)
