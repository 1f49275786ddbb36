"""The pointing game with players whose skill is known."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from saccade.data import shapes
from saccade.data.images.lattice import Lattice
from saccade.decode.engine import Decoding
from saccade.tasks.captioning.data import Captioned, CaptioningSettings, read_captioned
from saccade.tasks.captioning.pointing import (
    at_words,
    can_point,
    point,
    pointed,
    summed,
    write_captions,
)
from saccade.tasks.captioning.regions import Region
from tests.tasks.pointer import Blind, Pointer

SETTINGS = CaptioningSettings(scenes=12)
HOW = Decoding(beam=1)


@pytest.fixture(scope="module")
def told() -> Captioned:
    return read_captioned(SETTINGS, "train")


def play(player: Pointer, told: Captioned) -> dict[str, Any]:
    said = write_captions(player, told, HOW, look=True)
    own = (one for number, caption in said for one in pointed(player, told, number, caption))
    return point(player, told, own)


@pytest.mark.parametrize("first", [0.5, 1 / 16], ids=["patches", "a CNN"])
def test_who_looks_at_what_is_named_always_hits(told: Captioned, first: float) -> None:
    player = Pointer(told, SETTINGS, lambda number: told.captions[number][1], first=first)
    found = play(player, told)
    for game in (found["pointing"], found["pointing_given"]):
        assert game["hits"] == game["hits_near"] == 1
        assert game["mass"] > 0.5
        assert game["chance"] < game["hits_on_pixels"] <= 1  # the middle of a ring is not the ring
    nouns = [mention.kind for cs in told.captions for mention in _objects(cs[1])]
    assert found["pointing"]["count"] == len(nouns)
    counts = {word: one["count"] for word, one in found["pointing"]["by_word"].items()}
    assert counts == {noun: nouns.count(noun) for noun in sorted(set(nouns))}


def _objects(caption: str) -> tuple[shapes.Mention, ...]:
    content = shapes.parse(caption)
    assert content is not None
    return content.objects


def test_who_looks_away_never_hits(told: Captioned) -> None:
    player = Pointer(told, SETTINGS, lambda number: told.captions[number][0], well=False)
    found = play(player, told)
    for game in (found["pointing"], found["pointing_given"]):
        assert game["hits"] == game["hits_near"] == 0


def test_mass_is_that_of_cells_where_they_lie() -> None:
    box = torch.zeros(64, 64, dtype=torch.bool)
    box[20:28, 36:44] = True  # all that is nearest to the fourth cell of the sixth column
    maps, cnn = torch.zeros(1, 8, 8), Lattice(8, 8, first=1 / 16)
    maps[0, 3, 5] = 1
    (one,) = at_words(["star"], maps, cnn, lambda said, place: Region(said[place], box, box))
    assert one.mass == pytest.approx(1)
    assert one.pixels


def test_what_is_not_there_is_not_counted(told: Captioned) -> None:
    player = Pointer(told, SETTINGS, lambda number: "a wizard beside a thing")
    found = play(player, told)["pointing"]
    assert found == {"count": 0, "by_word": {}}
    assert summed([]) == found


def test_without_looks_or_without_truth_there_is_no_game(told: Captioned) -> None:
    player = Pointer(told, SETTINGS, lambda number: "a star")
    assert can_point(player, told)
    assert not can_point(Blind(told, SETTINGS, lambda number: "a star"), told)
    assert not can_point(player, replace(told, scenes=[]))
