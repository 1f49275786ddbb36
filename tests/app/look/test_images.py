"""Images for people: whatever a model can be given can be shown."""

import io
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from saccade.app.look.images import ShownImage
from saccade.data import shapes
from saccade.errors import SaccadeError
from tests.app.look.captioners import SIDE, captioner

PIXELS = shapes.render(shapes.scene("test", 0), 48)


def png() -> bytes:
    kept = io.BytesIO()
    Image.fromarray(PIXELS).save(kept, "png")
    return kept.getvalue()


def test_every_form_that_is_predicted_is_shown_alike(tmp_path: Path) -> None:
    tool = captioner("soft").tool
    path = tmp_path / "scene.png"
    path.write_bytes(png())
    tensor = torch.from_numpy(PIXELS.transpose(2, 0, 1).copy())
    forms = [PIXELS, Image.fromarray(PIXELS), tensor, png(), path, str(path)]
    shown = [ShownImage.of(one, tool, name="x") for one in forms]
    assert all(torch.equal(one.pixels, tensor) for one in shown)
    assert all(one.seen_by(tool).shape == (3, SIDE, SIDE) for one in shown)


def test_what_is_no_image_is_refused_in_a_line() -> None:
    wrong = np.zeros((4, 4, 3))
    with pytest.raises(SaccadeError, match=r"no image: float64 values of shape \(4, 4, 3\); give"):
        ShownImage.of(wrong, captioner("soft").tool, name="x")
