"""Bytes of a JPEG, PNG, WebP, GIF, BMP or TIFF file as red, green and blue, whatever is in them.

What the file says of its form counts, not the ending of its name. The orientation that a camera
noted is undone; of an animation the first frame is taken; what is transparent shows white; colour
profiles are ignored (values are taken as sRGB); 16-bit grey is scaled to 8. No other exception
than `ImageError` comes out, and its message is one line. Without torch, so that a process of its
own can do this for strangers, and begin quickly.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from PIL import Image
from PIL.BmpImagePlugin import BmpImageFile
from PIL.GifImagePlugin import GifImageFile
from PIL.ImageFile import ImageFile
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile
from PIL.TiffImagePlugin import TiffImageFile
from PIL.WebPImagePlugin import WebPImageFile

from saccade.data.images.members import Member
from saccade.errors import DataError

MAX_PIXELS = 50_000_000
DRAFTED = 4  # times as many may a JPEG have of which only a half, a quarter or an eighth is decoded
# Encoders write up to some twenty scans of a progressive JPEG. Each passes over all of the image,
# even one that changes nothing, so a small file with thousands of them takes minutes to decode.
MAX_SCANS = 50

_ORIENTATION = 0x0112  # EXIF tag
_START_OF_FRAME, _END_OF_IMAGE, _START_OF_SCAN = 0xC0, 0xD9, 0xDA  # marks of a JPEG
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_LYING = (5, 6, 7, 8)  # turned by a quarter
_NOTED = (b"eXIf", b"Raw profile type exif", b"XML:com.adobe.xmp")  # a PNG's note of how it lies
# Opened by their classes and not by Image.open, which tries forms we do not want and warns about
# sizes in its own way.
_FORMS: dict[str, tuple[Callable[[bytes], bool], type[ImageFile]]] = {
    "JPEG": (lambda raw: raw.startswith(b"\xff\xd8\xff"), JpegImageFile),
    "PNG": (lambda raw: raw.startswith(b"\x89PNG\r\n\x1a\n"), PngImageFile),
    "WebP": (lambda raw: raw.startswith(b"RIFF") and raw[8:12] == b"WEBP", WebPImageFile),
    "GIF": (lambda raw: raw.startswith((b"GIF87a", b"GIF89a")), GifImageFile),
    "BMP": (lambda raw: raw.startswith(b"BM"), BmpImageFile),
    "TIFF": (lambda raw: raw.startswith((b"II*\0", b"MM\0*")), TiffImageFile),
}
# Of TIFF what people save images as. It may hold much else: other decoders, floats and heights that
# are no grey, a thumbnail in front of a camera's raw data.
_TIFF_PACKED = ("raw", "packbits", "tiff_lzw", "tiff_adobe_deflate", "tiff_deflate")
_TIFF_MODES = ("1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16", "I;16B")
_TIFF_BITS = (1, 2, 4, 8, 16)
_AS_USUAL = "save it as PNG, or as TIFF of 8 or 16 bits with LZW"
_BITS, _ZERO_IS, _FORMAT, _THUMBNAIL, _TILE = 258, 262, 339, 254, (322, 323)  # tags


class ImageError(DataError):
    """An image that cannot be used. The reason is "kind: detail", as of any bad row."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: {reason}")
        self.name = name
        self.reason = reason

    def __reduce__(self) -> tuple[type["ImageError"], tuple[str, str]]:
        return ImageError, (self.name, self.reason)  # so that it comes home from a worker


def decode_pixels(
    source: bytes | Path | Member,
    *,
    name: str = "",
    short: int | None = None,
    most: int = MAX_PIXELS,
) -> UInt8[np.ndarray, "3 H W"]:
    """An image of at most `most` pixels, upright. `name` is for messages.

    With `short`, a large JPEG may come at 1/2, 1/4 or 1/8 of its size, its shorter side still
    `short` pixels or more: this is faster, and the only way to read one over `most`.
    """
    name = name or _name_of(source)
    with _open(source, name) as image:
        _bound(image, name, short, most)
        image.load()
        return upright_pixels(image)


def upright_size(source: bytes | Path | Member, *, name: str = "") -> tuple[int, int]:
    """Height and width of an image once upright. No pixel is decoded, but of a PNG with notes."""
    name = name or _name_of(source)
    raw = _bytes(source, name)
    with _open(raw, name) as image:
        width, height = image.size
        if isinstance(image, TiffImageFile):  # Pillow has turned its sides already
            return height, width
        if isinstance(image, PngImageFile):  # whose notes may follow its pixels
            if not any(mark in raw for mark in _NOTED):
                return height, width
            _bound(image, name, None, MAX_PIXELS)
        return (width, height) if _orientation(image) in _LYING else (height, width)


def _name_of(source: bytes | Path | Member) -> str:
    if isinstance(source, bytes):
        return "the image"
    return source.name if isinstance(source, Member) else str(source)


@contextmanager
def _open(source: bytes | Path | Member, name: str) -> Generator[ImageFile]:
    """An image whose header was read; whatever fails while it is used is an `ImageError`."""
    raw = _bytes(source, name)
    form = _form(raw, name)
    if form == "JPEG" and (scans := count_scans(raw)) > MAX_SCANS:
        reason = f"too many scans: {scans} in a JPEG is over {MAX_SCANS}; save it again"
        raise ImageError(name, reason)
    try:
        yield _FORMS[form][1](BytesIO(raw))
    except ImageError:
        raise
    except Exception as error:  # a damaged file makes Pillow raise errors of any kind
        why = (str(error) or type(error).__name__).partition("\n")[0][:200]
        if form == "TIFF" and "pixel mode" in why:
            reason = f"no image: a TIFF of other bands than grey or colours; {_AS_USUAL}"
        else:
            reason = f"damaged image: a {form} file, but {why}; fetch it again"
        raise ImageError(name, reason) from None


def _bytes(source: bytes | Path | Member, name: str) -> bytes:
    if isinstance(source, bytes):
        return source
    try:
        return (source if isinstance(source, Member) else Member.of(source)).read()
    except DataError as error:
        raise ImageError(name, f"unreadable image: {error}") from None


def _form(raw: bytes, name: str) -> str:
    if not raw:
        raise ImageError(name, "empty image: the file has 0 bytes; fetch it again")
    for form, (begins_so, _) in _FORMS.items():
        if begins_so(raw):
            return form
    raise ImageError(
        name, f"no image: it does not begin like any of {', '.join(_FORMS)}; convert it"
    )


def count_scans(raw: bytes) -> int:
    """How many scans a decoder may find in a JPEG, or more; exact where there are too many.

    Two bytes mark a scan, and what is compressed never holds them; thumbnails, notes and whatever
    comes after the image may, so segments are stepped over before anyone is refused.
    """
    scans = raw.count(b"\xff\xda")
    if scans <= MAX_SCANS:
        return scans
    scans, at = 0, 2
    while 0 <= (at := raw.find(b"\xff", at)) < len(raw) - 1:
        mark = raw[at + 1]
        if mark == _END_OF_IMAGE:
            break
        scans += mark == _START_OF_SCAN
        has_length = _START_OF_FRAME <= mark < 0xFF and not 0xD0 <= mark <= 0xD9
        at += 2 + int.from_bytes(raw[at + 2 : at + 4]) if has_length else 1 + (mark < 0xFF)
    return scans


def _bound(image: ImageFile, name: str, short: int | None, most: int) -> None:
    """Refuse what is too large before a pixel of it is decoded; shrink what may be shrunk."""
    width, height = image.size
    # A progressive JPEG is held whole while it is decoded, however small it is to come out.
    shrinks = isinstance(image, JpegImageFile) and "progressive" not in image.info
    if short and shrinks and width * height <= DRAFTED * most:
        image.draft(None, (short, short))
    if image.size[0] * image.size[1] > most:
        reason = f"too large: {width}×{height} is over {most:,} pixels; make it smaller"
        raise ImageError(name, reason)
    if isinstance(image, TiffImageFile):
        _require_usual(image, name, most)


def _require_usual(image: TiffImageFile, name: str, most: int) -> None:
    """Refuse a TIFF whose numbers are no grey or colours of 8 or 16 bits, packed in a usual way."""
    tags, packed = image.tag_v2, str(image.info["compression"])
    bits, kinds = tags.get(_BITS, (1,)), tags.get(_FORMAT, (1,))
    shown = {"1": "black and white", "I": "whole numbers", "F": "fractions"}
    if packed not in _TIFF_PACKED:
        told = f"a TIFF packed as {packed.removeprefix('tiff_')}"
    elif image.mode not in _TIFF_MODES or set(kinds) != {1} or not set(bits) <= {*_TIFF_BITS}:
        what = shown.get(image.mode, f"mode {image.mode}")
        told = f"a TIFF of {what} with {max(bits)} bits"
    elif image.mode.startswith("I;16") and tags.get(_ZERO_IS) == 0:
        told = "a TIFF of 16-bit grey in which 0 is white"
    elif tags.get(_THUMBNAIL, 0) & 1:
        told = "a TIFF that begins with a thumbnail, as cameras' raw files do"
    elif (area := tags.get(_TILE[0], 0) * tags.get(_TILE[1], 0)) > most:
        told = f"a TIFF in tiles of {area:,} pixels"
    else:
        return
    raise ImageError(name, f"no image: {told}; {_AS_USUAL}")


def upright_pixels(image: Image.Image) -> UInt8[np.ndarray, "3 H W"]:
    """An image that Pillow holds, turned as its camera noted, in RGB over white."""
    image.load()  # of a TIFF, Pillow then turns it itself, and takes the note away
    turn = _UPRIGHT.get(_orientation(image))
    plain = _plain(image)
    if turn is not None:
        plain = plain.transpose(turn)
    return np.asarray(plain).transpose(2, 0, 1).copy()


def _orientation(image: Image.Image) -> int:
    try:
        found = image.getexif().get(_ORIENTATION, 1)
    except Exception:  # the image is whole even where this note is damaged
        return 1
    return found if isinstance(found, int) else 1


def _plain(image: Image.Image) -> Image.Image:
    """In RGB, over white."""
    if image.mode == "I" or image.mode.startswith("I;16"):
        grey = np.asarray(image).astype(np.int64).clip(0, 65_535)
        return Image.fromarray(((grey * 255 + 32_767) // 65_535).astype(np.uint8)).convert("RGB")
    if image.has_transparency_data:
        clear = image.convert("RGBA")
        white = Image.new("RGB", clear.size, "white")
        white.paste(clear, mask=clear)
        return white
    return image.convert("RGB")
