"""Choices about scenes: one sentence is true, the others are false, and none gives itself away."""

import math
from collections import Counter
from functools import cache
from itertools import pairwise

import pytest

from saccade.data import shapes
from saccade.data.shapes import ShapeChoice
from saccade.errors import ConfigError
from tests.marks import one_fast

SPLITS = ("train", "test", "compositional", "many")


@cache
def offered(split: str, count: int = 150) -> list[tuple[shapes.Scene, ShapeChoice]]:
    scenes = [shapes.scene(split, index) for index in range(count)]
    return [(scene, one) for scene in scenes for one in shapes.choices(scene)]


@pytest.mark.slow
@pytest.mark.parametrize("split", SPLITS)
def test_just_one_sentence_is_true_and_it_is_the_caption(split: str) -> None:
    for scene, (sentences, right) in offered(split):
        assert [shapes.is_right(one, scene) for one in sentences] == [
            number == right for number in range(4)
        ]
        assert sentences[right] in shapes.captions(scene)
        assert len(set(sentences)) == 4
    for index in range(20):
        scene = shapes.scene(split, index)
        rows = shapes.choices(scene)
        assert rows == shapes.choices(scene)  # nothing but the scene decides
        assert [one.sentences[one.right] for one in rows] == list(shapes.captions(scene))


@pytest.mark.parametrize("split", one_fast(SPLITS))
def test_what_is_false_is_so_beyond_doubt(split: str) -> None:
    """It names what is not there, or contradicts a relation that is clear."""
    for scene, (sentences, right) in offered(split):
        for number, sentence in enumerate(sentences):
            said = shapes.parse(sentence)
            assert said is not None
            fitting = [
                [n for n, x in enumerate(scene.objects) if one.fits(x)] for one in said.objects
            ]
            if number == right or not all(fitting):
                continue
            there = [only for (only,) in fitting]
            seen = [shapes.relation(scene, there[x.first], there[x.second]) for x in said.relations]
            assert any(a not in (None, b.relation) for a, b in zip(seen, said.relations))


def pattern(sentence: str) -> tuple[str, ...]:
    """A sentence with every colour, kind and relation taken away."""
    for words, name in (
        (shapes.RELATIONS, "relation"),
        (shapes.COLOURS, "colour"),
        (shapes.KINDS, "kind"),
    ):
        for one in words:
            sentence = sentence.replace(f" {one} " if name == "relation" else one, f" {name} ")
    return tuple("a" if word == "an" else word for word in sentence.split())


@pytest.mark.parametrize("split", SPLITS)
def test_all_four_are_of_one_pattern_and_each_differs_from_two_others_by_one_change(
    split: str,
) -> None:
    for _, (sentences, _) in offered(split):
        assert len({pattern(f" {one}") for one in sentences}) == 1
        words = [set(one.replace(",", "").split()) for one in sentences]
        # Two changes, each in two of the four: every word is in none, two or all of them, or it is
        # one of two that were exchanged and is always there.
        counts = Counter(word for some in words for word in some if word not in ("a", "an"))
        assert set(counts.values()) <= {2, 4}
        # Things that share a colour or a kind do so in all four: scenes have more of these than
        # chance would make.
        for named in (shapes.COLOURS, shapes.KINDS):
            assert len({len(some & set(named)) for some in words}) == 1


@pytest.mark.slow
def test_the_right_one_is_in_every_place_alike() -> None:
    places = Counter(one.right for _, one in offered("train", 600))
    assert all(abs(places[n] / 3000 - 0.25) < 0.03 for n in range(4))


def parts(sentence: str) -> list[str]:
    words = sentence.replace(",", " ,").split()
    pairs = [f"{a} {b}" for a, b in pairwise(words)]
    return [*words, *pairs, *(f"{a}+{b}" for a in set(words) for b in set(words) if a < b)]


@pytest.mark.slow
def test_who_reads_the_sentences_alone_can_only_guess() -> None:
    """Counts of words, of pairs of words and of words that come together say nothing."""
    rows = [one for _, one in offered("train", 900)]
    learnt, held_out = rows[:3000], rows[3000:]
    of_right, of_wrong = Counter[str](), Counter[str]()
    for sentences, right in learnt:
        for number, sentence in enumerate(sentences):
            (of_right if number == right else of_wrong).update(parts(sentence))

    def likely(sentence: str) -> float:
        return sum(math.log((3 * of_right[x] + 3) / (of_wrong[x] + 3)) for x in parts(sentence))

    hits = [
        max(range(4), key=lambda n: likely(sentences[n])) == right for sentences, right in held_out
    ]
    assert abs(sum(hits) / len(hits) - 0.25) < 0.04
    longest = [max(range(4), key=lambda n: len(one.sentences[n])) == one.right for one in held_out]
    assert abs(sum(longest) / len(longest) - 0.25) < 0.04


def test_no_wrong_sentence_has_a_pair_that_only_the_compositional_split_shows() -> None:
    for _, (sentences, _) in offered("train"):
        for sentence in sentences:
            said = shapes.parse(sentence)
            assert said is not None
            assert not any(shapes.is_held_out(str(one.colour), one.kind) for one in said.objects)


def test_figures_have_none() -> None:
    with pytest.raises(ConfigError, match="choices are about shapes; take a scene without figures"):
        shapes.choices(shapes.scene("biased-train", 0))
