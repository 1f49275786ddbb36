"""The look document of objects says what was found, where it was looked for, and what is there."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from saccade.app.look.detection import (
    BoxedImage,
    object_document,
    object_look,
    objects_text,
    taken,
)
from saccade.app.look.document import LookEntry, read_json, to_json
from saccade.app.look.images import LONGEST, ShownImage
from saccade.app.look.settings import LookSettings, Selection
from saccade.data.objects import Objects
from saccade.errors import ConfigError
from saccade.metrics.box_matching import box_confusion
from saccade.metrics.detection import FoundObjects
from saccade.tasks.detection.detector import FoundObject
from saccade.tasks.detection.maps import MOST, object_maps

from .detectors import CONFIGS, detector, subjects
from .reading import values

HOW = LookSettings(threshold=0.0)
NAMES = ("ant", "bee", "cat")


def between(look: LookEntry, rows: str, columns: str) -> list[str]:
    return [site.name for site in look.sites if (site.rows, site.columns) == (rows, columns)]


@pytest.mark.parametrize("kind", CONFIGS)
def test_the_maps_are_those_of_the_model_on_the_cells_of_their_axes(kind: str) -> None:
    model, given = detector(kind), subjects(2)
    document = object_document([model], given, HOW)
    assert read_json(to_json(document)) == document
    assert document.kind == "detection"
    for subject, look in zip(given, document.looks, strict=True):
        maps = object_maps(model.tool, subject.shown.seen_by(model.tool))
        assert between(look, "objects", "image") == list(maps.across)
        assert between(look, "objects", "objects") == list(maps.among)
        assert between(look, "points", "image") == list(maps.inner)
        flat = {name: one.flatten(2) for name, one in (maps.across | maps.inner).items()}
        for site in look.sites:
            drawn = values(document.blobs, site.arrays["weights"])
            expected = {**flat, **maps.among}[site.name]
            np.testing.assert_allclose(drawn, expected.numpy(), atol=1e-3)
            if site.columns == "image":
                np.testing.assert_allclose(drawn.astype(float).sum(axis=-1), 1, atol=0.01)
        assert look.objects is not None
        for told, one in zip(look.objects.found, maps.found, strict=True):
            assert (told.label, told.row) == (one.label, maps.row(one))
            assert told.box == pytest.approx(one.box, abs=1e-5)
            assert look.axes["objects"].tokens[told.row] in {
                other.label for other in maps.found if other.query == one.query
            }


@st.composite
def scenes(draw: st.DrawFn) -> tuple[list[FoundObject], Objects]:
    rng = np.random.default_rng(draw(st.integers(0, 9999)))
    there, found = draw(st.integers(0, 5)), draw(st.integers(0, 6))

    def corners(count: int) -> np.ndarray:
        first = rng.integers(0, 4, (count, 2)) / 8
        return np.concatenate([first, first + rng.integers(1, 5, (count, 2)) / 8], axis=1)

    truth = Objects(
        torch.tensor(corners(there), dtype=torch.float32).view(-1, 4),
        torch.tensor(rng.integers(0, 3, there), dtype=torch.long),
        torch.tensor(rng.random(there) < 0.2, dtype=torch.bool),
    )
    boxes, labels = corners(found), rng.integers(0, 3, found)
    scores = sorted(rng.random(found).round(3).tolist(), reverse=True)
    told = [
        FoundObject(NAMES[label], score, tuple(box), place)
        for place, (box, label, score) in enumerate(zip(boxes.tolist(), labels.tolist(), scores))
    ]
    return told, truth


@settings(max_examples=150, deadline=None)
@given(scenes(), st.floats(0, 1))
def test_what_each_takes_gives_the_confusions_of_the_scores_at_any_threshold(
    scene: tuple[list[FoundObject], Objects], threshold: float
) -> None:
    found, truth = scene
    counts = torch.zeros(4, 4, dtype=torch.long)
    missed = {number for number in range(len(truth.labels)) if not truth.ignored[number]}
    for one, (takes, excused) in zip(found, taken(found, truth, NAMES), strict=True):
        if one.score < threshold or excused:
            continue
        counts[3 if takes is None else truth.labels[takes], NAMES.index(one.label)] += 1
        missed.discard(-1 if takes is None else takes)
    for number in missed:
        counts[truth.labels[number], 3] += 1
    boxes = torch.tensor([one.box for one in found]).view(-1, 4)
    labels = torch.tensor([NAMES.index(one.label) for one in found], dtype=torch.long)
    scores = torch.tensor([one.score for one in found], dtype=torch.float64)
    expected = box_confusion([FoundObjects(boxes, labels, scores)], [truth], 3, threshold=threshold)
    assert counts.tolist() == expected.tolist()


def test_the_truth_is_told_where_it_is_known() -> None:
    (known,) = subjects()
    document = object_document([detector()], [known, BoxedImage(known.shown)], HOW)
    first, second = (look.objects for look in document.looks)
    assert first is not None
    assert first.truth is not None
    assert known.truth is not None
    assert len(first.truth) == len(known.truth.labels)
    assert second is not None
    assert second.truth is None
    assert {(one.takes, one.excused) for one in second.found} == {(None, False)}


def test_without_room_heads_are_averaged_then_points_left_out_and_it_is_said() -> None:
    model, given = detector("plain", side=128), subjects(1)
    tight = object_document([model], given * 6, LookSettings(budget=100_000))
    full = object_document([model], given, HOW)
    assert full.notes == []
    assert any("8 bits" in note for note in tight.notes)
    assert any("as their mean" in note for note in tight.notes)
    assert any("was left out" in note for note in tight.notes)
    assert sum(map(len, tight.blobs)) <= 100_000
    names = [site.name for site in tight.looks[0].sites]
    every, mean = full.looks[0].sites[1], tight.looks[0].sites[1]
    assert (every.name, every.heads, mean.heads) == (mean.name, 2, 1)
    np.testing.assert_allclose(
        values(tight.blobs, mean.arrays["weights"])[0],
        values(full.blobs, every.arrays["weights"]).astype(float).mean(axis=0),
        atol=0.005,
    )
    assert "encoder.0.self" not in names


@pytest.mark.slow
def test_many_images_are_smaller_and_without_their_points() -> None:
    document = object_document([detector()], subjects(25), HOW)
    assert {image.side for image in document.images} == {192}
    assert between(document.looks[24], "points", "image") == []
    assert "few images at a time" in document.notes[0]
    assert [look.image for look in document.looks] == list(range(25))


def test_of_too_many_objects_the_likeliest_are_kept_and_it_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("saccade.tasks.detection.maps.LEAST", 0.0)
    document = object_document([detector()], subjects(), HOW)
    (look,) = document.looks
    assert look.objects is not None
    assert len(look.objects.found) == MOST < 6 * 8  # queries and classes
    assert document.notes == [f"of an image the {MOST} likeliest objects are kept"]


def test_two_runs_are_looks_at_the_same_images() -> None:
    models = [detector("boxes"), detector("plain")]
    document = object_document(models, subjects(2), HOW)
    assert [(look.run, look.image) for look in document.looks] == [
        (run, image) for run in ("boxes", "plain") for image in range(2)
    ]
    assert document.title == "boxes and plain · 2 images"


def test_a_film_has_a_frame_for_each_object_in_the_proportions_of_the_image(tmp_path: Path) -> None:
    model, (subject,) = detector(), subjects()
    film = object_look(model, subject, HOW, Selection())
    maps = object_maps(model.tool, subject.shown.seen_by(model.tool), points=0)
    assert len(film.rows) == len(film.boxes) == len(film.colours) == len(maps.found)
    torch.testing.assert_close(film.maps[0], maps.across["decoder.1.cross"].mean(dim=0)[0])
    first = object_look(model, subject, HOW, Selection(layer="0", head=1))
    torch.testing.assert_close(first.maps[0], maps.across["decoder.0.cross"][1, 0])
    for ending in ("png", "svg", "json", "html"):
        assert film.save(tmp_path / f"x.{ending}").stat().st_size > 500
    found = json.loads((tmp_path / "x.json").read_text())
    assert np.array(found["maps"]).sum(axis=(1, 2)) == pytest.approx([1] * len(film.rows), abs=1e-3)
    wide = replace(film, image=torch.zeros(3, 40, 80, dtype=torch.uint8))
    assert (film.tall, wide.tall) == (150, 75)
    assert wide.size[1] == film.size[1] - 75
    assert wide.corners([0.0, 0.0, 1.0, 1.0]) == (0, 0, 150, 75)
    with pytest.raises(ConfigError, match="has no head 2; it has 2"):
        object_look(model, subject, HOW, Selection(head=2))


def test_a_film_of_nothing_is_the_image_alone(tmp_path: Path) -> None:
    film = object_look(detector(), subjects()[0], LookSettings(threshold=1.0), Selection())
    assert (film.rows, film.caption) == ([], "nothing")
    for ending in ("png", "svg", "json"):
        assert film.save(tmp_path / f"x.{ending}").stat().st_size > 100
    assert film.text(colour=True) == film.text(colour=False) == ""


def test_what_was_found_in_short() -> None:
    assert objects_text([]) == "nothing"
    assert objects_text(["star", "circle", "circle"]) == "1 star, 2 circles"
    assert objects_text(["cross", "cross", "box", "box"]) == "2 crosses, 2 boxes"


def test_an_image_keeps_its_proportions_for_people() -> None:
    pixels = torch.zeros(3, 300, 1200, dtype=torch.uint8)
    shown = ShownImage.in_full(pixels)
    assert shown.pixels.shape == (3, LONGEST // 4, LONGEST)
    assert shown.among(1) is shown
    assert shown.among(2).pixels.shape == (3, 96, 384)
    assert shown.seen_by(detector().tool).shape == (3, 32, 32)
