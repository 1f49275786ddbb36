"""Boxes of images as detectors write them down, and what is wrong with a file of them."""

import json
from pathlib import Path
from typing import Any

import pytest

from saccade.data.readers.images.region_files import (
    PixelBox,
    likeliest,
    pixel_box,
    read_region_file,
)
from saccade.errors import DataError

SIDES = [[1, 2, 10, 20], [5.5, 0, 4.5, 3]]
CORNERS = [[1, 2, 11, 22], [5.5, 0, 10, 3]]
FOUND = [PixelBox((1.0, 2.0, 11.0, 22.0), "cat"), PixelBox((5.5, 0.0, 10.0, 3.0), "dog")]


def instances(name: str) -> dict[str, Any]:
    return {
        "images": [{"id": 7, "file_name": name}, {"id": 8, "file_name": "none.jpg"}],
        "annotations": [
            {"image_id": 7, "bbox": box, "category_id": n} for n, box in enumerate(SIDES)
        ],
        "categories": [{"id": 0, "name": "cat"}, {"id": 1, "name": "dog"}],
    }


def written(folder: Path, value: Any, name: str = "boxes.json") -> Path:
    path = folder / name
    lines = value if name.endswith("l") else [value]
    path.write_text("\n".join(one if isinstance(one, str) else json.dumps(one) for one in lines))
    return path


def said(boxes: list[PixelBox]) -> list[PixelBox]:
    """Wherever in its file each was."""
    return [one._replace(place=0) for one in boxes]


def test_every_form_says_the_same(tmp_path: Path) -> None:
    line = {"image": "a/b.jpg", "boxes": CORNERS, "labels": ["cat", "dog"]}
    for path in (
        written(tmp_path, [line, ""], "boxes.jsonl"),
        written(tmp_path, instances("a/b.jpg")),
    ):
        file = read_region_file(path)
        for name in ("a/b.jpg", "a//b.jpg", f"{tmp_path}/a/b.jpg"):
            assert said(file.of(name)) == FOUND
        assert file.labels == ("cat", "dog")
    results = [{"image_id": 139, "bbox": box, "score": 0.9} for box in SIDES]
    file = read_region_file(written(tmp_path, results))
    for name in ("000000000139.jpg", "x/139.png"):
        assert [one.box for one in file.of(name)] == [one.box for one in FOUND]


def test_an_image_is_known_by_its_name_alone_and_may_have_no_boxes(tmp_path: Path) -> None:
    file = read_region_file(written(tmp_path, instances("b.jpg")))
    assert said(file.of("/elsewhere/b.jpg")) == FOUND
    assert file.of("none.jpg") == []
    with pytest.raises(DataError, match=r"boxes.json has no boxes of c.jpg; name a file that has"):
        file.of("c.jpg")
    plain = read_region_file(written(tmp_path, [{"image": "b.jpg", "boxes": CORNERS}], "b.jsonl"))
    assert said(plain.of("b.jpg")) == [PixelBox(one.box) for one in FOUND]
    assert (plain.find("c.jpg"), plain.labels) == (None, ())


def test_the_likeliest_become_regions_of_equals_the_first(tmp_path: Path) -> None:
    boxes = [[n, 0, n + 1, 1] for n in range(50)]
    scores = [0.29, 0.3, *[0.5] * 47, 0.9]
    line = {"image": "a.jpg", "boxes": boxes, "scores": scores}
    results = [
        {"image_id": 3, "bbox": [n, 0, 1, 1], "score": score} for n, score in enumerate(scores)
    ]
    jsonl = read_region_file(written(tmp_path, [line], "b.jsonl")).of("a.jpg")
    coco = read_region_file(written(tmp_path, results)).of("3.jpg")
    for found in (jsonl, coco):
        lefts = [one.box[0] for one in likeliest(found)]
        assert lefts == [49, *range(2, 37)]
        assert [one.box[0] for one in likeliest(found[:3])] == [2, 1]
    assert {one.place for one in jsonl} == {1}
    assert [one.place for one in coco] == list(range(1, 51))


@pytest.mark.parametrize(
    ("value", "name", "message"),
    [
        ({}, "b.json", 'b.json holds no boxes; give JSON Lines with "image" and "boxes"'),
        ("{", "b.json", "b.json is no JSON"),
        (["{"], "b.jsonl", "b.jsonl:1 is no JSON"),
        ([{"image": 3}], "b.jsonl", 'b.jsonl:1: a line has an "image" and its "boxes"'),
        ([{"image": "a", "boxes": [[1, 2]]}], "b.jsonl", r"b.jsonl:1: a box is \[left, top, right"),
        ([{"image": "a", "boxes": [[3, 0, 3, 1]]}], "b.jsonl", "has no area"),
        ([{"image": "a", "boxes": CORNERS, "labels": ["x"]}], "b.jsonl", "2 boxes have other than"),
        ([{"image": "a", "boxes": CORNERS, "scores": [1]}], "b.jsonl", "as many scores"),
        ([{"image": "a", "boxes": CORNERS[:1], "scores": ["x"]}], "b.jsonl", "a score is a number"),
        ([{"image_id": 1}], "b.json", 'box 1: it has no "image_id" with a "bbox"'),
        ({"images": [{}], "annotations": []}, "b.json", 'an image has an "id" and a "file_name"'),
        ({"images": [], "annotations": [{"image_id": 3, "bbox": SIDES[0]}]}, "b.json", "no such"),
    ],
)
def test_what_is_wrong_is_told_in_a_line(
    value: Any, name: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=message) as error:
        read_region_file(written(tmp_path, value, name))
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none.json cannot be read: No such file"):
        read_region_file(tmp_path / "none.json")
    (tmp_path / "raw.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match=r"raw.json is no text; give JSON Lines"):
        read_region_file(tmp_path / "raw.json")


@pytest.mark.parametrize("value", [[1, 2, float("nan"), 4], [1, 2, True, 4], "1234", None, [1] * 5])
def test_four_numbers_make_a_box(value: Any) -> None:
    with pytest.raises(DataError, match=r"here: a box is \[left, top, right, bottom\] in pixels"):
        pixel_box(value, "here")
