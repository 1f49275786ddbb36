"""Referring phrases: read afresh over all objects, each fits its own and no other."""

import re
from collections import Counter
from functools import cache

import pytest

from saccade.data.shapes import (
    COLOURS,
    KINDS,
    SIZES,
    ReferringPhrase,
    Scene,
    ShapesSettings,
    mask,
    referring,
    relation,
    scene,
)
from saccade.data.shapes.scenes import Thing
from saccade.errors import ConfigError
from tests.marks import one_fast

SPLITS = ("train", "many", "compositional")
SIDES = ("left of", "right of", "above", "below")
RELATED = re.compile(rf"the (.+?) ({'|'.join(SIDES)}|behind|in front of) the (.+)")


@cache
def sample(split: str, count: int = 150) -> list[tuple[Scene, ReferringPhrase]]:
    found = [scene(split, index) for index in range(count)]
    return [(one, phrase) for one in found for phrase in referring(one)]


def named(found: Scene, words: str) -> list[int]:
    """Every object that has all properties that the words name."""
    assert re.fullmatch(rf"(\w+ )*({'|'.join(KINDS)}|thing)", words)
    assert set(words.split()) <= {*KINDS, *COLOURS, *SIZES, "thing"}
    said = set(words.split()) - {"thing"}
    return [
        index
        for index, thing in enumerate(found.objects)
        if said <= {thing.kind, thing.colour, thing.size}
    ]


def edges(thing: Thing) -> dict[str, float]:
    """How far a thing reaches to each side."""
    cx, cy, w, h = thing.box
    return dict(zip(SIDES, (-(cx - w / 2), cx + w / 2, -(cy - h / 2), cy + h / 2)))


def middle(thing: Thing) -> dict[str, float]:
    return dict(zip(SIDES, (-thing.box.cx, thing.box.cx, -thing.box.cy, thing.box.cy)))


def covers(found: Scene, first: int, second: int) -> bool:
    """Whether two whole outlines share pixels, each drawn with nothing before it."""
    alone = [mask(Scene((found.objects[n],), "plain", 0), 0, 96) for n in (first, second)]
    return int((alone[0] & alone[1]).sum()) > 6  # of some 300: edges are rounded to pixels


def might_stand(found: Scene, index: int, stands: str, anchor: int) -> bool:
    """Whether somebody might say so of an object, be it ever so loosely."""
    if stands in SIDES:
        return edges(found.objects[index])[stands] > middle(found.objects[anchor])[stands]
    nearer = index > anchor
    return covers(found, index, anchor) and nearer == (stands == "in front of")


def meant(found: Scene, text: str) -> set[int]:
    """Every object that the phrase might be about."""
    match = RELATED.fullmatch(text)
    if match is None:
        return set(named(found, text.removeprefix("the ")))
    (anchor,) = named(found, match[3])
    every = [index for index in named(found, match[1]) if index != anchor]
    return {index for index in every if might_stand(found, index, match[2], anchor)}


@pytest.mark.slow
@pytest.mark.parametrize("split", SPLITS)
def test_a_phrase_fits_its_object_and_no_other(split: str) -> None:
    for found, phrase in sample(split):
        assert meant(found, phrase.text) == {phrase.thing}, phrase


@pytest.mark.parametrize("split", one_fast(SPLITS))
def test_every_object_has_a_phrase_and_no_phrase_comes_twice(split: str) -> None:
    for index in range(150):
        found = scene(split, index)
        phrases = referring(found)
        assert [*dict.fromkeys(phrase.thing for phrase in phrases)] == [*range(len(found.objects))]
        assert len({phrase.text for phrase in phrases}) == len(phrases)


def test_relations_are_said_only_where_captions_may_say_them() -> None:
    said = Counter[str]()
    for found, phrase in sample("many"):
        if match := RELATED.fullmatch(phrase.text):
            (anchor,) = named(found, match[3])
            assert relation(found, phrase.thing, anchor) == match[2]
            said[match[2]] += 1
    assert set(said) == {*SIDES, "behind", "in front of"}


def test_a_size_is_said_only_where_it_decides_and_never_alone() -> None:
    sized = 0
    for found, phrase in sample("many"):
        match = re.fullmatch(r"the (big|small) (.+)", phrase.text)
        if match:
            assert len(named(found, match[2])) > 1
            assert match[2] != "thing"
            sized += 1
    assert sized > 50


@pytest.mark.slow
def test_every_way_to_tell_an_object_apart_is_used() -> None:
    texts = [phrase.text for split in SPLITS for _, phrase in sample(split)]
    heads = Counter(" ".join(map(word_class, text.split()[1:])) for text in texts)
    looks = ("colour kind", "kind", "colour thing", "size kind", "size colour thing")
    assert all(heads[form] for form in looks)
    for head in ("thing", "kind", "colour thing"):
        for anchor in ("kind", "colour kind"):
            assert heads[f"{head} above the {anchor}"]


def test_a_relation_is_needed_wherever_it_can_be() -> None:
    needed = 0
    for found, phrase in sample("many"):
        if not (match := RELATED.fullmatch(phrase.text)):
            continue
        thing = found.objects[phrase.thing]
        heads = ("thing", thing.kind, f"{thing.colour} thing")
        wide = [head for head in heads if len(named(found, head)) > 1]
        told = f"{match[2]} the {match[3]}"
        clear = [head for head in wide if meant(found, f"the {head} {told}") == {phrase.thing}]
        assert (match[1] in wide) == bool(clear)
        needed += bool(clear)
    assert needed > 300


def word_class(word: str) -> str:
    classes = {"kind": KINDS, "colour": COLOURS, "size": SIZES}
    return next((name for name, words in classes.items() if word in words), word)


def test_a_lone_object_is_called_by_its_looks() -> None:
    found = scene("train", 0, ShapesSettings(fewest=1, most=1))
    (thing,) = found.objects
    assert [text for text, _ in referring(found)] == [
        f"the {thing.colour} {thing.kind}",
        f"the {thing.kind}",
        f"the {thing.colour} thing",
    ]


def test_phrases_are_the_same_for_the_same_scene() -> None:
    assert referring(scene("test", 3)) == referring(scene("test", 3))


def test_phrases_for_figures_are_refused() -> None:
    with pytest.raises(ConfigError, match="phrases refer to shapes; take a scene without figures"):
        referring(scene("biased-test", 0))
