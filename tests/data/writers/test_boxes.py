"""What is written is read back as it was."""

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saccade.data.readers import ImagesRead, box_class_ids, box_class_names, read_boxes
from saccade.data.writers.boxes import (
    FoundBox,
    FoundInImage,
    class_ids,
    coco_dataset,
    coco_results,
    yolo_lines,
)
from saccade.errors import ConfigError
from tests.data.boxes_made import HEIGHT, WIDTH, blank
from tests.data.images_made import in_folder

NAMES = ["dog", "cat", "cow"]
FOUND = FoundBox("cat", 0.75, 4, 2, 20, 10)
IMAGES = [
    FoundInImage("a.png", (HEIGHT, WIDTH), [FOUND, FoundBox("dog", 0.5, 0, 0, 40, 20)]),
    FoundInImage("b.png", (HEIGHT, WIDTH), []),
]


def test_results_are_what_coco_evaluates() -> None:
    named = IMAGES[0]._replace(id="x")
    assert coco_results([IMAGES[0]], class_ids(NAMES)) == [
        {"image_id": 1, "category_id": 2, "bbox": [4, 2, 16, 8], "score": 0.75},
        {"image_id": 1, "category_id": 1, "bbox": [0, 0, 40, 20], "score": 0.5},
    ]
    assert [one["image_id"] for one in coco_results([named], {"cat": 9, "dog": 3})] == ["x", "x"]


def test_lines_are_shares_with_a_score() -> None:
    (line, _) = yolo_lines(IMAGES[0], class_ids(NAMES, first=0))
    assert line == "1 0.30000000 0.30000000 0.40000000 0.40000000 0.75000000"


def test_a_class_without_a_number_is_refused() -> None:
    told = "'cat' was found, and is none of the 1 classes; give all of them"
    for attempt in (coco_results, coco_dataset):
        with pytest.raises(ConfigError, match=told):
            attempt(IMAGES, {"dog": 1})
    with pytest.raises(ConfigError, match=told):
        yolo_lines(IMAGES[0], {"dog": 1})


def coco_read(images: list[FoundInImage], root: Path) -> ImagesRead:
    files = {image.file: blank() for image in images}
    raw = json.dumps(coco_dataset(images, class_ids(NAMES))).encode()
    return read_boxes(in_folder(root, {**files, "train.json": raw}), "train")


def yolo_read(images: list[FoundInImage], root: Path) -> ImagesRead:
    files = {f"images/{image.file}": blank() for image in images}
    files["data.yaml"] = f"names: {NAMES}".encode()
    for image in images:
        lines = yolo_lines(image, class_ids(NAMES, first=0))
        files[f"labels/{Path(image.file).stem}.txt"] = "\n".join(lines).encode()
    return read_boxes(in_folder(root, files), "train")


side = st.integers(0, 16).map(lambda n: n / 4)
found_box = st.builds(
    lambda label, score, x, y, w, h: FoundBox(label, score, x, y, x + 2 + w, y + 2 + h),
    st.sampled_from(NAMES),
    st.floats(0, 1),
    *(side, side, side, side),
)


@settings(deadline=None, max_examples=25)
@given(found=st.lists(st.lists(found_box, max_size=3), min_size=1, max_size=3))
def test_what_is_written_is_read_back(found: list[list[FoundBox]]) -> None:
    images = [FoundInImage(f"{n}.png", (HEIGHT, WIDTH), boxes) for n, boxes in enumerate(found)]
    for read_back in (coco_read, yolo_read):
        with tempfile.TemporaryDirectory() as root:
            read = read_back(images, Path(root))
        assert box_class_names(read) == NAMES
        assert list(box_class_ids(read)) == NAMES
        assert [row.extras["size"] for row in read.rows] == [(HEIGHT, WIDTH)] * len(images)
        for row, boxes in zip(read.rows, found, strict=True):
            assert [one.label for one in row.extras["objects"]] == [one.label for one in boxes]
            for one, box in zip(row.extras["objects"], boxes, strict=True):
                pixels = one.left * WIDTH, one.top * HEIGHT, one.right * WIDTH, one.bottom * HEIGHT
                assert pixels == pytest.approx(box[2:], abs=1e-5)
