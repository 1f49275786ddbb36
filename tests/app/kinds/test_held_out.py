"""Which split of the user's images is scored where nobody says it."""

from pathlib import Path

import pytest

from saccade.app.kinds.base import HeldOut
from saccade.data.readers import label_splits
from saccade.errors import ConfigError
from saccade.tasks.classification.data import ClassificationSettings
from tests.data.images_made import in_folder, picture


def test_other_images_without_splits_are_scored_as_a_whole(tmp_path: Path) -> None:
    flat = in_folder(tmp_path / "flat", {"cat/a.png": picture(1), "dog/b.png": picture(2)})
    split = in_folder(tmp_path / "split", {"train/cat/a.png": picture(1), "test/a/b.png": b""})
    own = ClassificationSettings(data=str(split))
    for data, chosen in ((flat, None), (split, "test")):
        held_out = HeldOut(data=str(data))
        assert held_out.choose_images(held_out.settings(own), label_splits) == chosen
    assert HeldOut().choose_images(own, label_splits) == "test"
    assert HeldOut(data=str(flat), split="valid").choose_images(own, label_splits) == "valid"


def test_a_run_whose_images_have_no_test_is_told_what_to_score(tmp_path: Path) -> None:
    flat = in_folder(tmp_path, {"cat/a.png": picture(1), "dog/b.png": picture(2)})
    own = ClassificationSettings(data=str(flat))
    with pytest.raises(ConfigError, match=r"have no 'test'; score what was kept .* --split valid"):
        HeldOut().choose_images(own, label_splits)
    assert HeldOut(split="valid").choose_images(own, label_splits) == "valid"
