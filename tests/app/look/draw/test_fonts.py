"""A picture's text is in fonts that have its letters, or it is said which have none."""

import shutil
import warnings
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest
from font_roboto import font_files
from PIL import Image, ImageFont

from saccade.app.look.draw import fonts
from saccade.app.look.draw.fonts import Face, FontWarning, right_to_left, runs, warn_of_fonts
from saccade.app.look.draw.png import draw_png
from saccade.app.look.draw.text import text_strip, text_width
from saccade.errors import ConfigError


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A system without fontconfig, whose only folder of fonts is empty.

    In place of Roboto, Pillow's own font, which has Latin letters alone.
    """
    folder, latin = tmp_path / "fonts", tmp_path / "latin.ttf"
    folder.mkdir()
    own = ImageFont.load_default(20)
    assert isinstance(own, ImageFont.FreeTypeFont)
    assert isinstance(own.path, BytesIO)
    latin.write_bytes(own.path.getvalue())
    monkeypatch.setattr(fonts, "FOLDERS", (str(folder),))
    monkeypatch.setattr(fonts, "ROBOTO", Face(str(latin)))
    monkeypatch.setattr(fonts, "_served", {})
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("SACCADE_FONT", raising=False)
    for cached in (fonts._found, fonts._installed):
        cached.cache_clear()
    yield folder
    for cached in (fonts._found, fonts._installed):
        cached.cache_clear()


def test_letters_that_the_first_font_lacks_come_from_one_that_has_them(bare: Path) -> None:
    found = shutil.copy(font_files["Roboto"], bare)
    assert runs("a Жук b") == [("a ", fonts.ROBOTO), ("Жук b", Face(str(found)))]
    warn_of_fonts(["a Жук"])  # warnings are errors here


def test_emoji_do_not_lend_their_font_to_what_follows(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    roboto = Face(font_files["Roboto"])
    monkeypatch.setattr(Face, "has", lambda face, letters: face == roboto or letters.isascii())
    monkeypatch.setattr(fonts, "_system", lambda letters, *, emoji: iter([roboto]))
    assert runs("❤\ufe0f1") == [("❤\ufe0f", roboto), ("1", fonts.ROBOTO)]
    assert runs("Ж1") == [("Ж1", roboto)]


def test_a_font_can_be_named(bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = shutil.copy(font_files["Roboto"], tmp_path / "named.ttf")
    monkeypatch.setenv("SACCADE_FONT", str(named))
    assert runs("Жук") == [("Жук", Face(str(named)))]
    monkeypatch.setenv("SACCADE_FONT", __file__)
    with pytest.raises(ConfigError, match=r"SACCADE_FONT=.*test_fonts\.py is not a font"):
        runs("Жук")


def test_what_no_font_has_is_said_once_with_its_scripts_and_the_way_out(bare: Path) -> None:
    with pytest.warns(FontWarning) as said:
        draw_png(["猫", "the", "猫"], ["Жук", "😀"], [[0.5, 0.5]] * 3, title="attention")
    (one,) = said
    text = str(one.message)
    assert "猫 Ж у к 😀 (CJK, Cyrillic, emoji)" in text
    assert "fonts-noto" in text
    shutil.copy(font_files["Roboto"], bare)  # the way out, taken
    for cached in (fonts._found, fonts._installed):
        cached.cache_clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw_png(["the"], ["Жук"], [[1.0]], title="attention")


def test_what_is_drawn_is_not_the_sign_for_what_is_missing(bare: Path) -> None:
    missing = text_strip("Ж", 40, "black").tobytes()
    shutil.copy(font_files["Roboto"], bare)
    for cached in (fonts._found, fonts._installed):
        cached.cache_clear()
    assert text_strip("Ж", 40, "black").tobytes() != missing


def test_a_strip_holds_all_of_its_text() -> None:
    for text in ("label", "öÅgjq", "W" * 30):
        strip = text_strip(text, 30, "black")
        left, top, right, bottom = strip.getbbox() or (0, 0, 0, 0)
        assert 0 < left < right < strip.width
        assert 0 < top < bottom < strip.height
        assert abs((right - left) - text_width(text, 30)) < 12


def test_without_shaping_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fonts.features, "check", lambda name: False)
    warn_of_fonts(["Latin"])
    with pytest.warns(FontWarning, match=r"has no raqm.*save an \.svg"):
        warn_of_fonts(["ב"] if fonts.face_for("ב") else ["\u0903"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [("abc", False), ("مرحبا", True), ("12 שלום", True), ("a שלום", False), ("…", False)],
)
def test_text_runs_to_the_left_if_its_first_letter_does(text: str, expected: bool) -> None:
    assert right_to_left(text) is expected


def test_a_named_font_is_used_on_the_picture(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = draw_png(["aaaa"], ["b"], [[1.0]], title="t")
    monkeypatch.setenv("SACCADE_FONT", font_files["Roboto"])
    other = draw_png(["aaaa"], ["b"], [[1.0]], title="t")
    assert Image.open(BytesIO(plain)).tobytes() != Image.open(BytesIO(other)).tobytes()
