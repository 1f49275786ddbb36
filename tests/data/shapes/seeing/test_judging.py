"""A prompt fits an image that shows all of it, and no other."""

import re
from functools import cache

import numpy as np
import pytest

from saccade.data.shapes import (
    Scene,
    ShapesSettings,
    captions,
    is_right,
    parse,
    render,
    scene,
    true_of,
)
from saccade.data.shapes.seeing import PromptAgreement, agreement, compare, fits, see
from saccade.errors import DataError
from tests.data.shapes.seeing.table import DAMAGES, measure, planar
from tests.data.shapes.text.test_writing import neighbours

FEW = ShapesSettings(fewest=2, most=3)


@cache
def sample() -> list[Scene]:
    return [scene("train", index, FEW) for index in range(40)]


def test_captions_fit_their_own_image() -> None:
    row = measure(sample(), DAMAGES["none"])
    assert row.own >= 0.97
    assert row.few == row.own


def test_captions_of_another_scene_fit_as_seldom_as_they_are_true() -> None:
    row = measure(sample(), DAMAGES["none"])
    assert abs(row.other - row.other_true) <= 0.01
    assert row.changed_false <= 0.02


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["blur 0.7", "noise 8", "JPEG 60 4:4:4"])
def test_captions_fit_a_damaged_image(damage: str) -> None:
    assert measure(sample(), DAMAGES[damage]).own >= 0.9


@pytest.mark.slow
def test_the_judge_is_nearly_always_right_about_many_scenes() -> None:
    row = measure([scene("valid", index) for index in range(400)], DAMAGES["none"])
    assert row.few >= 0.97
    assert row.changed_true >= 0.95
    assert row.changed_false <= 0.01


def test_one_word_changed_no_longer_fits() -> None:
    judged = list[bool]()
    for one in sample()[:4]:
        image = planar(render(one))
        read = see(image)
        for caption in neighbours(captions(one)[0])[:8]:
            if not is_right(caption, one):
                judged.append(fits(caption, image))
                assert judged[-1] == is_right(caption, read)
    assert len(judged) > 20
    assert np.mean(judged) <= 0.05


def test_in_a_mirror_left_of_becomes_right_of() -> None:
    turned = {"left of": "right of", "right of": "left of"}
    kept, swapped = list[bool](), list[bool]()
    for one in sample():
        image = np.ascontiguousarray(planar(render(one))[:, :, ::-1])
        for caption in captions(one):
            if re.search("left of|right of", caption) and "moon" not in caption:
                other = re.sub("left of|right of", lambda match: turned[match[0]], caption)
                kept.append(fits(caption, image))
                swapped.append(fits(other, image))
    assert len(kept) > 20
    assert not any(kept)
    assert np.mean(swapped) >= 0.95


def test_agreement_counts_objects_and_relations_apart() -> None:
    truth = next(
        one
        for one in sample()
        if len(one.objects) == 3 and any("that is" in caption for caption in captions(one))
    )
    caption = next(caption for caption in captions(truth) if "that is" in caption)
    assert agreement(caption, planar(render(truth))) == PromptAgreement(True, 3, 3, 2, 2)
    for changed in neighbours(caption):
        said = parse(changed)
        assert said is not None
        found = compare(said, truth)
        assert found.fits == true_of(said, truth)
        assert found.fits <= (found.object_share == found.relation_share == 1)


def test_shares_of_agreement() -> None:
    found = PromptAgreement(fits=False, objects=2, named=3, relations=1, claimed=2)
    assert (found.object_share, found.relation_share) == (2 / 3, 1 / 2)
    assert PromptAgreement(True, 1, 1, 0, 0).relation_share == 1


def test_a_wrong_size_keeps_a_prompt_from_fitting_but_not_its_objects_from_being_there() -> None:
    thing = sample()[0].objects[0]
    size = {"big": "small", "small": "big"}[thing.size]
    found = agreement(f"a {size} {thing.colour} {thing.kind}", planar(render(sample()[0])))
    assert not found.fits
    assert found.object_share == 1


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ("red circle", r"prompt 'red circle' is no sentence about shapes; write one such as"),
        ("", r"prompt '' is no sentence about shapes"),
        ("a knight beside a red boat", r"names a knight, .* name any of: circle, square"),
    ],
)
def test_a_prompt_that_cannot_be_judged_is_refused(prompt: str, message: str) -> None:
    image = planar(render(sample()[0]))
    with pytest.raises(DataError, match=message):
        fits(prompt, image)
    with pytest.raises(DataError, match=message):
        agreement(prompt, image)
