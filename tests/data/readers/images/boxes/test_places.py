"""Files that are not where they should be, listed twice, or no data of this kind."""

from pathlib import Path

import pytest

from saccade.data.readers import read_boxes
from saccade.errors import DataError
from tests.data.boxes_made import TRAIN, Said, blank, coco, corners, pictures, xml, xmls
from tests.data.images_made import Files, in_folder, rows

GOOD = {"b.xml": xml("b.png", []), "b.png": blank()}
DOG = Said("dog", 1, 1, 9, 9)
LISTS: dict[str, Files] = {
    "Annotations": {f"Annotations/{name}": raw for name, raw in xmls(TRAIN).items()},
    "JPEGImages": {f"JPEGImages/{name}": raw for name, raw in pictures(TRAIN).items()},
}
VOC: Files = {**LISTS["Annotations"], **LISTS["JPEGImages"]}
YOLO: Files = {
    "data.yaml": b"names: [cat]",
    "images/a.png": blank(),
    "labels/a.txt": b"0 .5 .5 1 1",
}

PROBLEMS: dict[str, tuple[Files, str, str]] = {
    "no image of an XML": (
        {**GOOD, "a.xml": xml("a.png", [])},
        "a.xml:1",
        "missing image: 'a.png' is not in ",
    ),
    "no XML of an image": (
        {**GOOD, "a.png": blank()},
        "a.png:1",
        "missing annotation: no XML file is about it; add one, with or without objects, or take",
    ),
    "no object": (
        {**GOOD, "a.png": blank(), "a.xml": b"<annotation><object/></annotation>"},
        "a.xml#object:1",
        "no label: 'name' is empty",
    ),
    "no box": (
        {**GOOD, "a.png": blank(), "a.xml": b"<a><object><name>x</name></object></a>"},
        "a.xml#object:1",
        "missing key: no 'bndbox' in the object; give its xmin, ymin, xmax and ymax",
    ),
    "no number": (
        {**GOOD, "a.png": blank(), "a.xml": xml("a.png", [DOG]).replace(b">9<", b">x<", 1)},
        "a.xml#object:1",
        "not a number: 'xmax' is 'x'; give a finite number",
    ),
    "two XML for an image": (
        {**GOOD, "a.xml": xml("b.png", [])},
        "b.xml:1",
        "duplicate file_name: 'b.png' was on row 1; put all boxes of an image in one list",
    ),
    "listed twice": (
        {**VOC, "ImageSets/Main/train.txt": b"a\nb\n\na\n"},
        "train.txt:4",
        "duplicate image: 'a' was on line 1; list it once",
    ),
    "listed, and not annotated": (
        {**VOC, "ImageSets/Main/train.txt": b"a\nx.png\n"},
        "train.txt:2",
        "missing annotation: no x.xml in Annotations; add it",
    ),
    "a list that leads out": (
        {**VOC, "ImageSets/Main/train.txt": b"a\n../../x\n"},
        "train.txt:2",
        "outside the data: '../../x' is not a plain name",
    ),
    "labels of no image": (
        {**YOLO, "labels/x.txt": b"", "labels/classes.txt": b"cat"},
        "x.txt:1",
        "missing image: no x.jpg or the like goes with it; add it, or take the labels away",
    ),
    "two images of one name": (
        {**YOLO, "images/a.webp": blank(form="WEBP")},
        "a.webp:2",
        "duplicate image: 'images/a.png' has the same labels",
    ),
    "a list with an image that is lost": (
        {
            **YOLO,
            "data.yaml": b"train: x.txt\nnames: [cat]",
            "x.txt": b"images/a.png\nimages/y.png",
        },
        "y.png:2",
        "missing image: there is none of this name; add it",
    ),
    "no image at all": (
        {**YOLO, "images/b.png": b"text"},
        "b.png:2",
        "no image: it does not begin like any of",
    ),
    "a line that names a lost image": (
        {"a.jsonl": corners({"a.png": [], "b.png": []}), "a.png": blank()},
        "a.jsonl:2",
        "missing image: 'b.png' is not in",
    ),
    "an image on two lines": (
        {"a.jsonl": corners({"a.png": []}) * 2, "a.png": blank()},
        "a.jsonl:2",
        "duplicate file_name: 'a.png' was on row 1; put all boxes of an image in one list",
    ),
    "a line without objects": (
        {"a.jsonl": corners({"a.png": []}) + rows({"image": "a.png"}), "a.png": blank()},
        "a.jsonl:2",
        "missing key: no 'objects'; it has 'image'",
    ),
}


@pytest.mark.parametrize("what", PROBLEMS)
def test_what_is_amiss_is_told_with_its_place(what: str, tmp_path: Path) -> None:
    files, place, reason = PROBLEMS[what]
    read = read_boxes(in_folder(tmp_path, files), "train", skip_bad=9)
    (problem,) = read.problems
    assert f"{Path(problem.file).name}:{problem.line}" == place
    assert problem.reason.startswith(reason)
    assert read.rows


REFUSED: dict[str, tuple[Files, str, str]] = {
    "nothing": ({"x.txt": b""}, "", "has no boxes: neither COCO .json, Pascal VOC"),
    "images only": ({"a/x.png": blank(), "b/y.png": blank()}, "", "it holds a, b"),
    "another file": ({"x.xlsx": b"a"}, "x.xlsx", "images with boxes are read from a folder, .tar"),
    "lost": ({}, "x.json", "x.json does not exist; check the path"),
    "lost archive": ({}, "x.zip", "x.zip does not exist; check the path"),
    "no paths": ({"x.yaml": b"names: [a]"}, "x.yaml", "names no folder with images that is there"),
    "several": (
        {"train.json": coco({}), "train_annotations.json": coco({})},
        "",
        "several for one split; keep one, or give one file",
    ),
    "several wholes": ({"a.jsonl": b"", "b.jsonl": b""}, "", "a.jsonl, b.jsonl; give the one with"),
    "captions": (
        {"train.json": b'{"images": [], "annotations": []}'},
        "",
        "is not COCO instances: no list 'categories' in it",
    ),
    "labels that are elsewhere": (
        {"images/train/a.png": blank(), "labels/a.txt": b"0 .5 .5 1 1"},
        "",
        "not one of its images has labels; those of images/train/a.png are sought in "
        "labels/train/a.txt",
    ),
    "no names": (
        {**YOLO, "data.yaml": b"names: []"},
        "",
        "data.yaml names no classes; write names",
    ),
    "a name twice": (
        {**YOLO, "data.yaml": b"names: [a, a]"},
        "",
        "data.yaml has the class 'a' twice; name each",
    ),
    "a key that is no number": (
        {**YOLO, "data.yaml": b"names: {x: a}"},
        "",
        "data.yaml: 'x' in 'names' is no number of a class",
    ),
    "not UTF-8": (
        {**YOLO, "data.yaml": b"names: [\xff]"},
        "",
        "data.yaml is not UTF-8: at byte 8; save it as UTF-8",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_such_data_is_refused(what: str, tmp_path: Path) -> None:
    files, name, told = REFUSED[what]
    data = in_folder(tmp_path, files)
    with pytest.raises(DataError) as raised:
        read_boxes(data / name if name else data, "train")
    assert told in str(raised.value)
    assert "\n" not in str(raised.value)


def test_links_that_lead_nowhere_are_told(tmp_path: Path) -> None:
    in_folder(tmp_path, GOOD)
    (tmp_path / "a.xml").symlink_to(tmp_path / "lost.xml")
    read = read_boxes(tmp_path, "train", skip_bad=1)
    told = "missing annotation: 'a.xml' is a link that leads nowhere"
    assert [problem.reason for problem in read.problems] == [told]


def test_a_link_out_of_the_data_is_not_followed(tmp_path: Path) -> None:
    in_folder(tmp_path, {"data/data.yaml": b"names: [cat]", "out.yaml": b"names: [dog]"})
    (tmp_path / "data" / "data.yaml").unlink()
    (tmp_path / "data" / "data.yaml").symlink_to(tmp_path / "out.yaml")
    with pytest.raises(DataError, match=r"data\.yaml cannot be read: outside the data"):
        read_boxes(tmp_path / "data", "train")
