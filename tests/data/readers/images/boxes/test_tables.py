"""Boxes in CSV, in the forms in which tools and others write them."""

from pathlib import Path

import pytest

from saccade.data.readers import ImagesRead, box_splits, read_boxes
from saccade.errors import DataError
from tests.data.boxes_made import HEIGHT, TRAIN, VALID, WIDTH, Said, blank, pictures
from tests.data.images_made import Files, below, in_folder, in_tar, in_zip

SAID = [(name, one) for name, found in TRAIN.items() for one in found]
EXPECTED = {
    "a.png": [("cat", 0.1, 0.1, 0.5, 0.5), ("dog", 0, 0, 1, 1)],
    "c.png": [("dog", 0.25, 0.25, 0.3, 0.3)],
}


def table(first: str, row: str, said: list[tuple[str, Said]] = SAID) -> bytes:
    """A line for each box; the names in `row` are those of its edges and sides."""
    lines = [
        row.format(
            file=name,
            stem=name[:-4],
            label=one.label,
            left=one.left,
            top=one.top,
            right=one.right,
            bottom=one.bottom,
            w=one.right - one.left,
            h=one.bottom - one.top,
            l_=one.left / WIDTH,
            t_=one.top / HEIGHT,
            r_=one.right / WIDTH,
            b_=one.bottom / HEIGHT,
        )
        for name, one in said
    ]
    return "\n".join([first] * bool(first) + lines + [""]).encode()


TENSORFLOW = "filename,width,height,class,xmin,ymin,xmax,ymax"
ROW = "{file},40,20,{label},{left},{top},{right},{bottom}"
OPEN = "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsGroupOf"
FORMS: dict[str, Files] = {
    "TensorFlow": {"train_labels.csv": table(TENSORFLOW, ROW), **below("train", pictures(TRAIN))},
    "Roboflow": below("train", {"_annotations.csv": table(TENSORFLOW, ROW), **pictures(TRAIN)}),
    "RetinaNet": {
        "annotations.csv": table("", "images/{file},{left},{top},{right},{bottom},{label}"),
        "classes.csv": b"dog,0\ncat,1\n",
        **below("images", pictures(TRAIN)),
    },
    "sides": {
        "train.csv": table("image_id,label,x,y,w,h", "{stem},{label},{left},{top},{w},{h}"),
        **below("train", pictures(TRAIN)),
    },
    "a list": {
        "train.csv": table(
            "image_id;width;height;bbox;class", "{stem};40;20;[{left}, {top}, {w}, {h}];{label}"
        ),
        **pictures(TRAIN),
    },
    "Open Images": {
        "train-annotations-bbox.csv": table(OPEN, "{stem},x,/m/{label},1,{l_},{r_},{t_},{b_},0"),
        "class-descriptions-boxable.csv": b"/m/dog,dog\n/m/cat,cat\n",
        **below("train", pictures(TRAIN)),
    },
}


def boxes(read: ImagesRead) -> dict[str, list[tuple[object, ...]]]:
    return {
        Path(row.image.name).name: [
            (box.label, *(round(edge, 6) for edge in box[1:5])) for box in row.extras["objects"]
        ]
        for row in read.rows
    }


@pytest.mark.parametrize("form", FORMS)
def test_rows_of_an_image_are_put_together(form: str, tmp_path: Path) -> None:
    files = FORMS[form]
    for data in (
        in_folder(tmp_path / "folder", files),
        in_zip(tmp_path / "x.zip", files),
        in_tar(tmp_path / "x.tar", files),
    ):
        assert boxes(read_boxes(data, "train")) == EXPECTED


def test_splits_are_what_the_tables_are_named_after(tmp_path: Path) -> None:
    valid = table(TENSORFLOW, ROW, [(name, one) for name, found in VALID.items() for one in found])
    files = {**FORMS["Roboflow"], **below("valid", {"_annotations.csv": valid, **pictures(VALID)})}
    data = in_folder(tmp_path, files)
    assert box_splits(data) == ["train", "valid"]
    assert list(boxes(read_boxes(data, "valid"))) == ["d.png"]
    alone = read_boxes(data / "valid" / "_annotations.csv", "train")
    assert alone.summary() == "1 image with 1 object from _annotations.csv"


def test_an_image_may_have_no_object_and_a_group_is_ignored(tmp_path: Path) -> None:
    raw = b"a.png,1,2,3,4,cat\nb.png,,,,,\n"
    data = in_folder(tmp_path, {"x.csv": raw, **pictures(TRAIN)})
    assert boxes(read_boxes(data, "train"))["b.png"] == []
    group = f"{OPEN}\na,x,/m/1,1,0.1,0.5,0.1,0.5,1\n".encode()
    (row,) = read_boxes(in_folder(tmp_path / "g", {"t.csv": group, "a.png": blank()}), "train").rows
    assert [(box.label, box.ignored) for box in row.extras["objects"]] == [("/m/1", True)]


def test_a_first_box_over_the_edge_is_no_line_of_names(tmp_path: Path) -> None:
    raw = b"a.png,-1,0,20,10,cat\nb.png,0,-0.5,9,9,dog\n"
    read = read_boxes(in_folder(tmp_path, {"x.csv": raw, **pictures(TRAIN)}), "train")
    assert boxes(read) == {
        "a.png": [("cat", 0, 0, 0.5, 0.5)],
        "b.png": [("dog", 0, 0, 0.225, 0.45)],
    }


def test_a_bad_row_is_told_by_its_line(tmp_path: Path) -> None:
    rows = [
        "a.png,40,20,cat,0,0,9,9",
        "a.png,40,20,cat,30,0,60,9",
        "a.png,40,20,cat,x,0,9,9",
        "a.png,40,20,,0,0,9,9",
        "lost.png,40,20,cat,0,0,9,9",
        "b.png,20,40,cat,0,0,9,9",
        "c.png,40,20,cat,0,0,9",
        ",40,20,cat,0,0,9,9",
        "d.png,40,20,cat,0,0,9,9",
    ]
    raw = "\n".join([TENSORFLOW, *rows]).encode()
    files = {"train.csv": raw, **pictures(TRAIN), **pictures(VALID)}
    read = read_boxes(in_folder(tmp_path, files), "train", skip_bad=9)
    assert list(boxes(read)) == ["d.png"]
    assert sorted((p.line, p.kind) for p in read.problems) == [
        (3, "outside the image"),
        (4, "not a number"),
        (5, "no label"),
        (6, "missing image"),
        (7, "another size"),
        (8, "not 8 columns"),
        (9, "missing image"),
    ]


REFUSED = {
    "no boxes": (
        b"image,label\na.png,cat\n",
        "x.csv has no columns for boxes in its first line; name them xmin, ymin, xmax, ymax",
    ),
    "no label": (
        b"image_id,width,height,bbox,source\n",
        "x.csv has no column for the label of a box in its first line; it has 'image_id', 'width', "
        "'height', 'bbox', 'source'; name the columns there, as image and label",
    ),
    "no image": (b"label,x1,y1,x2,y2\n", "x.csv has no column for the image of a box"),
    "nothing": (b"", "x.csv"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_table_that_says_no_boxes_is_refused(what: str, tmp_path: Path) -> None:
    raw, told = REFUSED[what]
    data = in_folder(tmp_path, {"x.csv": raw, **pictures(TRAIN)})
    with pytest.raises(DataError) as raised:
        read_boxes(data / "x.csv", "train")
    assert told in str(raised.value)
    assert "\n" not in str(raised.value)
