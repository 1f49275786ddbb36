"""The same boxes in any form, and packed in any way, are read as the same."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saccade.data.images.cache import CacheSettings
from saccade.data.objects import NamedBox, Objects
from saccade.data.readers import (
    ImagesRead,
    box_class_ids,
    box_class_names,
    box_splits,
    read_boxes,
)
from saccade.data.readers.images.cached import cached_images
from saccade.errors import DataError
from tests.data.boxes_made import (
    CLASSES,
    HEIGHT,
    TRAIN,
    VALID,
    WIDTH,
    Said,
    Scenes,
    coco,
    corners,
    hugging_face,
    pictures,
    xml,
    xmls,
    yolo,
)
from tests.data.images_made import Files, below, in_folder, in_tar, in_zip

PACKS: dict[str, Callable[[Path, Files], Path]] = {
    "folder": in_folder,
    "zip": lambda root, files: in_zip(root / "x.zip", files),
    "tar": lambda root, files: in_tar(root / "x.tar", files),
    "zip of a folder": lambda root, files: in_zip(root / "x.zip", below("top", files)),
    "beside a licence": lambda root, files: in_zip(
        root / "x.zip", {"LICENSE": b"", **below("top", files)}
    ),
}
YAML = b"train: ../train/images\nval: ../valid/images\ntest: ../test/images\nnc: 3\n"
ALL = {**pictures(TRAIN), **pictures(VALID)}


def split(make: Callable[[Scenes], Files]) -> dict[str, bytes]:
    return {**below("train", make(TRAIN)), **below("valid", make(VALID))}


def stems(scenes: Scenes) -> bytes:
    return "".join(f"{name[:-4]}\n" for name in scenes).encode()


def names(form: str) -> bytes:
    quoted = [f'"{name}"' for name in CLASSES]
    return {
        "list": f"names: [{', '.join(quoted)}]",
        "lines": "names:\n" + "".join(f"- {name}\n" for name in quoted),
        "map": "names:  # three\n" + "".join(f"  {n}: {one}\n" for n, one in enumerate(quoted)),
    }[form].encode()


BOTH = {**TRAIN, **VALID}
NUMBERED = {
    **below("train/images", pictures(TRAIN)),
    **below("train/labels", yolo(TRAIN)),
    **below("valid/images", pictures(VALID)),
    **below("valid/labels", yolo(VALID)),
}
LAYOUTS: dict[str, Files] = {
    "coco": {
        "annotations/instances_train2017.json": coco(TRAIN),
        "annotations/instances_val2017.json": coco(VALID, sizes=False),
        "annotations/captions_train2017.json": b"{}",
        **below("train2017", pictures(TRAIN)),
        **below("val2017", pictures(VALID)),
    },
    "coco, beside": {"train.json": coco(TRAIN), "val.json": coco(VALID), **below("images", ALL)},
    "coco, in the splits": split(
        lambda scenes: {"_annotations.coco.json": coco(scenes), **pictures(scenes)}
    ),
    "voc": {
        **below("Annotations", xmls(BOTH)),
        **below("JPEGImages", ALL),
        "ImageSets/Main/train.txt": stems(TRAIN),
        "ImageSets/Main/val.txt": stems(VALID),
        "ImageSets/Main/trainval.txt": stems(BOTH),
        "ImageSets/Main/cat_train.txt": b"a  1\nb -1\n",
        "ImageSets/Main/cat_test.txt": b"a  1\n",
    },
    "voc, in the splits": split(lambda scenes: {**xmls(scenes), **pictures(scenes)}),
    "voc, splits below": {
        **below("annotations/train", xmls(TRAIN)),
        **below("annotations/val", xmls(VALID)),
        **below("images/train", pictures(TRAIN)),
        **below("images/val", pictures(VALID)),
    },
    "yolo": {
        "data.yaml": names("list"),
        **below("images/train", pictures(TRAIN)),
        **below("labels/train", yolo(TRAIN)),
        **below("images/val", pictures(VALID)),
        **below("labels/val", yolo(VALID)),
    },
    "yolo, years": {
        "data.yaml": names("list"),
        **below("images/train2017", pictures(TRAIN)),
        **below("labels/train2017", yolo(TRAIN)),
        **below("images/val2017", pictures(VALID)),
        **below("labels/val2017", yolo(VALID)),
        "images/test2017/x.png": pictures(VALID)["d.png"],  # which has no labels
    },
    "yolo, in the splits": {**NUMBERED, "data.yaml": YAML + names("map")},
    "yolo, by a path": {
        **NUMBERED,
        "x.yml": b"path: /home/me/data\ntrain: train/images\nval: valid/images\n" + names("lines"),
    },
    "yolo, names in a text": {**NUMBERED, "classes.txt": "\r\n".join(CLASSES).encode()},
    "yolo, darknet": {
        "obj.names": "\n".join(CLASSES).encode(),
        "data.yaml": b"train: train.txt\nval: data/val.txt\n",
        "train.txt": b"".join(f"data/obj_train_data/{name}\n".encode() for name in TRAIN),
        "data/val.txt": b"./obj_val/d.png\n",
        **below("obj_train_data", {**pictures(TRAIN), **yolo(TRAIN)}),
        **below("obj_val", {**pictures(VALID), **yolo(VALID)}),
    },
    "yolo, one folder": split(
        lambda scenes: {
            **pictures(scenes),
            **yolo(scenes),
            "_darknet.labels": "\n".join(CLASSES).encode(),
        }
    ),
    "jsonl": {"train.jsonl": corners(TRAIN), "valid.jsonl": corners(VALID), **below("images", ALL)},
    "jsonl, hugging face": split(
        lambda scenes: {"metadata.jsonl": hugging_face(scenes), **pictures(scenes)}
    ),
}


def boxes(read: ImagesRead) -> dict[str, list[NamedBox]]:
    return {Path(row.image.name).name: list(row.extras["objects"]) for row in read.rows}


def shares(scenes: Scenes) -> dict[str, list[NamedBox]]:
    return {
        name: [
            NamedBox(
                one.label,
                *(one.left / WIDTH, one.top / HEIGHT, one.right / WIDTH, one.bottom / HEIGHT),
                one.ignored,
            )
            for one in found
        ]
        for name, found in scenes.items()
    }


def assert_same(found: dict[str, list[NamedBox]], expected: dict[str, list[NamedBox]]) -> None:
    assert list(found) == list(expected)
    for name, every in expected.items():
        assert [(b.label, b.ignored) for b in found[name]] == [(b.label, b.ignored) for b in every]
        for one, other in zip(found[name], every, strict=True):
            assert one[1:5] == pytest.approx(other[1:5], abs=1e-9)


@pytest.mark.parametrize("pack", PACKS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_form_and_pack_gives_the_same_boxes(layout: str, pack: str, tmp_path: Path) -> None:
    data = PACKS[pack](tmp_path, LAYOUTS[layout])
    assert box_splits(data) == ["train", "valid"]
    train, valid = read_boxes(data, "train"), read_boxes(data, "valid")
    assert_same(boxes(train), shares(TRAIN))
    assert_same(boxes(valid), shares(VALID))
    assert {row.extras["size"] for row in train.rows} == {(HEIGHT, WIDTH)}
    declared = layout.startswith(("coco", "yolo"))
    assert box_class_names(train) == (list(CLASSES) if declared else ["cat", "dog"])
    assert train.summary().startswith("3 images with 3 objects from ")
    with pytest.raises(DataError, match="has no 'test' split with boxes"):
        read_boxes(data, "test")


WHOLES: dict[str, Files] = {
    "coco": {"instances.json": coco(TRAIN), "images/a.png": b"", **pictures(TRAIN)},
    "voc": {**below("Annotations", xmls(TRAIN)), **below("JPEGImages", pictures(TRAIN))},
    "yolo": {
        **below("images", pictures(TRAIN)),
        **below("labels", yolo(TRAIN)),
        "labels/classes.txt": "\n".join(CLASSES).encode(),
        "notes.json": b'{"info": 1}',
    },
    "jsonl": {"metadata.jsonl": corners(TRAIN), **pictures(TRAIN)},
}


@pytest.mark.parametrize("form", WHOLES)
def test_what_names_no_split_is_all_train(form: str, tmp_path: Path) -> None:
    data = in_folder(tmp_path, WHOLES[form])
    assert box_splits(data) == ["train"]
    assert_same(boxes(read_boxes(data, "train")), shares(TRAIN))
    with pytest.raises(DataError, match="so it is all train"):
        read_boxes(data, "valid")


@pytest.mark.parametrize("name", ["x.json", "x.jsonl", "x.yaml"])
def test_a_file_may_be_given_by_itself(name: str, tmp_path: Path) -> None:
    files = {
        "x.json": coco(TRAIN),
        "x.jsonl": corners(TRAIN),
        "x.yaml": b"train: here/images\n" + names("list"),
        **pictures(TRAIN),
        **below("here/images", pictures(TRAIN)),
        **below("here/labels", yolo(TRAIN)),
    }
    data = in_folder(tmp_path, files) / name
    assert box_splits(data) == ["train"]
    assert_same(boxes(read_boxes(data, "train")), shares(TRAIN))


def test_crowds_and_difficult_objects_are_to_be_ignored(tmp_path: Path) -> None:
    scenes = {"a.png": [Said("cat", 1, 1, 9, 9, ignored=True), Said("cat", 2, 2, 8, 8)]}
    for form, files in {
        "coco": {"train.json": coco(scenes)},
        "voc": xmls(scenes),
        "corners": {"train.jsonl": corners(scenes)},
        "sides": {"train.jsonl": hugging_face(scenes, "category")},
    }.items():
        data = in_folder(tmp_path / form, {**files, **pictures(scenes)})
        assert_same(boxes(read_boxes(data, "train")), shares(scenes))


def test_ids_of_images_and_classes_come_along(tmp_path: Path) -> None:
    read = read_boxes(in_folder(tmp_path, LAYOUTS["coco, beside"]), "train")
    assert [row.extras["id"] for row in read.rows] == [5, 6, 7]
    assert box_class_ids(read) == {"dog": 0, "cat": 7, "a: b": 14}


def test_without_names_classes_are_their_numbers(tmp_path: Path) -> None:
    files = {"images/a.png": pictures(TRAIN)["a.png"], "labels/a.txt": b"10 .5 .5 1 1\n9 .5 .5 1 1"}
    read = read_boxes(in_folder(tmp_path, files), "train")
    assert box_class_names(read) == ["9", "10"]


def test_classes_of_several_splits_are_joined(tmp_path: Path) -> None:
    data = in_folder(tmp_path, LAYOUTS["jsonl"])
    assert box_class_names(read_boxes(data, "valid")) == ["cat"]
    assert box_class_names(read_boxes(data, "valid"), read_boxes(data, "train")) == ["cat", "dog"]


def test_a_size_of_nothing_is_not_declared(tmp_path: Path) -> None:
    files = {**pictures(VALID), "d.xml": xml("d.png", VALID["d.png"], size=(0, 0))}
    assert_same(boxes(read_boxes(in_folder(tmp_path, files), "train")), shares(VALID))


def test_trainval_is_train_where_there_is_no_other(tmp_path: Path) -> None:
    files = {key: raw for key, raw in LAYOUTS["voc"].items() if key != "ImageSets/Main/train.txt"}
    assert len(read_boxes(in_folder(tmp_path, files), "train").rows) == 4


four = st.tuples(*(st.integers(0, 8 * side) for side in (WIDTH, HEIGHT, WIDTH, HEIGHT)))
said = st.builds(
    lambda label, a: Said(
        label,
        *(min(a[0], a[2]) / 8, min(a[1], a[3]) / 8, max(a[0], a[2]) / 8, max(a[1], a[3]) / 8),
    ),
    st.sampled_from(CLASSES[:2]),
    four.filter(lambda a: a[0] != a[2] and a[1] != a[3] and max(a) > 8),
)


@settings(deadline=None, max_examples=40)
@given(found=st.lists(said, max_size=5))
def test_any_boxes_read_equal_in_all_forms_and_fit_float32(found: list[Said]) -> None:
    scenes = {"a.png": found}
    forms = [
        {"train.json": coco(scenes), **pictures(scenes)},
        {**xmls(scenes), **pictures(scenes)},
        {
            **below("images", pictures(scenes)),
            **below("labels", {"a.txt": b"", **yolo(scenes)}),
            "data.yaml": names("list"),
        },
        {"train.jsonl": corners(scenes), **pictures(scenes)},
        {"train.jsonl": hugging_face(scenes), **pictures(scenes)},
    ]
    for files in forms:
        with tempfile.TemporaryDirectory() as root:
            read = read_boxes(in_folder(Path(root), files), "train")
            assert_same(boxes(read), shares(scenes))
            tensors = Objects.of(read.rows[0].extras["objects"], CLASSES).boxes
            assert (tensors[:, :2] < tensors[:, 2:]).all()
            assert ((tensors >= 0) & (tensors <= 1)).all()


def test_boxes_stay_with_their_images_when_those_are_decoded(tmp_path: Path) -> None:
    layout = {**LAYOUTS["coco, beside"], "images/a.png": pictures(TRAIN)["a.png"][:60]}
    read = read_boxes(in_folder(tmp_path / "data", layout), "train")
    good, cache = cached_images(
        read, tmp_path / "cache", settings=CacheSettings(size=8), skip_bad=1
    )
    assert boxes(good) == {name: found for name, found in boxes(read).items() if name != "a.png"}
    assert len(cache) == 2
    assert box_class_names(good) == list(CLASSES)
    assert good.summary().startswith("2 images with 1 object from train.json; 1 bad row skipped")


def outlined(one: Said) -> str:
    """A diamond that fills the box."""
    across, down = (one.left + one.right) / 2, (one.top + one.bottom) / 2
    points = [(across, one.top), (one.right, down), (across, one.bottom), (one.left, down)]
    said = " ".join(f"{x / WIDTH!r} {y / HEIGHT!r}" for x, y in points)
    return f"{CLASSES.index(one.label)} {said}\n"


def test_yolo_may_have_outlines_and_their_boxes_are_said_to_be_such(tmp_path: Path) -> None:
    texts = {f"{n[:-4]}.txt": "".join(map(outlined, f)).encode() for n, f in TRAIN.items() if f}
    files = {**below("train/images", pictures(TRAIN)), **below("train/labels", texts)}
    names = f"names: [dog, cat, '{CLASSES[2]}']\n".encode()
    data = in_folder(tmp_path, {"data.yaml": YAML + names, **files})
    read = read_boxes(data, "train")
    plain = [
        NamedBox(one.label, one.left / 40, one.top / 20, one.right / 40, one.bottom / 20)
        for found in TRAIN.values()
        for one in found
    ]
    assert [box for row in read.rows for box in row.extras["objects"]] == plain
    assert read.summary() == (
        f"3 images with 3 objects (3 drawn around outlines) from {Path(read.files[0]).name}"
    )


def test_keypoints_that_data_yaml_declares_are_passed_over(tmp_path: Path) -> None:
    line = b"0 .5 .5 .5 .5 .1 .1 2 .2 .2 1 .3 .3 0 .4 .4 2\n"
    files = {"images/a.png": pictures(VALID)["d.png"], "labels/a.txt": line}
    yaml = b"train: images\nkpt_shape: [4, 3]\nnames: [cat]\n"
    (row,) = read_boxes(in_folder(tmp_path, {"data.yaml": yaml, **files}), "train").rows
    assert [box[1:5] for box in row.extras["objects"]] == [(0.25, 0.25, 0.75, 0.75)]
    assert row.extras["around"] == 0
