"""Images in whatever form people have them: the same pixels, and the same size."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from saccade.data.images.decode import ImageError
from saccade.data.images.given import pixels_of, size_of
from saccade.data.images.members import Member

PIXELS = np.random.default_rng(0).integers(0, 256, (20, 50, 3), dtype=np.uint8)


def forms(folder: Path) -> dict[str, Any]:
    file = folder / "a.png"
    Image.fromarray(PIXELS).save(file)
    return {
        "name": str(file),
        "path": file,
        "bytes": file.read_bytes(),
        "member": Member.of(file),
        "pillow": Image.fromarray(PIXELS),
        "array": PIXELS,
        "tensor": torch.from_numpy(PIXELS.transpose(2, 0, 1).copy()),
    }


@pytest.mark.parametrize("form", ["name", "path", "bytes", "member", "pillow", "array", "tensor"])
def test_every_form_has_the_same_pixels_and_size(form: str, tmp_path: Path) -> None:
    image = forms(tmp_path)[form]
    assert np.array_equal(pixels_of(image, short=1).numpy().transpose(1, 2, 0), PIXELS)
    assert size_of(image) == (20, 50)


def test_the_size_is_that_of_the_upright_image_in_full() -> None:
    turned, buffer = Image.Exif(), io.BytesIO()
    turned[0x0112] = 6
    Image.fromarray(PIXELS.repeat(10, axis=0).repeat(10, axis=1)).save(
        buffer, "JPEG", exif=turned.tobytes()
    )
    assert size_of(buffer.getvalue()) == (500, 200)
    assert pixels_of(buffer.getvalue(), short=30).shape[1] < 500  # which may come smaller


def test_what_has_no_size_is_refused_by_its_name() -> None:
    with pytest.raises(ImageError, match=r"photo 3: no image: it does not begin like any of JPEG"):
        size_of(b"nothing", name="photo 3")


@pytest.mark.parametrize(
    ("mode", "size", "told"),
    [
        ("F", (3, 2), "photo 3: no image: 3×2 of Pillow's mode F; give pixels, as RGB"),
        ("RGB", (0, 2), "photo 3: no image: 0×2 of Pillow's mode RGB; give pixels, as RGB"),
    ],
)
def test_an_image_of_pillow_without_pixels_or_of_fractions_is_refused(
    mode: str, size: tuple[int, int], told: str
) -> None:
    with pytest.raises(ImageError) as caught:
        pixels_of(Image.new(mode, size), name="photo 3", short=1)
    assert str(caught.value) == told
