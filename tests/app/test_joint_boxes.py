"""Boxes that a program gives with an image are checked as those of data are."""

from pathlib import Path
from typing import Any

import pytest

import saccade
from saccade.errors import DataError
from tests.app.joint_runs import write_images


@pytest.mark.parametrize(
    ("boxes", "message"),
    [
        (5, "boxes=5 must be rows of left, top, right and bottom in pixels"),
        ([[1, 2, 9000, 40]], r"boxes: outside the image: \[1, 2, 9000, 40\] reaches out of"),
        ([[0.1, 0.1, 0.9, 0.9]], "boxes: shares for pixels"),
    ],
)
def test_boxes_that_are_not_of_the_image_are_refused(
    boxes: Any, message: str, joint: dict[str, Path], tmp_path: Path
) -> None:
    model = saccade.load(joint["answering"], device="cpu")
    image = write_images(tmp_path / "images") / "0.png"
    with pytest.raises(DataError, match=message):
        model.predict(image, "is the ring red?", boxes)
