"""A classifier as a user meets it: from Python, from the command line, with images of any kind."""

import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

import saccade
from saccade.app.kinds.classification.model import ClassificationModel
from saccade.data import shapes
from saccade.errors import ConfigError, DataError, RunError
from tests.app.test_captioning import some_pictures
from tests.app.test_cli import Capture, Patch
from tests.app.test_cli import run as run_command
from tests.train.small import rewrite


def load_classifier(folder: Path) -> ClassificationModel:
    model = saccade.load(folder, device="cpu")
    assert isinstance(model, ClassificationModel)
    return model


def run(capsys: Capture, *arguments: object) -> tuple[int, str, str]:
    capsys.readouterr()
    with pytest.MonkeyPatch.context() as patch:
        code = run_command(list(map(str, arguments)), patch)
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.fixture
def images(tmp_path: Path) -> Path:
    folder = tmp_path / "images"
    folder.mkdir()
    for name, content in some_pictures().items():
        (folder / name).write_bytes(content)
    return folder


def test_many_images_give_what_each_gives_alone(classifier: Path) -> None:
    model, given, told = load_classifier(classifier), list(some_pictures().values()), list[Any]()
    together = model.predict(given, progress=lambda done, of: told.append((done, of)))
    alone = [model.predict(image) for image in given]
    for one, other in zip(together, alone):
        assert one.text == other.text
        assert torch.allclose(one.probabilities, other.probabilities, atol=1e-6)
        assert one.probabilities.sum().item() == pytest.approx(1)
        assert one.guesses[0].label == one.text == str(one)
        assert [g.probability for g in one.guesses] == sorted(
            (g.probability for g in one.guesses), reverse=True
        )
    assert told == [(4, 4)]
    assert model.classes == shapes.KINDS
    assert model.predict([]) == []
    assert len(model.predict(given[0], best=2).guesses) == 2
    assert len(model.predict(given[0], best=99).guesses) == 8
    with pytest.raises(ConfigError, match="best=0"):
        model.predict(given[0], best=0)
    with pytest.raises(DataError, match="int is no image"):
        model.predict(3)  # type: ignore[call-overload]


def test_a_file_a_folder_a_pattern_and_standard_input(
    classifier: Path, images: Path, capsys: Capture, monkeypatch: Patch
) -> None:
    model = load_classifier(classifier)
    expected = [model.predict(image).text for image in sorted(images.iterdir())]
    code, out, _ = run(capsys, "predict", classifier, images / "0.png", "--best", "3")
    lines = [line.split("\t") for line in out.splitlines()]
    assert (code, len(lines), lines[0][0]) == (0, 3, expected[0])
    ways: list[tuple[Any, ...]] = [(images,), (f"{images}/*.png",), tuple(sorted(images.iterdir()))]
    for given in ways:
        code, out, _ = run(capsys, "predict", classifier, *given)
        rows = [line.split("\t") for line in out.splitlines()]
        assert (code, [row[1] for row in rows]) == (0, expected)
        assert all(0 < float(row[2]) <= 1 for row in rows)
    _type(monkeypatch, (images / "2.png").read_bytes())
    code, out, _ = run(capsys, "predict", classifier, "-")
    assert (code, out.split("\t")[0]) == (0, expected[2])
    _type(monkeypatch, f"{images}/1.png\n\n{images}/3.png\n".encode())
    code, out, _ = run(capsys, "predict", classifier, "-")
    assert [line.split("\t")[1] for line in out.splitlines()] == [expected[1], expected[3]]


def test_what_is_typed_is_an_image_of_any_form_or_names_of_any_beginning(
    classifier: Path, images: Path, capsys: Capture, monkeypatch: Patch
) -> None:
    """BMW.png begins as files of BMP do, and RIFF.png as those of WebP."""
    given = images / "2.png"
    expected = saccade.load(classifier).predict(given).text
    for form in ("TIFF", "BMP", "WEBP", "GIF"):
        sink = io.BytesIO()
        Image.open(given).save(sink, form, lossless=True)
        _type(monkeypatch, sink.getvalue())
        code, out, _ = run(capsys, "predict", classifier, "-", "--best", 1)
        assert (code, len(out.splitlines())) == (0, 1)
        assert form in ("WEBP", "GIF") or out.startswith(expected)
    monkeypatch.chdir(images)
    for name in ("BMW.png", "RIFF.png"):
        (images / name).write_bytes(given.read_bytes())
        _type(monkeypatch, f"{name}\n2.png\n".encode())
        code, out, _ = run(capsys, "predict", classifier, "-")
        assert (code, [line.split("\t")[0] for line in out.splitlines()]) == (0, [name, "2.png"])


def _type(monkeypatch: Patch, content: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))


def test_what_is_no_image_is_told_and_passed_over(
    classifier: Path, images: Path, capsys: Capture
) -> None:
    (images / "1.png").write_bytes(b"no image at all")
    code, out, err = run(capsys, "predict", classifier, images, "--json")
    rows = json.loads(out)
    assert code == 1
    assert ["error" in row for row in rows] == [False, True, False, False]
    assert len(rows[0]["guesses"]) == 5
    assert "1 of 4 images could not be read" in err
    code, _, err = run(capsys, "predict", classifier, f"{images}/*.gif")
    assert (code, "no file is named like" in err) == (2, True)
    for wrong in ((), ("-", "a.png")):
        assert run(capsys, "predict", classifier, *wrong)[0] == 2


def test_eval_says_how_each_class_fares_and_draws_what_is_confused(
    classifier: Path, tmp_path: Path, capsys: Capture, monkeypatch: Patch
) -> None:
    monkeypatch.setattr("saccade.tasks.classification.data.HELD_BACK", 12)
    code, out, _ = run(capsys, "eval", classifier, "--pointing", "--json")
    found = json.loads(out)
    assert code == 0
    assert (found["split"], found["images"], found["classes"]) == ("test", 12, 8)
    counts = torch.tensor(found["confusion"])
    assert counts.sum() == 12
    assert found["top1"] <= counts.diagonal().sum().item() / 12 + 1e-9
    assert sum(one["images"] for one in found["by_class"].values()) == 12
    assert set(found["pointing"]) == {"rollout", "relevance", "grad_cam"}
    assert all(0 <= share <= 1 for one in found["pointing"].values() for share in one.values())
    drawn = tmp_path / "confusion.png"
    code, out, err = run(capsys, "eval", classifier, "--split", "valid", "--confusion", drawn)
    assert (code, "top-1" in out, "taken for" in out) == (0, True, True)
    with Image.open(drawn) as image:
        assert image.size[0] > 200
    assert run(capsys, "eval", classifier, "--confusion", "x.pdf")[0] == 2
    code, _, err = run(capsys, "eval", classifier, "--split", "nowhere")
    assert (code, "no split 'nowhere'" in err) == (2, True)


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["png", "svg", "json", "html"])
def test_a_look_shows_what_a_class_came_from(
    classifier: Path, images: Path, tmp_path: Path, capsys: Capture, ending: str
) -> None:
    out = tmp_path / f"look.{ending}"
    code, told, _ = run(capsys, "look", classifier, images / "0.png", "-o", out)
    assert code == 0
    assert out.stat().st_size > 500
    if ending == "json":
        found = json.loads(out.read_text())
        assert found["words"][:3] == ["relevance", "rollout", "Grad-CAM"]
    if ending != "html":
        assert "relevance" in told


def test_a_look_from_python_of_another_class_or_a_single_head(classifier: Path) -> None:
    (image,) = some_pictures(1).values()
    model = load_classifier(classifier)
    prediction = model.predict(image)
    look = prediction.look()
    assert look.caption.startswith(prediction.text)
    assert look.maps.sum(dim=(1, 2)).tolist() == pytest.approx([1.0] * len(look.rows), abs=1e-4)
    other = next(name for name in model.classes if name != prediction.text)
    assert model.look(image, of=other).caption.startswith(other)
    heads = model.look(image, layer=0)
    assert [row.rpartition(", ")[2] for row in heads.rows] == ["head 0", "head 1"]
    assert model.look(image, layer=0, head=1).rows == heads.rows[1:]
    assert look.document().kind == "classification"
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"of": "dog"}, "of='dog' is no class"),
        ({"head": 1}, "head=1 is of a layer"),
        ({"layer": 0, "head": 7}, "has no head 7"),
        ({"layer": 9}, "9"),
    )
    for wrong, message in cases:
        with pytest.raises(ConfigError, match=message):
            model.look(image, **wrong)


def test_a_split_goes_on_one_page_with_what_is_true(
    classifier: Path, tmp_path: Path, capsys: Capture, monkeypatch: Patch
) -> None:
    monkeypatch.setattr("saccade.tasks.classification.data.HELD_BACK", 12)
    out = tmp_path / "look.html"
    code, _, _ = run(capsys, "look", classifier, "--split", "test", "--rows", "5", "-o", out)
    assert (code, out.stat().st_size > 10_000) == (0, True)
    for wrong in (
        ("--split", "test", "a.png"),
        (),
        ("a.png", "--rows", "3"),
        ("--split", "test", "--rows", "0"),
    ):
        assert run(capsys, "look", classifier, *wrong)[0] == 2


def test_a_run_whose_classes_do_not_fit_is_refused(classifier: Path, tmp_path: Path) -> None:
    for content, told in (
        ('{"names": ["a"], "several": false}', "names 1 classes, and the model tells 8 apart"),
        ("[]", "does not name the classes"),
        ("\x00", "does not name the classes"),
    ):
        broken = tmp_path / str(len(content))
        shutil.copytree(classifier, broken)
        rewrite(broken / "classes.json", content)
        with pytest.raises(RunError, match=told):
            saccade.load(broken)
