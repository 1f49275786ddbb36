"""Fonts that have the glyphs of a text, whatever its script.

Tried in turn: what SACCADE_FONT names (a file, or several as in a PATH), Roboto, what has served
before, and what the system offers: by fontconfig where there is one, else from the usual folders.
"""

import os
import subprocess
import unicodedata
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import regex
from font_roboto import font_files
from PIL import Image, ImageDraw, ImageFont, features

from saccade.errors import ConfigError
from saccade.printable import printable

VARIABLE = "SACCADE_FONT"
FOLDERS = (
    *("~/.fonts", "~/.local/share/fonts", "/usr/local/share/fonts", "/usr/share/fonts"),
    *("~/Library/Fonts", "/Library/Fonts", "/System/Library/Fonts", "C:/Windows/Fonts"),
)
STRIKES = (109, 136, 160, 128, 96, 64, 40, 32, 20)  # sizes of fonts that are made of images
NOWHERE = "\U0010ffff"  # no character: every font draws its sign for a missing glyph
_CLUSTER = regex.compile(r"\X")
_EMOJI = regex.compile(r"\p{Emoji_Presentation}|\ufe0f")
_CONTROL = regex.compile(r"<.+>|\[\w+\]")
_HEAVY = regex.compile(r"bold|black|heavy|light|thin|italic|oblique|condensed|mono", regex.I)


class FontWarning(UserWarning):
    """Text that a picture cannot show as it should."""


@dataclass(frozen=True)
class Face:
    """A font in a file; a font made of images has one size only."""

    path: str
    index: int = 0

    def at(self, size: int) -> ImageFont.FreeTypeFont:
        """At a size in pixels, or at the one that it has."""
        return _load(self, size)

    def has(self, letters: str) -> bool:
        """Whether all letters look like something else than what is missing."""
        try:
            font = self.at(64)
        except OSError:
            return False
        return all(_drawn(font, one) != _drawn(font, NOWHERE) for one in letters)


ROBOTO = Face(font_files["Roboto"])


def runs(text: str) -> list[tuple[str, Face]]:
    """A text in parts of one font each; what no font has is drawn by Roboto, as missing.

    Blanks, numbers and marks stay in the font of what is before them, so that they stay in its
    order too; emoji are always apart.
    """
    parts: list[tuple[str, Face]] = []
    for cluster in _CLUSTER.findall(text):
        before, last = parts[-1] if parts else ("", None)
        apart = _EMOJI.search(cluster) or _EMOJI.search(before)
        if last and last != ROBOTO and not apart and last.has(_visible(cluster)):
            face = last
        else:
            face = face_for(cluster) or ROBOTO
        if face == last:
            parts[-1] = (before + cluster, face)
        else:
            parts.append((cluster, face))
    return parts


def face_for(cluster: str) -> Face | None:
    """The first font that has all letters of what readers take for one."""
    return _found(cluster, os.environ.get(VARIABLE, ""))


def right_to_left(text: str) -> bool:
    """Whether the first letter that has a direction runs to the left."""
    for one in text:
        direction = unicodedata.bidirectional(one)
        if direction in ("L", "R", "AL"):
            return direction != "L"
    return False


def runs_left(words: list[str]) -> bool:
    """Whether a text does, by its words but for such as <start> and [CLS], which nobody wrote."""
    return right_to_left(" ".join(word for word in words if not _CONTROL.fullmatch(word.strip())))


def warn_of_fonts(texts: Iterable[str]) -> None:
    """Say once what of some texts cannot be drawn, and what to do."""
    every = "".join(texts)
    clusters = dict.fromkeys(_CLUSTER.findall(every))
    missing = [one for one in clusters if face_for(one) is None]
    if missing:
        scripts = ", ".join(dict.fromkeys(map(_script, missing)))
        more = f" and {len(missing) - 8} more" if len(missing) > 8 else ""
        warnings.warn(
            f"no font here has {' '.join(missing[:8])}{more} ({scripts}): boxes are drawn instead; "
            f"install one that has (Debian: fonts-noto), or name its file in {VARIABLE}; an .svg "
            "is shown with the fonts of its reader",
            FontWarning,
            stacklevel=4,
        )
    if not features.check("raqm") and any(map(_joined, every)):
        warnings.warn(
            "this Pillow has no raqm: letters of scripts that join them or run to the left are "
            "drawn apart and in the wrong order; save an .svg instead, or install Pillow's wheel",
            FontWarning,
            stacklevel=4,
        )


def _joined(one: str) -> bool:
    return unicodedata.bidirectional(one) in ("R", "AL") or unicodedata.category(one) == "Mc"


def _script(one: str) -> str:
    if _EMOJI.search(one):
        return "emoji"
    first = unicodedata.name(_visible(one)[:1] or " ", "unassigned").split()[0].split("-")[0]
    return first if first == "CJK" else first.capitalize()


def _visible(text: str) -> str:
    """Without blanks, and without the marks that only say how others are drawn."""
    return "".join(
        one
        for one in text
        if not (one.isspace() or unicodedata.category(one) == "Cf" or "\ufe00" <= one <= "\ufe0f")
    )


@lru_cache(maxsize=4096)
def _found(cluster: str, named: str) -> Face | None:
    letters, emoji = _visible(cluster), bool(_EMOJI.search(cluster))
    own = [_named(path) for path in named.split(os.pathsep) if path]
    known = [] if emoji else [ROBOTO, *_served]
    for face in (*own, *known, *_system(letters, emoji=emoji)):
        if face.has(letters):
            if not emoji:
                _served[face] = None
            return face
    return None


_served: dict[Face, None] = {}  # a text of many letters asks the system once


def _named(path: str) -> Face:
    face = Face(path)
    try:
        face.at(16)
    except OSError as error:
        raise ConfigError(f"{VARIABLE}={printable(path)} is not a font: {error}") from error
    return face


def _system(letters: str, *, emoji: bool) -> Iterator[Face]:
    family = "emoji" if emoji else "sans-serif"
    charset = " ".join(f"{ord(one):x}" for one in letters)
    asked = ["fc-match", "-f", "%{file}\n%{index}\n", f"{family}:charset={charset}"]
    try:
        answer = subprocess.run(asked, capture_output=True, text=True, timeout=20, check=True)
        path, index, *_ = answer.stdout.splitlines()
        yield Face(path, int(index))
    except (OSError, ValueError, subprocess.SubprocessError):
        yield from _installed()


@lru_cache(maxsize=1)
def _installed() -> list[Face]:
    """All fonts in the usual folders, upright ones of common weight first."""
    folders = [Path(folder).expanduser() for folder in FOLDERS]
    files = [f for folder in folders if folder.is_dir() for f in folder.rglob("*.[to]t[fc]")]
    ordered = sorted(files, key=lambda f: (bool(_HEAVY.search(f.stem)), "Noto" not in f.stem, f))
    return [Face(str(path)) for path in ordered]


@lru_cache(maxsize=256)
def _load(face: Face, size: int) -> ImageFont.FreeTypeFont:
    for one in (size, *STRIKES):
        try:
            return ImageFont.truetype(face.path, one, index=face.index)
        except OSError as error:
            if "size" not in str(error):
                raise
    raise OSError(f"{face.path} has no size that is known")


@lru_cache(maxsize=16384)
def _drawn(font: ImageFont.FreeTypeFont, letter: str) -> int:
    """A number for what a letter looks like."""
    image = Image.new("L", (192, 192))
    ImageDraw.Draw(image).text((32, 128), letter, 255, font, "ls")
    return hash(image.tobytes())
