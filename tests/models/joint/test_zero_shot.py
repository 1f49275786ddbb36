"""Either encoder of a CLIP as a classifier says what both say together."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from saccade.models.inference.scores import KeptScores
from saccade.models.joint.zero_shot import ImageClasses, TextClasses
from saccade.models.protocol import ReadsElsewhere, ScoresTexts
from saccade.tasks.classification.maps import class_maps, map_kinds
from saccade.tasks.understanding.maps import Decision, decision_maps
from tests.models.encoders import rows_of, types_of
from tests.models.joint.test_clip import OF_EACH_FAMILY, TEXTS, TINY, built, pixels


@pytest.mark.parametrize("encoder", OF_EACH_FAMILY)
def test_texts_are_classes_of_images(encoder: str) -> None:
    clip, images = built(replace(TINY, encoder=encoder), torch.float32), pixels(2)
    with torch.no_grad():
        expected = clip(rows_of(TEXTS), images).mT
        classes = TextClasses(clip, clip.texts(rows_of(TEXTS))).eval()
        shown = clip.standard(images)
        near: Any = {"rtol": 1e-3, "atol": 1e-2}  # of logits that are up to 100
        torch.testing.assert_close(classes(shown), expected, **near)
        for stage in (None, 1):
            grid, scores = classes.grid_and_scores(shown, stage)
            torch.testing.assert_close(scores, expected, **near)
            assert grid.shape[1] == classes.channels(stage)
        torch.testing.assert_close(KeptScores(classes)(shown), expected, **near)


@pytest.mark.parametrize("encoder", ["resnet-nano", "vit-nano"])
def test_likeness_is_followed_into_the_image(encoder: str) -> None:
    clip, images = built(replace(TINY, encoder=encoder), torch.float32), pixels(2)
    with torch.no_grad():
        classes = TextClasses(clip, clip.texts(rows_of(TEXTS))).eval()
    shown = clip.standard(images)
    found = class_maps(classes, shown, torch.tensor([1, 3]))
    assert set(found.maps) == set(map_kinds(classes)) - {"attention"}
    for one in found.maps.values():
        assert one.values.isfinite().all()
        assert (one.values >= 0).all()
    other = class_maps(classes, shown, torch.tensor([2, 0]))
    assert not torch.equal(found.maps["grad_cam"].values, other.maps["grad_cam"].values)


def test_images_are_labels_of_texts() -> None:
    clip, images = built(dtype=torch.float32), pixels(3)
    with torch.no_grad():
        labels = ImageClasses(clip, clip.images(images)).eval()
        rows = rows_of(TEXTS)
        found = labels.scores(labels(rows, types_of(rows)), rows)
        torch.testing.assert_close(found, clip(rows, images))
    assert isinstance(labels, ScoresTexts)
    assert isinstance(labels, ReadsElsewhere)
    assert labels.read_at(7) == 6


def test_likeness_is_followed_into_the_text() -> None:
    clip = built(dtype=torch.float32)
    with torch.no_grad():
        labels = ImageClasses(clip, clip.images(pixels(2))).eval()
    text = TEXTS[2]
    asked = [Decision(len(text) - 1, 0, 1)]
    maps = decision_maps(labels, text, [0] * len(text), asked)
    assert list(maps.attention) == [f"text_encoder.{n}.self" for n in range(TINY.depth)]
    for one in (maps.relevance, maps.rollout):
        assert one.shape == (1, len(text))
        assert float(one[0, -1]) == 0  # the token at which it is read
        assert float(one.sum()) == pytest.approx(1)
