"""The biased world: context predicts the group, and nothing but the headgear is the group's."""

from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from saccade.data.shapes import (
    CONTEXTS,
    GROUPS,
    Scene,
    ShapesSettings,
    captions,
    hidden,
    is_right,
    masks,
    outcome,
    parse,
    render,
    scene,
    swapped,
    true_of,
)
from saccade.data.shapes.text.claims import Content, Mention
from saccade.errors import ConfigError
from tests.marks import one_fast

BIASED = ("biased-train", "biased-valid", "biased-test")
EVERY = (*BIASED, "balanced-test")


@cache
def sample(split: str, count: int = 400) -> list[Scene]:
    return [scene(split, index) for index in range(count)]


def expected(found: Scene) -> bool:
    """Whether the group is the one that the context predicts."""
    assert found.context is not None
    assert found.group is not None
    return CONTEXTS.index(found.context.kind) == GROUPS.index(found.group)


@pytest.mark.parametrize("split", one_fast(BIASED))
def test_the_context_predicts_the_group_as_often_as_the_bias_says(split: str) -> None:
    assert np.mean([expected(s) for s in sample(split)]) == pytest.approx(0.95, abs=0.035)


def test_in_the_balanced_test_every_context_has_every_group_alike() -> None:
    found = sample("balanced-test")
    assert np.mean([expected(s) for s in found]) == pytest.approx(0.5, abs=0.075)
    counts = Counter((s.context.kind, s.group) for s in found if s.context)
    assert len(counts) == 4
    assert min(counts.values()) > 70


def test_nothing_but_the_group_depends_on_the_bias() -> None:
    for index in range(60):
        right = scene("biased-train", index, ShapesSettings(bias=1.0))
        wrong = scene("biased-train", index, ShapesSettings(bias=0.0))
        assert expected(right)
        assert swapped(right) == wrong


def test_swapping_twice_is_the_identity() -> None:
    for found in sample("balanced-test")[:50]:
        assert swapped(found) != found
        assert swapped(swapped(found)) == found
        assert swapped(found).label == 1 - found.label


def test_groups_differ_in_the_upper_part_of_the_figure_alone() -> None:
    for found in sample("biased-train")[:50]:
        changed = (render(found, 64) != render(swapped(found), 64)).any(axis=-1)
        x0, y0, x1, _ = found.main.box.xyxy
        rows, columns = np.nonzero(changed)
        assert changed.sum() > 15
        assert rows.min() >= 64 * y0 - 2
        assert rows.max() <= 64 * (y0 + 0.45 * found.main.box.h) + 3
        assert columns.min() >= 64 * x0 - 2
        assert columns.max() <= 64 * x1 + 3


def test_nothing_of_the_group_is_left_when_the_figure_is_hidden() -> None:
    for found in sample("balanced-test")[:50]:
        assert (hidden(found, 64) == hidden(swapped(found), 64)).all()


def test_hiding_covers_the_figure_with_one_colour_and_leaves_the_rest() -> None:
    for found in sample("biased-test")[:50]:
        own = masks(found, 64)[found.objects.index(found.main)]
        covered, bare = hidden(found, 64), render(found, 64)
        assert len(np.unique(covered[own], axis=0)) == 1
        rest = covered[~own].reshape(-1, 3).mean(axis=0)
        assert np.abs(covered[own][0] - rest).max() < 3
        x0, _, x1, _ = found.main.box.xyxy
        away = np.abs((np.arange(64) + 0.5) / 64 - (x0 + x1) / 2) > (x1 - x0) / 2 + 0.07
        assert (covered[:, away] == bare[:, away]).all()


@pytest.mark.parametrize("split", EVERY)
def test_figure_and_context_stand_side_by_side_and_hide_nothing(split: str) -> None:
    for found in sample(split)[:100]:
        assert found.context is not None
        (left, right) = sorted((found.main.box, found.context.box))
        assert 0.02 < right.xyxy[0] - left.xyxy[2] < 0.11
        assert min(*left.xyxy, *right.xyxy) > 0.02
        assert max(*left.xyxy, *right.xyxy) < 0.98


@pytest.mark.parametrize("split", EVERY)
def test_captions_say_the_group_four_times_and_the_neutral_word_once(split: str) -> None:
    for found in sample(split)[:100]:
        said = Counter(outcome(caption) for caption in captions(found))
        assert said == {found.group: 4, "figure": 1}


def test_a_caption_with_the_other_group_is_false_and_with_the_neutral_word_true() -> None:
    for found in sample("balanced-test")[:100]:
        for caption in captions(found):
            assert found.group is not None
            other = GROUPS[1 - GROUPS.index(found.group)]
            assert is_right(caption.replace(found.group, "figure"), found)
            assert is_right(caption, swapped(found)) == ("figure" in caption)
            if found.group in caption:
                assert not is_right(caption.replace(found.group, other), found)


def test_sides_and_colours_of_the_context_are_told_apart() -> None:
    for found in sample("biased-train")[:50]:
        for caption in captions(found):
            turned = caption.replace("left of", "RIGHT").replace("right of", "left of")
            turned = turned.replace("RIGHT", "right of")
            assert is_right(turned, found) == (turned == caption)
            assert found.context is not None
            colour = "red" if found.context.colour != "red" else "blue"
            assert not is_right(caption.replace(found.context.colour, colour), found)


def test_beside_is_not_said_of_what_is_far_away_or_above() -> None:
    found = sample("biased-train")[0]
    assert found.context is not None
    said = parse(
        f"a figure beside {'an' if found.context.colour == 'orange' else 'a'} "
        f"{found.context.colour} {found.context.kind}"
    )
    assert said is not None
    assert true_of(said, found)
    for box in (found.main.box._replace(cx=found.context.box.cx), found.main.box._replace(cx=9.0)):
        moved = replace(found, objects=(found.context, replace(found.main, box=box)))
        assert not true_of(said, moved)
    assert true_of(Content((Mention("figure"),)), found)


@pytest.mark.parametrize(
    ("caption", "group"),
    [
        ("A knight beside a red kite.", "knight"),
        ("a wizard", "wizard"),
        ("a figure beside a red kite", "figure"),
        ("a red kite", "figure"),
        ("a knight and a wizard", "figure"),
        ("knights", "figure"),
    ],
)
def test_the_outcome_is_the_only_group_that_is_said(caption: str, group: str) -> None:
    assert outcome(caption) == group


def test_scenes_without_a_figure_have_nobody_to_hide_or_swap() -> None:
    with pytest.raises(ConfigError, match="no figure to hide; take one of a biased split"):
        hidden(scene("train", 0))
    with pytest.raises(ConfigError, match="no figure to swap; take one of a biased split"):
        swapped(scene("train", 0))
    assert scene("train", 0).group is None
    assert scene("train", 0).context is None
