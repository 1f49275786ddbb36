"""Pictures of attention."""

import io
import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import torch
from PIL import Image

from saccade.app.look.document import LookDocument
from saccade.app.look.draw.colour import ink, shade
from saccade.app.look.draw.figure import MatrixLook
from saccade.errors import ConfigError, WriteError

LOOK = MatrixLook(
    rows=["la", "zone", "économique"],
    columns=["the", "Economic", "Area", "<b>&\x00"],
    weights=torch.tensor([[0.9, 0.05, 0.05, 0.0], [0.0, 0.2, 0.8, 0.0], [0.0, 1.0, 0.0, 0.0]]),
    title="a <title> & more",
    caption="la zone économique",
    document=lambda: LookDocument(kind="translation", title="", notes=[], looks=[], blobs=[]),
)


def test_svg_is_sound_xml_with_every_word_and_a_cell_for_each_pair() -> None:
    root = ET.fromstring(LOOK._repr_mimebundle_()["image/svg+xml"])
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"la", "zone", "économique", "the", "Economic", "Area", r"<b>&\x00"} <= set(texts)
    cells = [r for r in root.iter("{http://www.w3.org/2000/svg}rect") if len(r)]
    assert len(cells) == 12


def test_png_is_darkest_where_the_weight_is_greatest(tmp_path: Path) -> None:
    image = Image.open(io.BytesIO(LOOK.save(tmp_path / "x.png").read_bytes())).convert("RGB")
    colours = {colour for _, colour in image.getcolors(1 << 24) or []}
    assert shade(1.0) in colours
    assert shade(0.8) in colours
    assert min(image.size) > 200


def test_json_holds_the_numbers(tmp_path: Path) -> None:
    table = json.loads(LOOK.save(tmp_path / "x.json").read_text())
    assert table["rows"] == LOOK.rows
    assert table["weights"][0][0] == pytest.approx(0.9)


def test_plain_text_lists_what_weighs_most_first() -> None:
    lines = LOOK.text(colour=False).splitlines()
    assert lines[1] == "      zone  ← Area 0.80, Economic 0.20"


def test_coloured_text_shows_all_words_in_order() -> None:
    line = LOOK.text(colour=True).splitlines()[0]
    assert line.index("the") < line.index("Economic") < line.index("Area")
    assert "\x1b[" in line


def test_shades_get_darker_and_stay_readable() -> None:
    light = [sum(shade(weight / 20)) for weight in range(21)]
    assert light == sorted(light, reverse=True)
    for weight in (0.0, 0.3, 0.5, 0.6, 1.0):
        assert abs(sum(shade(weight)) - sum(ink(weight))) > 200


def test_other_endings_and_folders_that_cannot_be_written_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"x\.gif: a look is saved as \.html, \.svg, \.png, \.json"
    ):
        LOOK.save(tmp_path / "x.gif")
    with pytest.raises(WriteError, match="cannot write"):
        LOOK.save(tmp_path / "missing" / "x.png")
