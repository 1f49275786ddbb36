"""Each box that cannot be meant is told of: the value, the rule, the way out, and where it is."""

import json
import math
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.data.readers import ImagesRead, read_boxes
from saccade.data.readers.images.boxes.checks import (
    CENTRES,
    CORNERS,
    SIDES,
    Notation,
    checked_box,
)
from saccade.data.readers.report import BadRow
from saccade.errors import DataError
from tests.data.boxes_made import Said, blank, coco, corners, xml
from tests.data.images_made import Files, in_folder, rows

SIZE = (100, 400)  # height, width
BAD: list[tuple[Notation, Sequence[float], str]] = [
    (CORNERS, (0, 0, 405, 50), "outside the image: [0, 0, 405, 50] reaches out of 400 × 100; cut"),
    (CORNERS, (-2.5, 0, 5, 103), "outside the image: [-2.5, 0, 5, 103] reaches out of 400 × 100"),
    (SIDES, (390, 0, 20, 50), "outside the image: [390, 0, 20, 50] reaches out of 400 × 100"),
    (SIDES, (402, 0, 1, 50), "outside the image: [402, 0, 1, 50]"),
    (SIDES, (1e308, 0, 1e308, 50), "outside the image: [1e+308, 0, 1e+308, 50]"),
    (CENTRES, (0.9, 0.5, 0.5, 0.5), "outside the image: [0.9, 0.5, 0.5, 0.5] reaches out of 1 × 1"),
    (CENTRES, (-0.4, 0.5, 0.1, 0.5), "outside the image: [-0.4, 0.5, 0.1, 0.5]"),
    (CORNERS, (5, 5, 5, 9), "empty box: [5, 5, 5, 9] has no area; draw it again, or take it away"),
    (SIDES, (5, 5, 0, 9), "empty box: [5, 5, 0, 9] has no area"),
    (CENTRES, (0.5, 0.5, 0.5, 0), "empty box: [0.5, 0.5, 0.5, 0] has no area"),
    (CORNERS, (9, 5, 5, 9), "swapped corners: [9, 5, 5, 9] ends before it begins; write left, top"),
    (SIDES, (9, 5, 5, -2), "swapped corners: [9, 5, 5, -2] ends before it begins; write left, top"),
    (CENTRES, (0.5, 0.5, -0.5, 0.5), "swapped corners: [0.5, 0.5, -0.5, 0.5] ends before it begi"),
    (
        CENTRES,
        (200, 50, 100, 50),
        "pixels for shares: [200, 50, 100, 50] goes above 1; divide by the image's width and "
        "height, 400 and 100",
    ),
    (
        CORNERS,
        (0.1, 0.2, 0.5, 0.9),
        "shares for pixels: [0.1, 0.2, 0.5, 0.9] lies within 1 pixel of 400 × 100; multiply by the "
        "image's width and height",
    ),
    (SIDES, (0, 0, 1, 1), "shares for pixels: [0, 0, 1, 1] lies within 1 pixel of 400 × 100"),
]


@pytest.mark.parametrize(("notation", "numbers", "told"), BAD)
def test_what_cannot_be_meant_is_refused(
    notation: Notation, numbers: Sequence[float], told: str
) -> None:
    a, b, c, d = map(float, numbers)
    with pytest.raises(BadRow) as raised:
        checked_box("cat", (a, b, c, d), notation, SIZE)
    assert str(raised.value).startswith(told)


@pytest.mark.parametrize(
    ("notation", "numbers", "clipped", "shares"),
    [
        (CORNERS, (-4, 0, 404, 100), True, (0, 0, 1, 1)),  # 1 % of 400
        (CORNERS, (1, -2, 401, 102), True, (1 / 400, 0, 1, 1)),  # 2 pixels of 100
        (CENTRES, (0.5, 0.5, 1.02, 1.04), True, (0, 0, 1, 1)),
        (CENTRES, (0.5, 0.5, 1.000001, 1.000001), False, (0, 0, 1, 1)),  # six digits
        (SIDES, (0, 0, 400, 100), False, (0, 0, 1, 1)),
    ],
)
def test_a_little_over_the_edge_is_cut_and_said(
    notation: Notation, numbers: Sequence[float], clipped: bool, shares: Sequence[float]
) -> None:
    a, b, c, d = map(float, numbers)
    found = checked_box("cat", (a, b, c, d), notation, SIZE)
    assert found.clipped == clipped
    assert found.box[1:5] == pytest.approx(shares)


def test_one_pixel_of_a_tiny_image_is_a_box() -> None:
    assert checked_box("cat", (0.0, 0.0, 1.0, 1.0), CORNERS, (4, 4)).box.right == 0.25


any_number = st.floats(allow_nan=False, allow_infinity=False) | st.floats(-3, 500)


@given(
    numbers=st.tuples(any_number, any_number, any_number, any_number),
    notation=st.sampled_from([CORNERS, SIDES, CENTRES]),
    size=st.tuples(st.integers(1, 5000), st.integers(1, 5000)),
)
def test_any_numbers_are_a_box_within_the_image_or_a_bad_row(
    numbers: tuple[float, float, float, float], notation: Notation, size: tuple[int, int]
) -> None:
    try:
        _, left, top, right, bottom, _ = checked_box("cat", numbers, notation, size).box
    except BadRow:
        return
    assert 0 <= left < right <= 1
    assert 0 <= top < bottom <= 1


# In each form, what is told of where, and of which kind: an image of 40 × 20.
SAID = [
    Said("cat", 0, 0, 9, 9),
    Said("cat", 30, 0, 60, 9),
    Said("cat", 9, 9, 9, 9),
    Said("cat", 9, 9, 5, 10),
    Said("cat", 0, 0, 0.5, 0.5),
]
KINDS = ["outside the image", "empty box", "swapped corners", "shares for pixels"]


def found(read: ImagesRead) -> list[tuple[str, int, str]]:
    return [(Path(p.file).name, p.line, p.kind) for p in read.problems]


def read_all(root: Path, files: Files) -> ImagesRead:
    """A good image is there in any case, so that there is something to read."""
    return read_boxes(in_folder(root, files), "train", skip_bad=99)


def test_coco_tells_by_place_in_the_list(tmp_path: Path) -> None:
    raw = coco({"a.png": SAID, "b.png": []})
    read = read_all(tmp_path, {"train.json": raw, "a.png": blank(), "b.png": blank()})
    assert [Path(row.image.name).name for row in read.rows] == ["b.png"]
    assert found(read) == [
        ("train.json#annotations", place, kind) for place, kind in enumerate(KINDS, start=2)
    ]
    told = str(read.problems[0])
    assert told.startswith(
        str(tmp_path / "train.json#annotations:2: outside the image: [30, 0, 30")
    )


def test_voc_tells_by_number_of_the_object(tmp_path: Path) -> None:
    files = {"a.xml": xml("a.png", SAID), "b.xml": xml("b.png", [])}
    read = read_all(tmp_path, {**files, "a.png": blank(), "b.png": blank()})
    assert len(read.rows) == 1
    others = {n: kind for n, kind in enumerate(KINDS, start=2) if kind != "empty box"}
    assert found(read) == [("a.xml#object", n, kind) for n, kind in others.items()]


def test_voc_counts_the_last_pixel_in(tmp_path: Path) -> None:
    point = {"a.xml": xml("a.png", [Said("cat", 9, 9, 9, 9)]), "a.png": blank()}
    (row,) = read_all(tmp_path, point).rows
    height, width = row.extras["size"]
    (box,) = row.extras["objects"]
    assert box[1:5] == pytest.approx((9 / width, 9 / height, 10 / width, 10 / height))


def test_json_lines_tell_by_line_and_object(tmp_path: Path) -> None:
    raw = corners({"b.png": [], "a.png": SAID})
    read = read_all(tmp_path, {"train.jsonl": raw, "a.png": blank(), "b.png": blank()})
    assert len(read.rows) == 1
    assert found(read) == [("train.jsonl", 2, kind) for kind in KINDS]
    assert "train.jsonl:2: empty box: object 3: [9, 9, 9, 9] has no area" in str(read.problems[1])


YOLO_LINES = {
    b"0 .5 .5 .5 .5": "",
    b"0 20 10 5 5": "pixels for shares: [20, 10, 5, 5] goes above 1; divide by",
    b"1 .9 .5 .5 .5": "outside the image: [0.9, 0.5, 0.5, 0.5] reaches",
    b"1 .9 .5 0 .5": "empty box: [0.9, 0.5, 0, 0.5] has no area",
    b"": "",
    b"7 .5 .5 .5 .5": "no such class: 7, and data.yaml has 0 … 1; add its name",
    b"-1 .5 .5 .5 .5": "no such class: '-1'; classes are whole numbers from 0",
    b"cat .5 .5 .5 .5": "not a number: 'class' is 'cat'; give a finite number",
    b"0 .5 .5 nan .5": "not a number: 'box' is 'nan'; give a finite number",
    b"0 .5 .5 1e999 .5": "not a number: 'box' is '1e999'; give a finite number",
    b"0 .5 .5": "not 5 columns: 3 found; write class, centre x, centre y, width, height",
    b"0 .1 .1 .2 .2 .3 .3": "",
    b"0 .1 .1 .2 .2 .3 .3 .4": "not 5 columns: 8 found (keypoints? declare kpt_shape in data.yaml)",
    b"0 1 1 20 1 20 10": "pixels for shares: [1, 1, 20, 10] goes above 1; divide by",
    b"0 .1 .1 .2 .1 .3 .1": "empty box: [0.1, 0.1, 0.3, 0.1] has no area",
    b"0 .1 .1 .2 .1 .3 x": "not a number: 'outline' is 'x'; give a finite number",
    b"0 .5 .5 .5 .5 .9\r": "",
    b"0 \xff": "not UTF-8: byte 0xff at offset 2 of the line",
}


def test_yolo_tells_by_line(tmp_path: Path) -> None:
    files = {
        "data.yaml": b"names: [cat, dog]",
        "images/a.png": blank(),
        "images/b.png": blank(),
        "labels/a.txt": b"\n".join(YOLO_LINES),
    }
    read = read_all(tmp_path, files)
    assert [Path(row.image.name).name for row in read.rows] == ["b.png"]
    expected = [(n, told) for n, told in enumerate(YOLO_LINES.values(), start=1) if told]
    assert [(p.line, p.reason[: len(told)]) for p, (_, told) in zip(read.problems, expected)] == (
        expected
    )
    assert len(read.problems) == len(expected)
    assert {Path(p.file).name for p in read.problems} == {"a.txt"}


IMAGES = [
    (
        {"width": 30, "height": 20},
        blank(),
        "30 × 20 is declared, the upright image has 40 × 20; gi",
    ),
    (
        {"width": 20, "height": 40},
        blank(),
        "20 × 40 is declared, the upright image has 40 × 20; the",
    ),
    (
        {"width": 40, "height": 20},
        blank(form="JPEG", orientation=6),
        "40 × 20 is declared, the upright image has 20 × 40; the sides are swapped, as where boxes "
        "were drawn without the image's EXIF rotation; save the image upright",
    ),
]


@pytest.mark.parametrize(("size", "image", "told"), IMAGES)
def test_another_size_than_declared_is_told(
    size: dict[str, int], image: bytes, told: str, tmp_path: Path
) -> None:
    record = {"objects": [], **size}
    declared = {
        "train.json": coco({}, images=[{"id": 1, "file_name": "a.png", **size}]),
        "a.xml": xml("a.png", [], size=(size["width"], size["height"])),
        "train.jsonl": rows({"image": "a.png", **record}),
    }
    for name, raw in declared.items():
        data = in_folder(tmp_path / name, {name: raw, "a.png": image})
        with pytest.raises(DataError) as raised:
            read_boxes(data, "train")
        assert f": another size: {told}" in str(raised.value)


def test_boxes_are_of_the_upright_image(tmp_path: Path) -> None:
    record = {"image": "a.jpg", "objects": [{"label": "cat", "box": [0, 0, 20, 10]}]}
    files = {"train.jsonl": rows(record), "a.jpg": blank(form="JPEG", orientation=8)}
    row = read_all(tmp_path, files).rows[0]
    assert row.extras["size"] == (40, 20)
    assert row.extras["objects"][0][1:5] == (0, 0, 1, 0.25)


def test_what_was_cut_is_counted_in_the_report(tmp_path: Path) -> None:
    files = {"a.xml": xml("a.png", [Said("cat", 1, 1, 41, 20)]), "a.png": blank()}
    read = read_all(tmp_path, files)
    assert "1 image with 1 object (1 cut at the edge of the image) from" in read.summary()
    assert read.rows[0].extras["objects"][0].right == 1


def test_bad_boxes_over_those_allowed_stop_the_reading(tmp_path: Path) -> None:
    raw = corners({"a.png": SAID, "b.png": []})
    data = in_folder(tmp_path, {"train.jsonl": raw, "a.png": blank(), "b.png": blank()})
    with pytest.raises(DataError, match="mend them, or pass --skip-bad 4 to leave them out"):
        read_boxes(data, "train", skip_bad=3)
    assert len(read_boxes(data, "train", skip_bad=4).rows) == 1


OBJECTS = [
    ([{"label": "cat"}], "missing key: object 1: no 'box'; it has 'label'"),
    ([{"box": [0, 0, 9, 9]}], "missing key: object 1: no 'label'; it has 'box'"),
    ([7], "wrong type: object 1: the row is a number, not an object with keys"),
    ([{"label": "", "box": [0, 0, 9, 9]}], "no label: object 1: 'label' is empty"),
    ([{"label": [], "box": [0, 0, 9, 9]}], "wrong type: object 1: the label is a list, not a"),
    ([{"label": 1, "box": [0, 0, 9]}], "wrong type: object 1: 'box' is a list of 3, not a list of"),
    ([{"label": 1, "box": "x"}], "wrong type: object 1: 'box' is a string, not a list of four"),
    (
        [{"label": 1, "box": [0, None, 9, 9]}],
        "not a number: object 1: 'box' is None; give a finite",
    ),
    ([{"label": 1, "box": [0, True, 9, 9]}], "not a number: object 1: 'box' is True"),
    ([{"label": 1, "box": [0, math.nan, 9, 9]}], "not a number: object 1: 'box' is nan; give a"),
    ([{"label": 1, "box": [0, 10**400, 9, 9]}], "not a number: object 1: 'box' is 1000000000"),
    ("x", "wrong type: 'objects' is a string, not a list or an object of lists"),
    (
        {"bbox": [], "categories": [1]},
        "not as many: 1 of 'categories', 0 of 'bbox'; give one of ea",
    ),
    ({"bbox": 1, "categories": [1]}, "wrong type: 'bbox' is a number, not a list"),
    ({"bbox": []}, "missing key: no 'label'; it has 'bbox'"),
]


@pytest.mark.parametrize(("objects", "told"), OBJECTS)
def test_objects_of_json_lines_have_their_shape(objects: object, told: str, tmp_path: Path) -> None:
    raw = rows({"image": "a.png", "objects": objects}, {"image": "b.png", "objects": []})
    read = read_all(tmp_path, {"train.jsonl": raw, "a.png": blank(), "b.png": blank()})
    assert [problem.reason[: len(told)] for problem in read.problems] == [told]


def test_faults_of_coco_are_told_by_list_and_place(tmp_path: Path) -> None:
    size = {"width": 40, "height": 20}
    document = {
        "images": [
            {"id": 1, "file_name": "a.png", **size},
            {"id": 2, "file_name": "lost.png"},
            {"id": 3, "file_name": "b.png", **size},
            {"id": 4, "file_name": "a.png"},
            {"id": 5, "file_name": "a.png", "width": "x", "height": 3},
            {"id": 1, "file_name": "c.png"},
            {"id": 6, "file_name": "c.png"},
        ],
        "annotations": [
            {"image_id": 1, "category_id": 1, "bbox": [0, 0, 9, 9]},
            {"image_id": 9, "category_id": 1, "bbox": [0, 0, 9, 9]},
            {"image_id": 3, "category_id": 8, "bbox": [0, 0, 9, 9]},
            {"image_id": 3, "category_id": 1},
            {"image_id": 3, "category_id": 1, "bbox": [0, 0, 9, math.inf]},
            {"image_id": 2, "category_id": 1, "bbox": [0, 0, 0, 0]},
        ],
        "categories": [{"id": 1, "name": "cat"}],
    }
    files = {"train.json": json.dumps(document).encode(), "c.png": b"GIF89a"}
    read = read_all(tmp_path, {**files, "a.png": blank(), "b.png": blank()})
    assert [row.extras["id"] for row in read.rows] == [1]
    assert found(read) == [
        ("train.json#annotations", 2, "no such image"),
        ("train.json#images", 2, "missing image"),
        ("train.json#annotations", 3, "no such category"),
        ("train.json#annotations", 4, "missing key"),
        ("train.json#annotations", 5, "not a number"),
        ("train.json#images", 4, "duplicate file_name"),
        ("train.json#images", 5, "duplicate file_name"),
        ("train.json#images", 6, "duplicate id"),
        ("train.json#images", 7, "damaged image"),
    ]
