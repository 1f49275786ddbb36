"""A detector as a user meets it: from Python, from the command line, with images of any kind."""

import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import saccade
from saccade.app.kinds.detection.model import DetectionModel
from saccade.data import shapes
from saccade.data.readers.images.annotated import read_boxes
from saccade.errors import ConfigError, DataError, RunError
from tests.app.test_captioning import some_pictures
from tests.app.test_classification import run
from tests.app.test_cli import Capture, Patch
from tests.data.images_odd import stored
from tests.train.small import rewrite

LOW = 0.001  # a detector that has learnt nothing is sure of nothing


def load_detector(folder: Path) -> DetectionModel:
    model = saccade.load(folder, device="cpu")
    assert isinstance(model, DetectionModel)
    return model


def odd_pictures() -> dict[str, bytes]:
    """Of different sizes, one of them turned by its camera."""
    made = some_pictures(3)
    wide = Image.fromarray(shapes.render(shapes.scene("test", 7), 64)).resize((90, 40))
    turned = Image.Exif()
    turned[0x0112] = 6
    made["wide.png"] = stored(wide, "PNG")
    buffer = io.BytesIO()
    wide.save(buffer, "JPEG", exif=turned.tobytes())
    made["turned.jpg"] = buffer.getvalue()
    return made


@pytest.fixture
def images(tmp_path: Path) -> Path:
    folder = tmp_path / "images"
    folder.mkdir()
    for name, content in odd_pictures().items():
        (folder / name).write_bytes(content)
    return folder


def test_many_images_give_what_each_gives_alone(detector: Path) -> None:
    model, given, told = load_detector(detector), list(odd_pictures().values()), list[Any]()
    together = model.predict(given, threshold=LOW, progress=lambda *done: told.append(done))
    for one, image in zip(together, given, strict=True):
        alone = model.predict(image, threshold=LOW)
        assert one.size == alone.size
        assert [o.label for o in one.objects] == [o.label for o in alone.objects]
        for a, b in zip(one.objects, alone.objects):
            assert a.score == pytest.approx(b.score, abs=1e-5)
            assert a.box == pytest.approx(b.box, abs=1e-2)
    assert told == [(5, 5)]
    assert model.classes == shapes.KINDS
    assert model.predict([]) == []
    with pytest.raises(ConfigError, match=r"threshold=2.0 must be from 0 to 1"):
        model.predict(given[0], threshold=2.0)
    with pytest.raises(DataError, match="int is no image"):
        model.predict(3)  # type: ignore[call-overload]


def test_boxes_are_in_the_pixels_of_the_upright_image(detector: Path) -> None:
    model, given = load_detector(detector), odd_pictures()
    assert model.predict(given["wide.png"]).size == (40, 90)
    assert model.predict(given["turned.jpg"]).size == (90, 40)
    pixels = np.array(Image.open(io.BytesIO(given["wide.png"])))
    twice = pixels.repeat(2, axis=0).repeat(2, axis=1)
    # An image of even colour looks the same at any size, so that its boxes only scale.
    even = np.full_like(pixels, 80), np.full_like(twice, 80)
    small, large = (model.predict(one, threshold=LOW) for one in even)
    for one, other in zip(small.objects, large.objects, strict=True):
        assert other.box == pytest.approx([2 * side for side in one.box], abs=0.05)
        left, top, right, bottom = one.box
        assert 0 <= left <= right <= 90
        assert 0 <= top <= bottom <= 40
    tensor = torch.from_numpy(pixels).permute(2, 0, 1)
    ways: tuple[Any, ...] = (pixels, tensor, Image.fromarray(pixels))
    expected = model.predict(given["wide.png"], threshold=LOW)
    for way in ways:
        assert model.predict(way, threshold=LOW).objects == expected.objects


def test_a_threshold_leaves_out_what_is_less_likely(detector: Path) -> None:
    model, (image,) = load_detector(detector), some_pictures(1).values()
    every = model.predict(image, threshold=0.0).objects
    scores = [one.score for one in every]
    assert scores == sorted(scores, reverse=True)
    middle = scores[len(scores) // 2]
    assert model.predict(image, threshold=middle).objects == [o for o in every if o.score >= middle]
    none = model.predict(image, threshold=1.0)
    assert (none.text, str(none), repr(none)) == (
        "nothing",
        "nothing",
        "ObjectsPrediction('image 0', 'nothing')",
    )


def test_lines_of_a_file_a_folder_a_pattern_and_standard_input(
    detector: Path, images: Path, capsys: Capture, monkeypatch: Patch
) -> None:
    model = load_detector(detector)
    least = ("--threshold", LOW)
    expected = [
        [
            str(file),
            one.label,
            f"{round(one.score, 6):.4f}",
            *(f"{round(x, 2):.1f}" for x in one.box),
        ]
        for file in sorted(images.iterdir())
        for one in model.predict(file, threshold=LOW).objects
    ]
    ways: list[tuple[Any, ...]] = [(images,), (f"{images}/*",), tuple(sorted(images.iterdir()))]
    for given in ways:
        code, out, _ = run(capsys, "predict", detector, *given, *least)
        rows = [line.split("\t") for line in out.splitlines()]
        assert code == 0
        assert [row[:2] for row in rows] == [row[:2] for row in expected]
        numbers = (np.array([row[2:] for row in some], dtype=float) for some in (rows, expected))
        np.testing.assert_allclose(*numbers, atol=0.11)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO((images / "2.png").read_bytes())))
    code, out, _ = run(capsys, "predict", detector, "-", *least)
    assert (code, out.split("\t")[0]) == (0, "standard input")
    code, out, err = run(capsys, "predict", detector, images / "0.png", "--threshold", 1)
    assert (code, out) == (0, "")
    assert "no object has a score of 1 or more" in err
    code, out, err = run(capsys, "predict", detector, images, "--threshold", 1)
    assert (code, out) == (0, "")
    assert err.count("no object has a score of 1 or more; a lower --threshold shows others") == 1


def test_what_is_no_image_is_told_and_passed_over(
    detector: Path, images: Path, tmp_path: Path, capsys: Capture
) -> None:
    (images / "1.png").write_bytes(b"no image at all")
    code, out, err = run(capsys, "predict", detector, images, "--json", "--threshold", LOW)
    rows = json.loads(out)
    assert code == 1
    assert ["error" in row for row in rows] == [False, True, False, False, False]
    assert set(rows[0]) == {"file", "text", "width", "height", "objects"}
    assert set(rows[0]["objects"][0]) == {"label", "score", "box"}
    assert "1 of 5 images could not be read" in err
    kept = tmp_path / "found.json"
    code, out, _ = run(capsys, "predict", detector, images, "--format", "coco", "--out", kept)
    assert (code, out) == (1, "")
    assert len(json.loads(kept.read_text())["images"]) == 4
    kept.unlink()
    code, _, _ = run(capsys, "predict", detector, images / "1.png", "--format", "coco", "-o", kept)
    assert (code, kept.exists()) == (2, False)


@pytest.mark.parametrize("form", ["coco", "yolo"])
def test_what_was_found_can_be_read_again_as_data(
    detector: Path, images: Path, capsys: Capture, form: str
) -> None:
    model = load_detector(detector)
    out = images / "found.json" if form == "coco" else images
    files = sorted(path for path in images.iterdir())
    told = [model.predict(file, threshold=LOW) for file in files]
    arguments = ("--format", form, "--out", out, "--threshold", LOW)
    names = [f"{images}/{file.name}" for file in files]
    code, printed, _ = run(capsys, "predict", detector, *names, *arguments)
    assert (code, printed) == (0, "")
    read = read_boxes(out, "train", skip_bad=0)
    assert len(read.rows) == len(files)
    for row, one in zip(read.rows, told, strict=True):
        height, width = one.size
        expected = sorted(
            (o.label, *(x / side for x, side in zip(o.box, (width, height) * 2)))
            for o in one.objects
        )
        there = sorted(box[:5] for box in row.extras["objects"])
        assert [box[0] for box in there] == [box[0] for box in expected]
        np.testing.assert_allclose(
            [box[1:] for box in there], [box[1:] for box in expected], atol=1e-4
        )


def test_images_are_drawn_each_under_a_name_of_its_own(
    detector: Path, images: Path, tmp_path: Path, capsys: Capture
) -> None:
    other = tmp_path / "other"
    shutil.copytree(images, other)
    drawn = tmp_path / "new" / "drawn"
    code, _, _ = run(
        capsys, "predict", detector, images, other, "--draw", drawn, "--threshold", LOW
    )
    names = {path.stem for path in images.iterdir()}
    assert code == 0
    assert {path.name for path in drawn.iterdir()} == {
        f"{name}{mark}.png" for name in names for mark in ("", "-2")
    }
    with Image.open(drawn / "wide.png") as image:
        assert image.size == (90 * 6, 40 * 6)


def test_eval_gives_the_figures_of_coco_and_draws_them(
    detector: Path, tmp_path: Path, capsys: Capture, monkeypatch: Patch
) -> None:
    monkeypatch.setattr("saccade.tasks.detection.data.HELD_BACK", 12)
    code, out, _ = run(capsys, "eval", detector, "--json")
    found = json.loads(out)
    assert code == 0
    assert (found["split"], found["images"]) == ("test", 12)
    assert set(found["by_class"]) == set(shapes.KINDS)
    counts = torch.tensor(found["confusion"])
    assert counts[:-1].sum() == found["objects"]
    assert 0 <= found["ap"] <= found["ap50"] <= 1
    curves, confusion = tmp_path / "curves.svg", tmp_path / "confusion.png"
    more = ("--split", "valid", "--curves", curves, "--confusion", confusion)
    code, out, _ = run(capsys, "eval", detector, *more)
    assert (code, "AP50" in out) == (0, True)
    assert "precision over recall on valid" in curves.read_text()
    with Image.open(confusion) as image:
        assert image.size[0] > 200


@pytest.mark.slow
def test_eval_keeps_its_figures_and_scores_other_data(
    detector: Path, images: Path, tmp_path: Path, capsys: Capture, monkeypatch: Patch
) -> None:
    monkeypatch.setattr("saccade.tasks.detection.data.HELD_BACK", 12)
    monkeypatch.setenv("SACCADE_CACHE", str(tmp_path / "cache"))
    own = shutil.copytree(detector, tmp_path / "own")
    assert run(capsys, "eval", own, "--keep")[0] == 0
    assert "ap50" in json.loads((own / "scores-test.json").read_text())["scores"]
    code, out, _ = run(capsys, "compare", own, "--split", "test", "--figure", "ap50")
    assert (code, "ap50, test" in out) == (0, True)
    row = {"image": "wide.png", "objects": [{"label": "moon", "box": [5, 5, 30, 30]}]}
    (images / "all.jsonl").write_text(json.dumps(row) + "\n")
    code, out, _ = run(capsys, "eval", detector, "--data", images / "all.jsonl", "--json")
    found = json.loads(out)
    assert (code, found["images"], found["objects"], found["split"]) == (0, 1, 1, "all")
    row["objects"] = [{"label": "unicorn", "box": [5, 5, 30, 30]}]
    (images / "all.jsonl").write_text(json.dumps(row) + "\n")
    code, _, err = run(capsys, "eval", detector, "--data", images / "all.jsonl")
    assert (code, "'unicorn' is not among the 8 classes" in err) == (2, True)


@pytest.mark.parametrize("ending", ["png", "svg", "json", "html"])
def test_a_look_shows_where_objects_were_looked_for(
    detector: Path, images: Path, tmp_path: Path, capsys: Capture, ending: str
) -> None:
    out = tmp_path / f"look.{ending}"
    code, told, _ = run(
        capsys, "look", detector, images / "wide.png", "-o", out, "--threshold", LOW
    )
    assert (code, out.stat().st_size > 500) == (0, True)
    if ending == "json":
        assert len(json.loads(out.read_text())["words"]) >= 1
    if ending != "html":
        assert "←" in told


@pytest.mark.slow
def test_a_split_goes_on_one_page_with_what_is_true(
    detector: Path, tmp_path: Path, capsys: Capture, monkeypatch: Patch
) -> None:
    monkeypatch.setattr("saccade.tasks.detection.data.HELD_BACK", 12)
    out = tmp_path / "look.html"
    code, _, _ = run(capsys, "look", detector, "--split", "test", "--rows", "5", "-o", out)
    assert (code, out.stat().st_size > 10_000) == (0, True)
    other = shutil.copytree(detector, tmp_path / "other")
    more = ("--compare", other, "-o", out)
    assert run(capsys, "look", detector, "--split", "test", "--rows", "2", *more)[0] == 0


def test_a_look_from_python_is_of_the_prediction(detector: Path) -> None:
    model, (image,) = load_detector(detector), some_pictures(1).values()
    one = model.predict(image, threshold=LOW)
    film = one.look()
    assert film.caption == objects_in_short(film.rows)
    assert [row.rpartition(" ")[0] for row in film.rows] == [
        o.label for o in one.objects[: len(film.rows)]
    ]
    assert model.look(image, threshold=LOW, layer=0).title.endswith(
        "decoder.0.cross, mean of its heads"
    )
    assert film.document().kind == "detection"
    assert repr(model).startswith("DetectionModel('detector'")


def objects_in_short(rows: list[str]) -> str:
    labels = [row.rpartition(" ")[0] for row in rows]
    plural = {name: f"{name}es" if name.endswith("s") else f"{name}s" for name in labels}
    counts = {name: labels.count(name) for name in labels}
    return ", ".join(f"{n} {name if n == 1 else plural[name]}" for name, n in counts.items())


def test_a_run_whose_classes_do_not_fit_is_refused(detector: Path, tmp_path: Path) -> None:
    for content, told in (
        ('{"names": ["a"]}', "names 1 classes, and the model tells 8 apart"),
        ("[]", "does not name the classes"),
        ("\x00", "does not name the classes"),
    ):
        broken = tmp_path / str(len(content))
        shutil.copytree(detector, broken)
        rewrite(broken / "classes.json", content)
        with pytest.raises(RunError, match=told):
            saccade.load(broken)
