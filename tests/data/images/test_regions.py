"""Marked parts lie on the square picture where they lay on the image."""

import io
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from saccade.data.images.decode import ImageError, decode, upright_size
from saccade.data.images.members import Member
from saccade.data.images.regions import fitted_boxes, fitted_mask, unfitted_boxes
from saccade.data.images.square import Fit, fit_square
from saccade.metrics.pointing import inside_boxes
from tests.data.images_odd import black_png

FITS: tuple[Fit, ...] = ("crop", "squeeze", "pad")
SIZES = ((48, 96), (96, 48), (64, 64))


def saved(path: Path, pixels: np.ndarray, **how: object) -> Member:
    Image.fromarray(pixels).save(path, **how)  # type: ignore[arg-type]
    return Member.of(path)


def marked(height: int, width: int) -> np.ndarray:
    """White where the box is: the middle third, and a bit above the middle."""
    pixels = np.zeros((height, width), np.uint8)
    pixels[height // 4 : height // 2, width // 3 : 2 * width // 3] = 255
    return pixels


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize(("height", "width"), SIZES)
def test_a_box_lies_where_its_pixels_come_to_lie(height: int, width: int, fit: Fit) -> None:
    image = torch.from_numpy(marked(height, width)).expand(3, -1, -1).contiguous()
    box = torch.tensor([[1 / 3, 1 / 4, 2 / 3, 1 / 2]], dtype=torch.float64)
    found = inside_boxes(fitted_boxes(box, height, width, fit), (32, 32))
    drawn = fit_square(image, 32, fit)[0] > 160  # over the grey that fills up
    assert (found & drawn).sum() / (found | drawn).sum() > 0.8


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("bright", [1, 255])
def test_a_mask_is_fitted_as_its_image_is(tmp_path: Path, fit: Fit, bright: int) -> None:
    mask = saved(tmp_path / "m.png", marked(48, 96) // 255 * bright)
    found = fitted_mask(mask, 480, 960, size=32, fit=fit)
    image = torch.from_numpy(marked(48, 96)).expand(3, -1, -1).contiguous()
    assert found is not None
    assert torch.equal(found, fit_square(image, 32, fit)[0] > 128)


def test_a_black_mask_marks_nothing_and_one_of_another_shape_is_none(tmp_path: Path) -> None:
    black = saved(tmp_path / "m.png", np.zeros((20, 30), np.uint8))
    found = fitted_mask(black, 200, 300, size=16, fit="pad")
    assert found is not None
    assert not found.any()
    assert fitted_mask(black, 300, 200, size=16, fit="pad") is None


@pytest.mark.parametrize("orientation", range(1, 9))
def test_the_size_is_that_of_the_image_decoded(tmp_path: Path, orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    image = saved(tmp_path / "a.jpg", np.zeros((20, 30, 3), np.uint8), exif=exif)
    assert upright_size(image) == tuple(decode(image).shape[1:])


@pytest.mark.parametrize("orientation", [0, 1, 6])
def test_the_size_of_a_png_is_that_of_the_image_decoded(tmp_path: Path, orientation: int) -> None:
    exif = Image.Exif()
    if orientation:
        exif[0x0112] = orientation
    image = saved(tmp_path / "a.png", np.zeros((20, 30, 3), np.uint8), exif=exif)
    assert upright_size(image) == tuple(decode(image).shape[1:])


def test_the_size_of_a_vast_png_needs_no_pixels(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(raw := black_png(20_000, 20_000))
    assert upright_size(tmp_path / "a.png") == (20_000, 20_000)
    (tmp_path / "a.png").write_bytes(raw + b"eXIf")
    with pytest.raises(ImageError, match="too large"):
        upright_size(tmp_path / "a.png")


def test_the_size_of_what_is_no_image_is_refused(tmp_path: Path) -> None:
    sink = io.BytesIO()
    Image.fromarray(np.zeros((4, 4), np.uint8)).save(sink, "PNG")
    (tmp_path / "a.png").write_bytes(sink.getvalue()[:12])
    with pytest.raises(ImageError, match="damaged image"):
        upright_size(tmp_path / "a.png")


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize(("height", "width"), SIZES)
def test_boxes_come_back_to_where_they_lay(height: int, width: int, fit: Fit) -> None:
    boxes = torch.rand(20, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    there = fitted_boxes(boxes, height, width, fit)
    torch.testing.assert_close(unfitted_boxes(there, height, width, fit), boxes)
