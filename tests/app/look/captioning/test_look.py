"""A caption over its picture, as film, page, numbers and text."""

import io
import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from saccade.app.look.captioning.film import ImageLook
from saccade.app.look.captioning.places import in_words, place_of, places
from saccade.app.look.document import LookDocument, MarkedBox
from saccade.data.images.lattice import Lattice
from saccade.errors import ConfigError

WORDS = ["a", "red", "<circle>"]
GRID = Lattice(4, 6)
SVG = "{http://www.w3.org/2000/svg}"


def look(*, hard: bool = False) -> ImageLook:
    maps = torch.rand(3, 4, 6, generator=torch.Generator().manual_seed(0))
    maps /= maps.sum(dim=(1, 2), keepdim=True)
    if hard:
        maps = (maps == maps.amax(dim=(1, 2), keepdim=True)).float()
    picture = torch.randint(256, (3, 64, 64), generator=torch.Generator().manual_seed(1))
    document = LookDocument(kind="caption", title="it", notes=[], looks=[], blobs=[])
    boxes = (MarkedBox(label="red circle", box=[0.1, 0.2, 0.5, 0.6]),)
    seen, title, caption = picture.byte(), "run & it", "a red <circle>"
    return ImageLook(WORDS, maps, GRID, seen, title, caption, lambda: document, hard, boxes)


def test_every_form_is_saved_by_its_ending(tmp_path: Path) -> None:
    for ending in (".html", ".png", ".svg", ".json"):
        assert look().save(tmp_path / f"x{ending}").stat().st_size > 100
    assert '"format":"saccade-look"' in (tmp_path / "x.html").read_text()
    with pytest.raises(ConfigError, match=re.escape("x.pdf: a look is saved as .html, .svg")):
        look().save(tmp_path / "x.pdf")


def test_a_caption_without_words_has_an_empty_look(tmp_path: Path) -> None:
    one = replace(look(), rows=[], maps=torch.zeros(0, 4, 6), caption="")
    assert one.text(colour=True) == one.text(colour=False) == ""
    for ending in (".png", ".svg", ".json"):
        assert one.save(tmp_path / f"x{ending}").stat().st_size > 100


def test_the_numbers_are_the_maps(tmp_path: Path) -> None:
    one = look()
    table = json.loads(one.save(tmp_path / "x.json").read_text())
    assert table["words"] == WORDS
    down, across = ([(i + 0.5) / n for i in range(n)] for n in (4, 6))
    assert (table["grid"]["height"], table["grid"]["width"]) == (4, 6)
    assert table["grid"]["down"] == pytest.approx(down, abs=1e-5)
    assert table["grid"]["across"] == pytest.approx(across, abs=1e-5)
    np.testing.assert_allclose(table["maps"], one.maps, atol=1e-6)
    np.testing.assert_allclose(np.sum(table["maps"], axis=(1, 2)), 1, atol=1e-4)
    assert table["boxes"] == [{"label": "red circle", "box": [0.1, 0.2, 0.5, 0.6]}]


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("cells", [False, True])
def test_the_drawing_for_papers_has_every_word_as_text(
    tmp_path: Path, hard: bool, cells: bool
) -> None:
    root = ET.parse(look(hard=hard).save(tmp_path / "x.svg", cells=cells)).getroot()
    texts = [node.text for node in root.iter(f"{SVG}text")]
    assert texts == ["run & it", "a red <circle>", "the image", *WORDS]
    pictures = list(root.iter(f"{SVG}image"))
    assert len(pictures) == 1 + len(WORDS)
    assert all(node.attrib["href"].startswith("data:image/") for node in pictures)
    marks = list(root.iter(f"{SVG}{'rect' if hard else 'circle'}"))
    assert len(marks) == (len(WORDS) + 2 if hard else len(WORDS))


def test_the_film_has_the_picture_and_a_frame_for_each_word(tmp_path: Path) -> None:
    image = Image.open(look().save(tmp_path / "x.png"))
    assert image.size == (2 * (2 * 18 + 4 * 150 + 3 * 12), 2 * (62 + 178 + 18))
    again = Image.open(io.BytesIO(look()._repr_png_()))
    assert again.size == image.size
    pixels = np.asarray(image.convert("L")).astype(float)
    bright = [pixels[124:424, 36 + i * 324 : 336 + i * 324].mean() for i in range(4)]
    assert max(bright[1:]) < bright[0]


def test_frames_run_as_the_words_do() -> None:
    english, hebrew = look(), replace(look(), rows=["<start>", "עיגול", "אדום"])
    across = [[film.corner(number)[0] for number in range(4)] for film in (english, hebrew)]
    assert across[0] == sorted(across[0])
    assert across[1] == across[0][::-1]


def test_in_a_notebook_the_page_has_a_frame_of_its_own() -> None:
    assert look()._repr_html_().startswith("<iframe srcdoc=")


def test_elsewhere_than_on_a_terminal_each_word_says_where_it_looked() -> None:
    lines = look(hard=True).text(colour=False).splitlines()
    assert [line.split("←")[0].strip() for line in lines] == WORDS
    for line, one in zip(lines, look(hard=True).maps):
        cell = int(one.argmax())
        assert line.endswith(f"← {place_of(cell, GRID)} 1.00")


def test_on_a_terminal_each_word_has_a_small_map() -> None:
    shown = look().text(colour=True)
    assert all(word in shown for word in WORDS)
    assert shown.count("▀") == 3 * 2 * 6
    maps = torch.rand(1, 40, 40)
    many = replace(look(), rows=["x"], maps=maps, lattice=Lattice(40, 40))
    assert many.text(colour=True).count("▀") == 5 * 10


@given(h=st.integers(1, 12), w=st.integers(1, 12), seed=st.integers(0, 99))
def test_places_share_all_of_the_attention_and_mirror_with_the_map(
    h: int, w: int, seed: int
) -> None:
    one = torch.rand(h, w, generator=torch.Generator().manual_seed(seed)).double()
    one /= one.sum()
    assert sum(mass for _, mass in places(one, Lattice(h, w))) == pytest.approx(1)
    turned = {_mirrored(name): mass for name, mass in places(one, Lattice(h, w))}
    assert dict(places(one.flip(1), Lattice(h, w))) == pytest.approx(turned)


def _mirrored(name: str) -> str:
    swap = {"left": "right", "right": "left"}
    return " ".join(swap.get(part, part) for part in name.split())


def test_a_word_that_looks_nowhere_says_so() -> None:
    assert in_words(torch.zeros(3, 3), Lattice(3, 3)) == "nowhere"
    assert (
        in_words(torch.eye(3) / 3, Lattice(3, 3)) == "top left 0.33, centre 0.33, bottom right 0.33"
    )
