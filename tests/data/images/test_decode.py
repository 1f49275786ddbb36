"""Any picture comes out upright in RGB; anything else is one line that names it."""

import io
import os
import pickle
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageOps

from saccade.data.images.decode import MAX_PIXELS, ImageError, decode
from saccade.data.images.pixels import count_scans
from saccade.errors import DataError
from tests.data.images_odd import many_scans


def stored(image: Image.Image, form: str, **options: object) -> bytes:
    sink = io.BytesIO()
    image.save(sink, form, **options)
    return sink.getvalue()


def noise(height: int = 20, width: int = 40, channels: int = 3, seed: int = 0) -> np.ndarray:
    shape = (height, width, channels) if channels > 1 else (height, width)
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def smooth(height: int = 48, width: int = 64) -> Image.Image:
    y, x = np.mgrid[0:height, 0:width]
    planes = [255 * y / height, 255 * x / width, 255 * (x + y) / (height + width)]
    return Image.fromarray(np.stack(planes, axis=-1).astype(np.uint8))


def pixels(raw: bytes) -> np.ndarray:
    return decode(raw).permute(1, 2, 0).numpy()


def png_of_size(width: int, height: int) -> bytes:
    """A PNG of this size that is black and small, without ever holding it."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    packer = zlib.compressobj(9)
    body = b"".join(packer.compress(bytes(1 + width // 8)) for _ in range(height)) + packer.flush()
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    marks = [(b"IHDR", header), (b"IDAT", body), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*mark) for mark in marks)


def refusal(raw: bytes | Path, **options: int) -> str:
    with pytest.raises(ImageError) as caught:
        decode(raw, **options)
    told = str(caught.value)
    assert "\n" not in told
    return told


@pytest.mark.parametrize("form", ["PNG", "BMP", "WEBP"])
def test_what_is_stored_without_loss_comes_back(form: str, tmp_path: Path) -> None:
    picture = noise()
    raw = stored(Image.fromarray(picture), form, lossless=True)
    assert (pixels(raw) == picture).all()
    lying = tmp_path / "x.jpg"  # the name does not matter
    lying.write_bytes(raw)
    assert torch.equal(decode(lying), decode(raw))
    assert decode(raw).dtype == torch.uint8


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP"])
def test_what_the_camera_noted_is_undone(form: str, orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"quality": 95} if form == "JPEG" else {"lossless": True}
    raw = stored(smooth(20, 40), form, exif=exif, **options)
    expected = ImageOps.exif_transpose(Image.open(io.BytesIO(raw)))
    assert (pixels(raw) == np.asarray(expected.convert("RGB"))).all()
    assert decode(raw).shape == ((3, 20, 40) if orientation < 5 else (3, 40, 20))


@pytest.mark.parametrize(
    ("orientation", "corner"), [(1, (0, 0)), (6, (0, -1)), (8, (-1, 0)), (3, (-1, -1))]
)
def test_the_corner_goes_where_the_standard_says(orientation: int, corner: tuple[int, int]) -> None:
    picture = np.zeros((4, 6, 3), np.uint8)
    picture[0, 0] = 255
    exif = Image.Exif()
    exif[0x0112] = orientation
    found = pixels(stored(Image.fromarray(picture), "PNG", exif=exif))
    assert found[corner].tolist() == [255, 255, 255]
    assert int(found.sum()) == 3 * 255


def test_grey_of_16_bits_stays_a_ramp() -> None:
    ramp = np.linspace(0, 65_535, 4_096).astype(np.uint16).reshape(64, 64)
    found = pixels(stored(Image.fromarray(ramp), "PNG")).reshape(-1, 3).astype(int)
    assert (found == found[:, :1]).all()
    assert (np.diff(found[:, 0]) >= 0).all()
    assert len(set(found[:, 0])) == 256
    assert np.abs(found[:, 0] - ramp.reshape(-1) / 257).max() <= 0.5


def test_cmyk_becomes_rgb() -> None:
    plain = smooth()
    found = pixels(stored(plain.convert("CMYK"), "JPEG", quality=98))
    assert np.abs(found.astype(int) - np.asarray(plain)).mean() < 4


def transparent(mode: str) -> Image.Image:
    """Red on the left; what is on the right is not to be seen."""
    picture = np.zeros((4, 8, 4), np.uint8)
    picture[:, :4] = [200, 0, 0, 255]
    image = Image.fromarray(picture, "RGBA") if mode == "RGBA" else None
    if image is not None:
        return image
    if mode == "LA":
        return Image.fromarray(picture, "RGBA").convert("LA")
    flat = Image.new("P", (8, 4), 1)
    flat.putpalette([200, 0, 0, 7, 7, 7])
    flat.paste(0, (0, 0, 4, 4))
    return flat


@pytest.mark.parametrize(
    ("mode", "form"), [("RGBA", "PNG"), ("RGBA", "WEBP"), ("LA", "PNG"), ("P", "PNG"), ("P", "GIF")]
)
def test_what_is_transparent_shows_white(mode: str, form: str) -> None:
    options = {"transparency": 1} if mode == "P" else {"lossless": True}
    found = pixels(stored(transparent(mode), form, **options))
    assert (found[:, 4:] == 255).all()
    assert (found[:, :4] < 210).all()
    if mode != "LA":
        assert found[0, 0].tolist() == [200, 0, 0]


def test_a_palette_with_many_degrees_of_transparency() -> None:
    flat = transparent("P")
    raw = stored(flat, "PNG", transparency=bytes([255, 51]))
    assert pixels(raw)[0, 7].tolist() == [round(7 * 0.2 + 255 * 0.8)] * 3


def test_of_an_animation_the_first_frame_is_taken() -> None:
    frames = [Image.new("RGB", (5, 4), colour) for colour in ("red", "green", "blue")]
    raw = stored(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert pixels(raw)[0, 0].tolist() == [255, 0, 0]


def test_a_colour_profile_changes_nothing() -> None:
    picture = Image.fromarray(noise())
    assert (pixels(stored(picture, "PNG", icc_profile=b"x" * 200)) == np.asarray(picture)).all()


@pytest.mark.parametrize("mode", ["1", "L"])
def test_other_modes_become_rgb(mode: str) -> None:
    picture = smooth().convert(mode)
    assert (pixels(stored(picture, "PNG")) == np.asarray(picture.convert("RGB"))).all()


@pytest.mark.parametrize(("height", "width"), [(1, 1), (1, 10_000), (10_000, 1)])
def test_odd_shapes_are_images_too(height: int, width: int) -> None:
    raw = stored(Image.new("RGB", (width, height), (1, 2, 3)), "PNG")
    assert decode(raw).shape == (3, height, width)
    assert decode(raw, short=64).shape == (3, height, width)


@pytest.mark.parametrize(("side", "short"), [(20_000, None), (12_000, None), (12_000, 64)])
def test_too_many_pixels_are_refused_before_they_are_decoded(side: int, short: int | None) -> None:
    told = refusal(png_of_size(side, side), **({"short": short} if short else {}))
    assert told == (
        f"the image: too large: {side}×{side} is over {MAX_PIXELS:,} pixels; make it smaller"
    )


def test_a_jpeg_is_shrunk_while_it_is_decoded_but_not_below_what_is_wanted() -> None:
    raw = stored(smooth(480, 640), "JPEG", quality=95)
    assert decode(raw).shape == (3, 480, 640)
    assert decode(raw, short=200).shape == (3, 240, 320)
    assert decode(raw, short=241).shape == (3, 480, 640)
    small = decode(raw, short=60).float()
    assert small.shape == (3, 60, 80)
    expected = torch.nn.functional.avg_pool2d(decode(raw).float(), 8)
    assert (small - expected).abs().max() < 4


def test_a_jpeg_of_many_scans_is_refused_and_one_that_only_looks_so_is_not() -> None:
    assert "too many scans: 51 in a JPEG is over 50" in refusal(many_scans(16, scans=45))
    assert decode(many_scans(16, scans=44)).shape == (3, 16, 16)
    whole = stored(smooth(), "JPEG", progressive=True)
    note = b"\xff\xfe" + (2 + 60_000).to_bytes(2, "big") + b"\xff\xda" * 30_000
    commented, followed = whole[:2] + note + whole[2:], whole + b"\xff\xda" * 30_000
    for harmless in (commented, followed):
        assert torch.equal(decode(harmless), decode(whole))
    # Marks that have no length must not hide the scans that come after them.
    hidden = many_scans(16, scans=0)
    scan = hidden[hidden.rfind(b"\xff\xda") : -2]
    for mark in (b"\xff\x02\xff\xff", b"\xff\xd0\xff\xff", b"\xff\xff", b"\xff\x00\xff\xff"):
        assert count_scans(hidden[:-2] + (mark + scan) * 60 + hidden[-2:]) >= 60


@pytest.mark.slow
def test_a_jpeg_over_the_limit_is_read_where_a_small_one_is_wanted() -> None:
    for progressive in (False, True):
        raw = stored(Image.new("L", (12_000, 12_000), 99), "JPEG", progressive=progressive)
        assert "too large: 12000×12000" in refusal(raw)
        if progressive:  # held whole while it is decoded
            assert "too large: 12000×12000" in refusal(raw, short=224)
        else:
            assert decode(raw, short=224).shape == (3, 1_500, 1_500)
    raw = stored(Image.new("L", (20_000, 20_000), 99), "JPEG")
    assert "too large: 20000×20000" in refusal(raw, short=224)


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (b"", "x.png: empty image: the file has 0 bytes; fetch it again"),
        (
            b"hello\nworld",
            "x.png: no image: it does not begin like any of JPEG, PNG, WebP, GIF, BMP, TIFF; "
            "convert it",
        ),
        (b"\x89PNG\r\n\x1a\n", "x.png: damaged image: a PNG file, but "),
        (
            stored(smooth(), "JPEG")[:-200],
            "x.png: damaged image: a JPEG file, but image file is truncated",
        ),
    ],
)
def test_a_refusal_names_the_file_and_the_reason(tmp_path: Path, raw: bytes, told: str) -> None:
    (tmp_path / "x.png").write_bytes(raw)
    assert refusal(tmp_path / "x.png").startswith(str(tmp_path / told))


def test_a_file_that_is_not_there_or_not_a_file_is_refused(tmp_path: Path) -> None:
    assert "unreadable image" in refusal(tmp_path / "none.png")
    assert "is a directory" in refusal(tmp_path)
    os.mkfifo(tmp_path / "fifo.png")
    assert "not a regular file" in refusal(tmp_path / "fifo.png")
    assert "unreadable image" in refusal(Path("a\0b"))


def test_an_error_comes_home_from_a_worker() -> None:
    error = pickle.loads(pickle.dumps(ImageError("a.png", "no image: x")))
    assert (str(error), error.reason) == ("a.png: no image: x", "no image: x")


FILES = [
    stored(smooth(), "JPEG"),
    stored(smooth(), "JPEG", progressive=True),
    stored(smooth().convert("CMYK"), "JPEG"),
    stored(smooth(), "PNG"),
    stored(transparent("P"), "PNG", transparency=1),
    stored(Image.fromarray(np.arange(999, dtype=np.uint16)[None]), "PNG"),
    stored(smooth(), "WEBP"),
    stored(smooth(), "GIF", save_all=True, append_images=[smooth()]),
    stored(smooth(), "BMP"),
]
HEADS = [b"", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"BM", b"RIFF\x40\0\0\0WEBPVP8 "]
damage = st.lists(st.tuples(st.integers(0, 100_000), st.integers(0, 255)), max_size=6)


def decoded_or_refused(raw: bytes) -> None:
    try:
        found = decode(raw)
    except DataError as error:
        told = str(error)
        told.encode()
        assert "\n" not in told
    else:
        assert found.dtype == torch.uint8
        assert found.shape[0] == 3


@settings(max_examples=150)
@given(head=st.sampled_from(HEADS), rest=st.binary(max_size=200))
def test_any_bytes_are_decoded_or_refused(head: bytes, rest: bytes) -> None:
    decoded_or_refused(head + rest)


@settings(max_examples=300)
@given(raw=st.sampled_from(FILES), spots=damage, cut=st.integers(0, 100_000))
def test_any_damage_is_decoded_or_refused(
    raw: bytes, spots: list[tuple[int, int]], cut: int
) -> None:
    changed = bytearray(raw)
    for place, value in spots:
        changed[place % len(raw)] = value
    decoded_or_refused(bytes(changed[: len(raw) - cut % len(raw)]))


@pytest.mark.parametrize("number", range(len(FILES)))
def test_half_a_file_is_refused(number: int) -> None:
    raw = FILES[number]
    assert "damaged image" in refusal(raw[: len(raw) // 2])
