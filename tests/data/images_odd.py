"""Every odd and every broken image that a user may have (D2): `ODD` can be used, `BROKEN` cannot.

The key of a broken one begins its name; the value's second half begins what is said of it.
"""

import io
import struct
import zlib
from functools import cache

import numpy as np
from PIL import Image, ImageCms


def stored(image: Image.Image, form: str, **options: object) -> bytes:
    sink = io.BytesIO()
    image.save(sink, form, **options)
    return sink.getvalue()


def smooth(height: int = 24, width: int = 40) -> Image.Image:
    y, x = np.mgrid[0:height, 0:width]
    planes = [255 * y / height, 255 * x / width, 255 * (x + y) / (height + width)]
    return Image.fromarray(np.stack(planes, axis=-1).astype(np.uint8))


def black_png(width: int, height: int) -> bytes:
    """A PNG of this size that is small, made without ever holding it."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    packer = zlib.compressobj(9)
    rows = [packer.compress(bytes(1 + (width + 7) // 8)) for _ in range(height)]
    body = b"".join(rows) + packer.flush()
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    marks = [(b"IHDR", header), (b"IDAT", body), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*mark) for mark in marks)


def many_scans(side: int, *, scans: int) -> bytes:
    """A progressive JPEG that says over and over again that nothing is to be added."""
    raw = stored(Image.new("L", (side, side), 90), "JPEG", progressive=True)
    return raw[:-2] + raw[raw.rfind(b"\xff\xda") : -2] * scans + raw[-2:]


def _turned(orientation: int) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return stored(smooth(), "JPEG", exif=exif)


def _animated() -> bytes:
    frames = [smooth().rotate(90 * turn) for turn in range(3)]
    return stored(frames[0], "GIF", save_all=True, append_images=frames[1:])


def _clear_palette() -> bytes:
    return stored(smooth().quantize(16), "PNG", transparency=3)


def _with_profile() -> bytes:
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB"))
    return stored(smooth(), "JPEG", icc_profile=profile.tobytes())


@cache
def odd() -> dict[str, bytes]:
    """Images that are to be read all the same."""
    ramp = np.linspace(0, 65_535, 1024).astype(np.uint16).reshape(32, 32)
    return {
        "one pixel.png": stored(smooth(1, 1), "PNG"),
        "a line.png": stored(smooth(1, 10_000), "PNG"),
        "cmyk.jpg": stored(smooth().convert("CMYK"), "JPEG"),
        "16 bit grey.png": stored(Image.fromarray(ramp), "PNG"),
        "clear palette.png": _clear_palette(),
        "grey and clear.png": stored(smooth().convert("LA"), "PNG"),
        "animated.gif": _animated(),
        "wrong ending.png": stored(smooth(), "WEBP"),
        "profile.jpg": _with_profile(),
        "progressive.jpg": stored(smooth(), "JPEG", progressive=True),
        **{f"turned {turn}.jpg": _turned(turn) for turn in range(1, 9)},
    }


@cache
def broken() -> dict[str, tuple[bytes, str]]:
    """Images that cannot be used, and how the message about each begins."""
    whole = stored(smooth(200, 200), "JPEG")
    return {
        "empty.jpg": (b"", "empty image"),
        "text.png": (b"This is no image.\n" * 9, "no image"),
        "cut short.jpg": (whole[: len(whole) // 2], "damaged image"),
        "header only.jpg": (whole[:20], "damaged image"),
        "header only.png": (stored(smooth(), "PNG")[:33], "damaged image"),
        "many scans.jpg": (many_scans(200, scans=100), "too many scans: 106 in a JPEG is over 50"),
        "20000 wide.png": (black_png(20_000, 20_000), "too large"),
        "12000 wide.png": (black_png(12_000, 12_000), "too large"),
    }
