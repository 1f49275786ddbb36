"""`saccade look` for captioners, and looks of captions from Python."""

import json
from pathlib import Path

import pytest
import torch
from PIL import Image

from saccade.app.api import load
from saccade.app.kinds.captioning.kind import CaptioningModel, look_command
from saccade.app.kinds.text_looks import TextLookOptions
from saccade.app.kinds.translation import kind as translation
from saccade.app.look.settings import LookSettings, Selection
from saccade.data import shapes
from saccade.data.tokens.words import words
from saccade.errors import ConfigError
from tests.app.test_cli import Capture, Patch, run

ONE = LookSettings(beam=1)


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    scene = shapes.scene("test", 5, shapes.ShapesSettings())
    path = tmp_path / "photo.png"
    Image.fromarray(shapes.render(scene, 90)).resize((140, 90)).save(path)
    return path


@pytest.fixture(autouse=True)
def few_scenes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saccade.tasks.captioning.data.HELD_BACK", 12)


def document_of(page: Path) -> dict:
    text = page.read_text()
    start = text.index('id="saccade-look">') + len('id="saccade-look">')
    return json.loads(text[start : text.index("</script>", start)])


def captioning(run: Path) -> CaptioningModel:
    model = load(run, device="cpu")
    assert isinstance(model, CaptioningModel)
    return model


def test_a_picture_is_told_of_word_by_word(
    captioner: Path, photo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    look_command(str(captioner), (str(photo),), settings=ONE, device="cpu")
    caption, *lines = capsys.readouterr().out.splitlines()
    assert caption == captioning(captioner).predict(photo, beam=1).text
    assert [line.split("←")[0].strip() for line in lines] == words(caption)


def test_a_page_holds_the_first_pictures_of_a_split(captioner: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    look_command(str(captioner), split="test", rows=3, out=out, settings=ONE, device="cpu")
    document = document_of(out)
    assert (document["kind"], len(document["images"])) == ("caption", 3)
    for index, entry in enumerate(document["images"]):
        scene = shapes.scene("test", index, captioning(captioner).tool.settings.shapes)
        assert entry["references"] == list(shapes.captions(scene))


def test_two_runs_share_a_page(captioner: Path, photo: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    both = {"compare": str(captioner), "settings": ONE, "device": "cpu"}
    look_command(str(captioner), (str(photo),), out=out, **both)
    assert [look["run"] for look in document_of(out)["looks"]] == ["captioner", "captioner"]
    with pytest.raises(ConfigError, match="--compare is shown on a page"):
        look_command(str(captioner), (str(photo),), **both)


@pytest.mark.slow
@pytest.mark.parametrize("ending", [".png", ".svg", ".json"])
def test_a_picture_goes_to_a_file_by_its_ending(
    captioner: Path, photo: Path, tmp_path: Path, ending: str
) -> None:
    out = tmp_path / f"look{ending}"
    cells = ending != ".json"  # which are of images
    look_command(str(captioner), (str(photo),), out=out, settings=ONE, cells=cells, device="cpu")
    assert out.stat().st_size > 500


@pytest.mark.parametrize(
    ("files", "options", "message"),
    [
        ((), {}, "name an image to look at, or a split"),
        (("x.png",), {"split": "test"}, "name images or a --split, not both"),
        ((), {"split": "test", "rows": 0}, "--rows 0 must be 1 or more"),
        ((), {"split": "test", "rows": 2, "out": Path("x.png")}, "x.png holds one image"),
    ],
)
def test_what_cannot_be_shown_is_refused_in_one_line(
    captioner: Path, files: tuple[str, ...], options: dict, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        look_command(str(captioner), files, settings=ONE, device="cpu", **options)


def test_a_caption_and_a_translation_are_not_compared(
    captioner: Path, translator: Path, photo: Path, tmp_path: Path
) -> None:
    both = {"compare": str(translator), "out": tmp_path / "both.html"}
    with pytest.raises(ConfigError, match="captioner and translator do different work"):
        look_command(str(captioner), (str(photo),), **both, device="cpu")


def test_zoom_is_for_texts(
    captioner: Path, photo: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    arguments = ["look", str(captioner), str(photo), "--zoom", "decoder.0.cross:1"]
    assert run(arguments, monkeypatch) == 2
    assert "--zoom" in capsys.readouterr().err


def test_a_text_model_is_given_one_text(translator: Path) -> None:
    with pytest.raises(ConfigError, match="give one text to look at, not 2; put it in quotes"):
        translation.look_command(
            str(translator), ("we", "eat"), asked=TextLookOptions(device="cpu")
        )


@pytest.mark.slow
def test_a_prediction_shows_where_it_looked(captioner: Path, photo: Path, tmp_path: Path) -> None:
    model = captioning(captioner)
    prediction = model.predict(photo, beam=1)
    look = prediction.look()
    assert look.rows == words(prediction.text)
    expected = model.tool.words_looked_at(prediction.written)
    assert torch.equal(look.maps, expected)
    assert look.lattice == prediction.written.cells.lattice  # type: ignore[union-attr]
    assert look.lattice.first < 0.1, "a CNN's cells lie around their first pixels"
    assert look.document().looks[0].text == prediction.text
    assert look.save(tmp_path / "x.png").exists()


@pytest.mark.slow
def test_a_caption_is_shown_for_a_layer_and_head_in_pieces(captioner: Path, photo: Path) -> None:
    model = captioning(captioner)
    prediction = model.predict(photo, beam=1)
    (glance,) = prediction.written.attention.values()
    assert glance.weights is not None
    one = prediction.look(units="pieces", layer=0, head=0)
    seen = glance.weights[0, 0, : len(one.rows), prediction.written.cells.special :]  # type: ignore[union-attr]
    assert torch.equal(one.maps.flatten(1), seen)
    assert "".join(one.rows).strip() == prediction.text
    assert one.title.endswith("cross, head 0")
    with pytest.raises(ConfigError, match=r"--layer 1 is not there; there are 0 \(.*cross\)"):
        prediction.look(layer=1)
    with pytest.raises(ConfigError, match=r"--head 1 is not there; .*cross has one head, 0"):
        prediction.look(head=1)
    with pytest.raises(ConfigError, match="a page has every layer and head: leave them away"):
        look_command(
            str(captioner),
            (str(photo),),
            out=Path("x.html"),
            select=Selection(head=0),
            device="cpu",
        )
