"""Which scenes there are: reproducible, disjoint, well seen, and without doubtful overlaps."""

from collections import Counter
from functools import cache
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saccade.data.shapes import (
    COLOURS,
    KINDS,
    SPLITS,
    Scene,
    ShapesSettings,
    captions,
    is_held_out,
    masks,
    render,
    scene,
)
from saccade.data.shapes.compose import share
from saccade.errors import ConfigError
from tests.marks import one_fast

PLAIN = ("train", "valid", "test", "compositional")
MANY = ("many-train", "many-valid", "many")


@cache
def sample(split: str, count: int = 150) -> list[Scene]:
    return [scene(split, index) for index in range(count)]


def arrangement(found: Scene) -> frozenset[tuple[object, ...]]:
    """What stands where, to a sixteenth of the picture; a figure's group left open."""
    return frozenset(
        (
            "figure" if thing.kind in ("knight", "wizard") else thing.kind,
            *(thing.colour, thing.size),
            *(int(16 * thing.box.cx), int(16 * thing.box.cy)),
        )
        for thing in found.objects
    )


@settings(max_examples=25)
@given(split=st.sampled_from(SPLITS), index=st.integers(0, 10**6), seed=st.integers(0, 2**40))
def test_a_scene_depends_on_seed_split_and_index_alone(split: str, index: int, seed: int) -> None:
    chosen = ShapesSettings(seed=seed)
    np.random.seed(index % 1000)  # the global state must not matter
    first = scene(split, index, chosen)
    scene(split, index + 1, chosen)
    assert scene(split, index, chosen) == first
    assert scene(split, index, ShapesSettings(seed=seed, size=128)) == first
    assert (render(first, 32) == render(scene(split, index, chosen), 32)).all()


def test_other_seeds_splits_and_indices_give_other_scenes() -> None:
    seeds = [scene("train", 7, ShapesSettings(seed=seed)) for seed in range(20)]
    everything = [*seeds, *(scene(split, 7) for split in SPLITS[1:]), *sample("train")[8:]]
    assert len(set(everything)) == len(everything)


def test_the_data_are_the_same_in_every_process() -> None:
    first = scene("train", 0)
    assert captions(first)[0] == (
        "there is a red cross in front of a yellow cross that is below a blue cross"
    )
    assert render(first, 32).mean() == pytest.approx(126.64, abs=0.05)


@pytest.mark.slow
def test_no_arrangement_is_in_two_of_train_valid_and_test() -> None:
    shares = {
        "train": ("train", "many-train", "biased-train"),
        "valid": ("valid", "many-valid", "biased-valid"),
        "test": ("test", "compositional", "many", "biased-test", "balanced-test"),
    }
    # Few objects and several seeds, so that arrangements would meet if nothing kept them apart.
    found = {
        name: {arrangement(s) for split in splits for s in sample(split)}
        | {arrangement(s) for seed in (1, 2) for s in alone(splits[0], seed)}
        for name, splits in shares.items()
    }
    assert all(found.values())
    assert all(found[a].isdisjoint(found[b]) for a, b in combinations(found, 2))


def alone(split: str, seed: int) -> list[Scene]:
    chosen = ShapesSettings(seed=seed, most=1)
    return [scene(split, index, chosen) for index in range(300)]


def test_the_share_of_an_arrangement_is_settled_by_what_stands_in_which_cell() -> None:
    splits = ("train", "many-valid", "balanced-test", "compositional")
    for name, split in zip(("train", "valid", "test", "test"), splits, strict=True):
        assert {share(s.objects[::-1]) for s in sample(split)} == {name}


def test_some_pairs_of_colour_and_kind_are_met_in_the_compositional_split_alone() -> None:
    held_out = {(c, k) for c in COLOURS for k in KINDS if is_held_out(c, k)}
    assert Counter(c for c, _ in held_out) == dict.fromkeys(COLOURS, 1)
    assert Counter(k for _, k in held_out) == dict.fromkeys(KINDS, 1)
    for split in (*PLAIN, *MANY):
        for found in sample(split):
            special = {(thing.colour, thing.kind) for thing in found.objects} & held_out
            assert len(special) == (split == "compositional")


def test_training_meets_every_other_pair() -> None:
    met = {(t.colour, t.kind) for s in [*sample("train"), *sample("many-train")] for t in s.objects}
    assert len(met) == 56


@pytest.mark.parametrize(("fewest", "most"), [(1, 1), (2, 4), (5, 5)])
def test_scenes_have_as_many_objects_as_asked_for(fewest: int, most: int) -> None:
    chosen = ShapesSettings(fewest=fewest, most=most)
    counts = {len(scene("train", index, chosen).objects) for index in range(60)}
    assert counts == set(range(fewest, most + 1))


def test_scenes_with_many_objects_have_four_or_five_that_go_from_left_to_right() -> None:
    for split in MANY:
        assert {len(s.objects) for s in sample(split)} == {4, 5}
        for found in sample(split):
            across = sorted(thing.box.cx for thing in found.objects)
            assert min(b - a for a, b in pairwise(across)) >= 0.06


@pytest.mark.parametrize("split", [*PLAIN, "many"])
def test_objects_lie_within_the_picture_and_colour_and_kind_say_which(split: str) -> None:
    for found in sample(split):
        edges = np.array([thing.box.xyxy for thing in found.objects])
        assert 0.019 < edges.min() < edges.max() < 0.981
        assert len({(thing.colour, thing.kind) for thing in found.objects}) == len(found.objects)


def test_big_is_bigger_than_small_and_the_class_is_that_of_the_largest() -> None:
    for found in sample("train"):
        sides = {t: max(t.box.w, t.box.h) for t in found.objects}
        big = [side for t, side in sides.items() if t.size == "big"]
        small = [side for t, side in sides.items() if t.size == "small"]
        if big and small:
            assert min(big) > 1.1 * max(small)
        others = [side for t, side in sides.items() if t is not found.main]
        assert all(sides[found.main] > 1.05 * side for side in others)
        assert KINDS[found.label] == found.main.kind


@pytest.mark.parametrize("size", one_fast([32, 64, 128]))
def test_three_fifths_of_every_object_can_be_seen(size: int) -> None:
    for found in [*sample("train"), *sample("many")]:
        seen = masks(found, size)
        for index, thing in enumerate(found.objects):
            whole = masks(Scene((thing,), "plain", 0), size)[0]
            assert seen[index].sum() >= 0.6 * whole.sum() > 0


def test_objects_overlap_plainly_or_not_at_all() -> None:
    overlaps = 0
    for found in [*sample("train"), *sample("many")]:
        whole = [masks(Scene((thing,), "plain", 0), 128)[0] for thing in found.objects]
        for a, b in combinations(range(len(whole)), 2):
            shared = (whole[a] & whole[b]).sum() / min(whole[a].sum(), whole[b].sum())
            assert shared < 0.01 or shared > 0.12
            if shared > 0.12:
                overlaps += 1
                assert found.objects[a].colour != found.objects[b].colour
    assert overlaps > 50


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"seed": -1}, "seed=-1 is negative; use 0 or more"),
        ({"size": 8}, "size=8 is too small to see anything; use 32 or more"),
        ({"fewest": 0}, "fewest=0 and most=5 leave the range 1 to 5"),
        ({"most": 6}, "fewest=1 and most=6 leave the range 1 to 5"),
        ({"fewest": 3, "most": 2}, "fewest=3 exceeds most=2; swap or widen them"),
        ({"bias": 1.5}, "bias=1.5 is no share; give a number from 0 to 1"),
    ],
)
def test_settings_that_cannot_work_are_refused(wrong: dict[str, int], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        ShapesSettings(**wrong)
    assert str(error.value) == message


def test_an_unknown_split_and_a_negative_index_are_refused() -> None:
    with pytest.raises(ConfigError, match="no split 'dev'; try one of: train, valid, test"):
        scene("dev", 0)
    with pytest.raises(ConfigError, match="index=-1 is negative; scenes are counted from 0"):
        scene("train", -1)
