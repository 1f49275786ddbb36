"""What a line of YOLO's may be: a box, a box with keypoints, an outline."""

from pathlib import Path

import pytest

from saccade.data.objects import NamedBox
from saccade.data.readers import read_boxes
from saccade.errors import DataError
from tests.data.boxes_made import VALID, pictures
from tests.data.images_made import in_folder


def labelled(place: Path, lines: bytes, **more: bytes) -> Path:
    files = {"images/a.png": pictures(VALID)["d.png"], "labels/a.txt": lines}
    return in_folder(
        place, {**files, **{name.replace("_", "."): raw for name, raw in more.items()}}
    )


@pytest.mark.parametrize(
    ("lines", "shape"),
    [
        (b"0 .5 .5 .2 .2 .45 .45 .55 .55\n", "[2, 2]"),
        (b"0 .5 .5 .2 .2 .45 .45 0 0\n1 .1 .1 .2 .2 .1 .1 .2 .2\n", "[2, 2]"),
        (b"0 .5 .5 .5 .5 .3 .3 2 .4 .4 1\n0 .5 .5 .4 .4 0 0 0 .4 .4 1\n", "[2, 3]"),
    ],
)
def test_lines_that_may_be_keypoints_or_outlines_are_refused_until_it_is_said(
    lines: bytes, shape: str, tmp_path: Path
) -> None:
    data = labelled(tmp_path / "a", lines)
    columns = len(lines.split(b"\n")[0].split())
    with pytest.raises(DataError) as raised:
        read_boxes(data, "train")
    assert str(raised.value) == (
        f"{data}/images: lines of {columns} columns may be boxes with keypoints or outlines; "
        f"declare kpt_shape: {shape} in data.yaml, or end each outline with its first point"
    )
    declared = labelled(tmp_path / "b", lines, data_yaml=f"kpt_shape: {shape}\n".encode())
    (row,) = read_boxes(declared, "train").rows
    assert row.extras["around"] == 0
    closed = b"0 .5 .5 .2 .2 .45 .45 .55 .55 .5 .5\n"
    (row,) = read_boxes(labelled(tmp_path / "c", closed), "train").rows
    assert row.extras["around"] == 1


@pytest.mark.parametrize(
    "other",
    [b"0 .1 .1 .3 .1 .3 .3\n", b"0 .1 .1 .3 .1 .3 .3 .1 .3\n", b"0 .9 .9 .4 .2 .9 .9 .8 .8\n"],
)
def test_an_outline_that_looks_like_keypoints_by_chance_is_one(
    other: bytes, tmp_path: Path
) -> None:
    """Others of the split are longer or shorter, or can be nothing else."""
    data = labelled(tmp_path, b"0 .5 .5 .2 .2 .45 .45 .55 .55\n" + other)
    (row,) = read_boxes(data, "train").rows
    assert row.extras["around"] == 2


def test_keypoints_stay_declared_where_classes_are_named_beside_the_images(tmp_path: Path) -> None:
    files = {
        "data.yaml": b"kpt_shape: [2, 2]\ntrain: elsewhere\n",
        "train/a.png": pictures(VALID)["d.png"],
        "train/a.txt": b"0 .5 .5 .5 .5 .3 .3 .4 .4\n",
        "train/classes.txt": b"cat\n",
    }
    (row,) = read_boxes(in_folder(tmp_path, files), "train").rows
    assert row.extras["objects"] == (NamedBox("cat", 0.25, 0.25, 0.75, 0.75),)
