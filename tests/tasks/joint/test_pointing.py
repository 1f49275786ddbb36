"""The pointing game of joint models: hits are counted by hand where one knows who looks where."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from saccade.attention.axes import Axis
from saccade.attention.look.looking import looking
from saccade.data import shapes
from saccade.errors import ConfigError
from saccade.metrics.pointing import inside_boxes
from saccade.models.joint.config import RegionKind
from saccade.tasks.joint import pointing as game
from saccade.tasks.joint.batch import seen_regions
from saccade.tasks.joint.captions import read_captions
from saccade.tasks.joint.fitting import FittingSettings
from saccade.tasks.joint.pointing import pointing
from saccade.tasks.joint.task import TextsOfImages
from saccade.tasks.joint.tool import JointTool, SightedImage
from tests.tasks.joint.made import VALID, user_captions
from tests.tasks.joint.pair_tools import SIDE, pair_tool

SCENES = [shapes.scene("test", number) for number in range(VALID)]
NAMED = re.compile(rf"({'|'.join(shapes.COLOURS)}) ({'|'.join(shapes.KINDS)})\b")
Noun = tuple[int, int, int]  # scene, object, and the place of the word among the tokens


def silent(done: int, total: int) -> None:
    pass


def played(regions: RegionKind) -> tuple[JointTool, TextsOfImages]:
    tool = pair_tool("fitting", regions, seed=3).joint
    return tool, read_captions(tool.settings, "test", silent)


def nouns() -> list[Noun]:
    """Of the first caption of each scene; colour and kind say which object it is."""
    found = list[Noun]()
    for number, scene in enumerate(SCENES):
        (caption, *_) = shapes.captions(scene)
        words = re.findall(r"\w+", caption)
        names = [(one.colour, one.kind) for one in scene.objects]
        for place, word in enumerate(words):
            if word in shapes.KINDS:
                # A token before the first word says what the text is.
                found.append((number, names.index((words[place - 1], word)), place + 1))
    assert len(found) == sum(len(NAMED.findall(shapes.captions(one)[0])) for one in SCENES)
    return found


def looks_at(monkeypatch: pytest.MonkeyPatch, weights: Any) -> None:
    """A model of two heads and one layer; weights(scene) has how its words look."""

    def looked(tool: JointTool, read: Any, number: int) -> dict[str, tuple[Tensor, Axis]]:
        return {"layer": weights(number)}

    monkeypatch.setattr(game, "_looked", looked)


def test_who_always_looks_at_the_first_object_hits_as_often_as_it_is_meant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tool, read = played("boxes")

    def weights(number: int) -> tuple[Tensor, Axis]:
        made = torch.zeros(2, 60, len(SCENES[number].objects) + 1)
        made[0, :, 1], made[0, :, -1] = 0.6, 0.4  # the first object, or else the last
        made[1, :, 0], made[1, :, -1] = 0.9, 0.1  # the whole image is no answer: the last
        return made, Axis("regions")

    looks_at(monkeypatch, weights)
    found = pointing(tool, read)
    every = nouns()
    first = [thing == 0 for _, thing, _ in every]
    last = [thing == len(SCENES[scene].objects) - 1 for scene, thing, _ in every]
    alone = [len(SCENES[scene].objects) == 1 for scene, _, _ in every]
    assert found["nouns"] == len(every)
    layer = found["layers"]["layer"]
    assert layer["heads"] == pytest.approx([sum(x) / len(every) for x in (first, last)])
    # The mean of both heads: 0.3 on the first, 0.25 on the last.
    assert layer["mean"] == pytest.approx(sum(first) / len(every))
    assert sum(alone) < sum(first) < len(first)
    chances = [1 / len(SCENES[scene].objects) for scene, _, _ in every]
    assert found["chance"] == pytest.approx(sum(chances) / len(chances))


def test_who_looks_at_what_each_word_means_hits_always_and_one_word_off_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tool, read = played("boxes")
    every = nouns()

    def weights(number: int) -> tuple[Tensor, Axis]:
        made = torch.zeros(2, 60, len(SCENES[number].objects) + 1)
        made[:, :, -1] = 0.5  # the last object, where nothing else is said
        for scene, thing, place in every:
            if scene == number:
                made[0, place, 1 + thing] = 1
                made[1, place - 1, 1 + thing] = 1  # the word for its colour looks there instead
        return made, Axis("regions")

    looks_at(monkeypatch, weights)
    first, second = pointing(tool, read)["layers"]["layer"]["heads"]
    assert first == 1
    last = [thing == len(SCENES[scene].objects) - 1 for scene, thing, _ in every]
    assert not all(last)
    assert second == pytest.approx(sum(last) / len(last))


@pytest.mark.parametrize("away", [False, True])
def test_a_cell_hits_if_its_middle_lies_in_the_box_of_the_object(
    monkeypatch: pytest.MonkeyPatch, away: bool
) -> None:
    tool, read = played("cells")
    side, every = 16, nouns()
    axis = Axis("regions", "grid", side, side, special=1)

    def cell(box: Tensor) -> int:
        """The one in the middle of a box, or in the corner that is farthest from there."""
        x, y = ((box[:2] + box[2:]) / 2).tolist()
        if away:
            return (0 if y > 0.5 else side - 1) * side + (0 if x > 0.5 else side - 1)
        return int(y * side) * side + int(x * side)

    def weights(number: int) -> tuple[Tensor, Axis]:
        made = torch.zeros(2, 60, 1 + side * side)
        made[:, :, 0] = 9  # the whole image comes before the cells, and is none of them
        for scene, thing, place in every:
            if scene == number:
                made[:, place, 1 + cell(read.sighted.boxes[scene, thing])] = 1
        return made, axis

    looks_at(monkeypatch, weights)
    found = pointing(tool, read)
    assert found["layers"]["layer"] == {"mean": 0 if away else 1, "heads": [0 if away else 1] * 2}
    shares = [
        float(inside_boxes(read.sighted.boxes[scene, thing][None], (SIDE, SIDE)).float().mean())
        for scene, thing, _ in every
    ]
    assert found["chance"] == pytest.approx(sum(shares) / len(shares), abs=0.005)


@pytest.mark.slow
@pytest.mark.parametrize("regions", ["boxes", "cells"])
@torch.no_grad()
def test_the_weights_are_the_models_own(regions: RegionKind) -> None:
    tool, read = played(regions)
    found = pointing(tool, read)
    model = tool.model
    assert set(found["layers"]) == {"joins.0.words.cross", "joins.1.words.cross"}
    hits = {name: list[list[bool]]() for name in found["layers"]}
    for number, thing, place in nouns():
        pixels = read.sighted.images[torch.tensor([number])][0]
        boxes = read.sighted.boxes[number, : int(read.sighted.counts[number])]
        seen = seen_regions(model, tool.glimpse([SightedImage(pixels, boxes)]))
        rows, types = tool.rows([tool.reading(read.texts[number][0])])
        with looking(model) as trace:
            model(rows, types, seen, torch.tensor([0]))
            for name, some in hits.items():
                weights = trace.weights()[name][0, :, place, 1:]  # (heads, regions)
                best = [int(one.argmax()) for one in (weights.mean(dim=0), *weights)]
                if regions == "boxes":
                    some.append([one == thing for one in best])
                    continue
                lattice = trace.axes[name][1].lattice
                left, top, right, bottom = read.sighted.boxes[number, thing].tolist()
                middles = [(float(x) + 1e-5, float(y) + 1e-5) for y, x in map(lattice.middle, best)]
                some.append([left <= x < right and top <= y < bottom for x, y in middles])
    for name, some in hits.items():
        mean, *heads = torch.tensor(some).float().mean(dim=0).tolist()
        assert found["layers"][name]["mean"] == pytest.approx(mean, abs=1e-6)
        assert found["layers"][name]["heads"] == pytest.approx(heads, abs=1e-6)


def test_data_of_ones_own_do_not_say_what_words_mean(tmp_path: Path) -> None:
    tool, _ = played("cells")
    settings = FittingSettings(data=str(user_captions(tmp_path)), image=SIDE)
    read = read_captions(settings, "train", silent)
    with pytest.raises(ConfigError, match="the pointing game needs to know what each word means"):
        pointing(tool, read)
