"""Who reads the figure and who reads its surroundings: the report tells them apart."""

from dataclasses import replace

import pytest
import torch

from saccade.data.shapes import CONTEXTS, GROUPS
from saccade.decode.engine import Decoding
from saccade.tasks.captioning import data as captioned
from saccade.tasks.captioning.data import Captioned, CaptioningSettings, read_captioned
from saccade.tasks.captioning.reasons import WORLDS, has_groups, reasons, worlds
from tests.tasks.pointer import Blind, Pointer

SETTINGS = CaptioningSettings(world="biased")
HOW = Decoding(beam=1)
COUNT = 16


@pytest.fixture(autouse=True)
def _few_to_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(captioned, "HELD_BACK", COUNT)


@pytest.fixture
def balanced() -> Captioned:
    return read_captioned(SETTINGS, "balanced-test")


def group(told: Captioned, number: int) -> str:
    found = told.scenes[number].group
    assert found is not None
    return found


def by_context(told: Captioned, number: int) -> str:
    """What the surroundings suggest."""
    context = told.scenes[number].context
    assert context is not None
    return GROUPS[CONTEXTS.index(context.kind)]


def test_who_reads_the_figure_makes_no_error(balanced: Captioned) -> None:
    player = Pointer(balanced, SETTINGS, lambda i: f"there is a {group(balanced, i)}")
    found = reasons(player, balanced, HOW)
    assert found["error"] == found["divergence"] == 0
    assert found["ratio"] == found["true_ratio"]
    assert found["pointing"]["hits"] == found["pointing_given"]["hits"] == 1
    assert found["pointing"]["count"] == found["pointing_given"]["count"] == COUNT
    assert {one["right"] for one in found["outcomes"].values()} == {1.0}
    assert found["against_the_bias"]["right"] == 1


def test_who_reads_the_surroundings_is_wrong_half_of_the_time(balanced: Captioned) -> None:
    player = Pointer(balanced, SETTINGS, lambda i: f"a {by_context(balanced, i)}", well=False)
    found = reasons(player, balanced, HOW)
    wrong = sum(group(balanced, i) != by_context(balanced, i) for i in range(COUNT))
    assert found["error"] == pytest.approx(wrong / COUNT)
    assert 0.3 < found["error"] < 0.7
    assert found["against_the_bias"] == {
        "images": wrong,
        "right": 0.0,
        "wrong": 1.0,
        "neutral": 0.0,
    }
    assert found["pointing"]["hits"] == 0
    assert sum(one["images"] for one in found["outcomes"].values()) == COUNT


def test_who_declines_makes_no_error_and_points_at_no_word(balanced: Captioned) -> None:
    found = reasons(Pointer(balanced, SETTINGS, lambda i: "a figure"), balanced, HOW)
    assert found["error"] == found["divergence"] == 0
    assert found["ratio"] is None
    assert {one["neutral"] for one in found["outcomes"].values()} == {1.0}
    assert found["pointing"]["count"] == 0
    assert found["pointing_given"]["count"] == COUNT  # one of five captions is neutral, not taken


def test_who_always_says_the_same_treats_groups_as_differently_as_can_be(
    balanced: Captioned,
) -> None:
    found = reasons(Pointer(balanced, SETTINGS, lambda i: "a knight"), balanced, HOW)
    assert found["divergence"] == pytest.approx(1)
    assert found["ratio"] == 0


def test_one_that_does_not_look_has_outcomes_and_no_pointing(balanced: Captioned) -> None:
    player = Blind(balanced, SETTINGS, lambda i: "a knight")
    found = reasons(player, balanced, HOW)
    assert "pointing" not in found
    assert player.watched == 0


def test_the_two_worlds_are_reported_side_by_side() -> None:
    one, two = (read_captioned(SETTINGS, world) for world in WORLDS)
    both = Captioned(
        torch.cat([told.images[torch.arange(COUNT)] for told in (one, two)]),
        [*one.captions, *two.captions],
        "",
        [*one.scenes, *two.scenes],
    )
    found = worlds(Pointer(both, SETTINGS, lambda i: f"a {by_context(both, i)}"), HOW)
    assert list(found) == ["biased-test", "balanced-test"]
    assert found["biased-test"]["error"] < 0.2 < found["balanced-test"]["error"]


def test_only_worlds_with_groups_have_a_report() -> None:
    plain = read_captioned(CaptioningSettings(scenes=3), "train")
    assert not has_groups(plain, SETTINGS)
    assert has_groups(read_captioned(replace(SETTINGS, scenes=3), "train"), SETTINGS)
