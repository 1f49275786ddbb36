"""Faults of COCO's instances are told by list and place (D3); gaps and crowds are none."""

import json
from pathlib import Path

from saccade.data.readers import read_labelled
from tests.data.images_made import in_folder

FAULTY = {
    "images": [
        {"id": 1, "file_name": "a.png"},
        {"id": 1, "file_name": "b.png"},
        {"id": 2, "file_name": "b.png"},
        {"id": True, "file_name": "b.png"},
        {"id": 3, "file_name": "../b.png"},
        {"id": 4, "file_name": "a.png"},
        7,
    ],
    "annotations": [
        {"image_id": 1, "category_id": 90, "iscrowd": 1, "bbox": [0, 0, -1, float("nan")]},
        {"image_id": 1, "category_id": 5},
        {"image_id": 1, "category_id": 5},
        {"image_id": 99, "category_id": 5},
        {"image_id": 1, "category_id": 6},
        {"image_id": 1},
    ],
    "categories": [
        {"id": 5, "name": "dog"},
        {"id": 90, "name": "cat"},
        {"id": 5, "name": "cow"},
        {"id": 91, "name": "dog"},
        {"id": 92, "name": " "},
        {"id": 93, "name": 4},
    ],
}


def test_faults_are_told_by_list_and_place(tmp_path: Path) -> None:
    files = {"train.json": json.dumps(FAULTY).encode(), "a.png": b"", "b.png": b""}
    read = read_labelled(in_folder(tmp_path, files), "train", skip_bad=99)
    labels = [(row.extras["id"], row.extras["labels"]) for row in read.rows]
    assert labels == [(1, ("cat", "dog")), (2, ())]
    found = [(p.file.rpartition("#")[2], p.line, p.kind) for p in read.problems]
    assert found == [
        ("categories", 3, "duplicate id"),
        ("categories", 4, "duplicate name"),
        ("categories", 5, "no label"),
        ("categories", 6, "wrong type"),
        ("annotations", 4, "no such image"),
        ("annotations", 5, "no such category"),
        ("annotations", 6, "missing key"),
        ("images", 2, "duplicate id"),
        ("images", 4, "wrong type"),
        ("images", 5, "outside the data"),
        ("images", 6, "duplicate file_name"),
        ("images", 7, "wrong type"),
    ]
