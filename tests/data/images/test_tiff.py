"""TIFF as people save images in it is read; what else it may hold is refused in a line."""

import io
import struct
from contextlib import suppress
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageOps

from saccade.data.images.decode import ImageError, decode, upright, upright_size

PACKED = [None, "packbits", "tiff_lzw", "tiff_adobe_deflate", "tiff_deflate"]
COLOURS = np.random.default_rng(0).integers(0, 256, (12, 20, 3), dtype=np.uint8)


def tiff(image: Image.Image, **options: object) -> bytes:
    sink = io.BytesIO()
    image.save(sink, "TIFF", **options)
    return sink.getvalue()


def refusal(raw: bytes) -> str:
    with pytest.raises(ImageError) as caught:
        decode(raw, name="a.tif")
    told = str(caught.value)
    assert "\n" not in told
    return told


def patched(raw: bytes, tag: int, value: int) -> bytes:
    """The same with another number under a tag of its first frame, which has one already."""
    (place,) = struct.unpack_from("<I", raw, 4)
    (count,) = struct.unpack_from("<H", raw, place)
    for at in range(place + 2, place + 2 + 12 * count, 12):
        found, kind = struct.unpack_from("<HH", raw, at)
        if found == tag:
            where = {3: "<H", 4: "<I"}[kind]
            body = struct.pack(where, value)
            return raw[: at + 8] + body + raw[at + 8 + len(body) :]
    raise AssertionError(tag)


@pytest.mark.parametrize("packed", PACKED)
def test_colours_come_back_however_they_are_packed(packed: str | None) -> None:
    raw = tiff(Image.fromarray(COLOURS), compression=packed)
    assert (decode(raw).permute(1, 2, 0).numpy() == COLOURS).all()
    assert upright_size(raw) == (12, 20)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "CMYK"])
@pytest.mark.parametrize("packed", ["raw", "tiff_lzw"])
def test_the_usual_modes_are_read_as_pillow_reads_them(mode: str, packed: str) -> None:
    image = Image.fromarray(COLOURS).convert(mode)
    found = decode(tiff(image, compression=packed)).permute(1, 2, 0).numpy()
    assert (found == upright(image).permute(1, 2, 0).numpy()).all()


@pytest.mark.parametrize("packed", [None, "tiff_adobe_deflate"])
def test_sixteen_bits_of_grey_become_eight_of_them(packed: str | None) -> None:
    ramp = np.linspace(0, 65_535, 1024).astype(np.uint16).reshape(32, 32)
    found = decode(tiff(Image.fromarray(ramp), compression=packed))[0].numpy().ravel()
    assert (np.diff(found.astype(int)) >= 0).all()
    assert len(np.unique(found)) == 256
    assert (found == ((ramp.astype(int) * 255 + 32_767) // 65_535).ravel()).all()


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("packed", [None, "tiff_lzw"])
def test_it_is_turned_once(orientation: int, packed: str | None) -> None:
    raw = tiff(Image.fromarray(COLOURS), compression=packed, tiffinfo={274: orientation})
    expected = np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(raw)))).transpose(2, 0, 1)
    assert (decode(raw).numpy() == expected).all()
    assert (upright(Image.open(io.BytesIO(raw))).numpy() == expected).all()
    assert upright_size(raw) == expected.shape[1:]
    assert expected.shape[1:] == ((20, 12) if orientation > 4 else (12, 20))


def test_of_many_pages_the_first_is_taken() -> None:
    pages = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue")]
    raw = tiff(pages[0], save_all=True, append_images=pages[1:])
    assert decode(raw)[:, 0, 0].tolist() == [255, 0, 0]


def test_what_is_no_grey_or_colour_is_refused() -> None:
    lies = Image.fromarray(np.ones((4, 4), np.float32))
    assert "a.tif: no image: a TIFF of fractions with 32 bits; save it as PNG" in refusal(
        tiff(lies)
    )
    assert "whole numbers with 32 bits" in refusal(tiff(Image.new("I", (4, 4))))
    grey = tiff(Image.fromarray(np.ones((4, 4), np.uint16)))
    assert "16-bit grey in which 0 is white" in refusal(patched(grey, 262, 0))
    assert "other bands than grey or colours" in refusal(
        patched(tiff(Image.new("L", (4, 4))), 262, 9)
    )


def test_rare_decoders_are_not_run() -> None:
    for packed, told in (("jpeg", "jpeg"), ("group4", "group4"), ("zstd", "zstd")):
        image = Image.new("1" if packed == "group4" else "RGB", (16, 16))
        assert f"no image: a TIFF packed as {told}; save it as PNG" in refusal(
            tiff(image, compression=packed)
        )


def test_sizes_are_refused_before_a_pixel_is_decoded() -> None:
    small = tiff(Image.new("L", (16, 16)), compression="tiff_lzw")
    wide = patched(patched(small, 256, 20_000), 257, 20_000)
    assert "too large: 20000×20000 is over 50,000,000 pixels" in refusal(wide)


def test_a_thumbnail_in_front_of_raw_data_is_not_taken_for_the_image() -> None:
    raw = tiff(Image.new("RGB", (8, 8)), tiffinfo={254: 1})
    assert "begins with a thumbnail" in refusal(raw)


WHOLE = [
    tiff(Image.fromarray(COLOURS).convert(mode), compression=packed)
    for mode in ("RGB", "P", "L")
    for packed in PACKED
]


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_damaged_one_is_an_image_or_a_refusal(data: st.DataObject) -> None:
    raw = bytearray(data.draw(st.sampled_from(WHOLE)))
    for _ in range(data.draw(st.integers(1, 6))):
        raw[data.draw(st.integers(4, len(raw) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(8, len(raw)))
    for read in (partial(decode, most=1_000_000), upright_size):
        with suppress(ImageError):
            read(bytes(raw[:cut]))
