"""However images with classes lie, the same rows come out; what is wrong is told at once."""

import csv
import io
import json
import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from saccade.data.readers import LabelColumns, class_names, label_splits, read_labelled
from saccade.errors import DataError
from tests.data.images_made import below, in_folder, in_tar, in_zip, picture, rows
from tests.data.labels_made import hugging_face, instances, saved_to_disk, table

PICTURES = {f"{name}.png": picture(seed) for seed, name in enumerate("abcd")}
TRAIN = {"a.png": ["cat"], "b.png": ["dog"], "c.png": ["cat"]}
VALID = {"d.png": ["dog"]}
PACK: dict[str, Callable[[Path, Mapping[str, bytes]], Path]] = {
    "folder": lambda root, files: in_folder(root / "data", files),
    "tar": lambda root, files: in_tar(root / "data.tar", files),
    "zip": lambda root, files: in_zip(root / "data.zip", files),
    "folder/mine": lambda root, files: (
        in_folder(root / "data", below("mine", files)).parent / "data"
    ),
    "tar/mine": lambda root, files: in_tar(root / "data.tar", below("./mine", files)),
}


def separated(mark: str, labels: Mapping[str, list[str]], *, folder: str = "") -> bytes:
    sink = io.StringIO()
    writer = csv.writer(sink, delimiter=mark)
    writer.writerow(["file_name", "label"])
    writer.writerows([folder + name, "|".join(found)] for name, found in labels.items())
    return sink.getvalue().encode()


def json_lines(labels: Mapping[str, list[str]], key: str = "label") -> bytes:
    return rows(*({"path": name, key: found[0]} for name, found in labels.items()))


def classed(labels: Mapping[str, list[str]], folder: str = "") -> dict[str, bytes]:
    return {f"{folder}{found[0]}/{name}": PICTURES[name] for name, found in labels.items()}


LAYOUTS: dict[str, dict[str, bytes]] = {
    "folders": classed(TRAIN, "train/") | classed(VALID, "val/"),
    "folders, capital": classed(TRAIN, "Training/") | classed(VALID, "Valid/"),
    "folders, by their ends": classed(TRAIN, "seg_train/seg_train/") | classed(VALID, "seg_val/"),
    "folders in folders": {
        "train/cat/x/a.png": PICTURES["a.png"],
        "train/cat/y/z/c.png": PICTURES["c.png"],
        "train/dog/images/b.png": PICTURES["b.png"],
        "train/dog/boxes.txt": b"",
        "train/dog/Thumbs.db": b"",
        "valid/dog/d.png": PICTURES["d.png"],
    },
    "Tiny ImageNet": {
        **classed(TRAIN, "train/"),
        "val/val_annotations.txt": b"d.png\tdog\t0\t32\t44\t62\n",
        "val/images/d.png": PICTURES["d.png"],
        "test/images/e.png": PICTURES["a.png"],
        "wnids.txt": b"cat\ndog\n",
    },
    "csv": {"train.csv": separated(",", TRAIN), "val.csv": separated(",", VALID), **PICTURES},
    "csv, semicolons": {
        "Train.csv": separated(";", TRAIN),
        "Val.CSV": separated(";", VALID),
        **below("images", PICTURES),
    },
    "csv, named from above": {
        "train.csv": separated(",", TRAIN, folder="data/img/"),
        "val.csv": separated(",", VALID, folder="img/"),
        **below("img", PICTURES),
    },
    "csv, Kaggle": {
        "train.csv": b"image_id,label\na,cat\nb,dog\nc,cat\n",
        "valid.csv": b"id,image_id,label\n1,d,dog\n",
        "sample_submission.csv": b"id,label\n",
        **below("train_images", {name: PICTURES[name] for name in TRAIN}),
        "valid/d.png": PICTURES["d.png"],
    },
    "csv of ids, named as labels": {
        "trainLabels.csv": b"id,label\na,cat\nb,dog\nc,cat\n",
        "val_labels.csv": b"id,label\nd,dog\n",
        **below("train", {name: PICTURES[name] for name in TRAIN}),
        **below("val", PICTURES),
    },
    "tsv": {"train.tsv": separated("\t", TRAIN), "dev.tsv": separated("\t", VALID), **PICTURES},
    "jsonl": {"train.jsonl": json_lines(TRAIN), "dev.jsonl": json_lines(VALID), **PICTURES},
    "metadata in folders": {
        "train/metadata.csv": separated(",", TRAIN),
        "validation/metadata.jsonl": json_lines(VALID),
        **below("train", PICTURES),
        **below("validation", PICTURES),
    },
    "coco": {
        "annotations/instances_train2017.json": instances(TRAIN),
        "annotations/instances_val2017.json": instances(VALID),
        "annotations/captions_train2017.json": b"{}",
        **below("train2017", PICTURES),
        **below("val2017", PICTURES),
    },
    "coco, Roboflow": {
        "train/_annotations.coco.json": instances(TRAIN),
        "valid/_annotations.coco.json": instances(VALID),
        **below("train", PICTURES),
        **below("valid", PICTURES),
    },
    "a column of splits": {
        "labels.csv": b"split,image,label\ntrain,a.png,cat\ntrain,b.png,dog\nval,d.png,dog\n"
        b"Training,c.png,cat\n",
        **PICTURES,
    },
    "parquet, paths": {
        "train.parquet": table(path=list(TRAIN), label=["cat", "dog", "cat"]),
        "valid.parquet": table(path=["d.png"], label=["dog"]),
        **PICTURES,
    },
    "parquet, bytes": {
        "train.parquet": table(img=[PICTURES[n] for n in TRAIN], y=["cat", "dog", "cat"]),
        "valid.parquet": table(img=[PICTURES["d.png"]], y=["dog"]),
    },
    "parquet, Hugging Face": {
        "data/train-00000-of-00002.parquet": hugging_face([PICTURES["a.png"]], [0]),
        "data/train-00001-of-00002.parquet": hugging_face(
            [PICTURES["b.png"], PICTURES["c.png"]], [1, 0]
        ),
        "data/validation-00000-of-00001-0f0f.parquet": hugging_face([PICTURES["d.png"]], [1]),
        "README.md": b"",
    },
    "saved to disk": {
        "dataset_dict.json": b'{"splits": ["train", "validation"]}',
        **below("train", saved_to_disk([PICTURES[n] for n in TRAIN], [0, 1, 0])),
        **below("validation", saved_to_disk([PICTURES["d.png"]], [1])),
    },
}
UNPACKED = ("parquet", "saved")  # what is not read out of an archive


def refusal(read: Callable[[], object]) -> str:
    with pytest.raises(DataError) as caught:
        read()
    return str(caught.value)


def check(read: Any, labels: Mapping[str, list[str]]) -> None:
    """The bytes and the labels of every image, also after a journey to another process."""
    assert sorted((row.image.read(), row.extras["labels"]) for row in read.rows) == sorted(
        (PICTURES[name], tuple(found)) for name, found in labels.items()
    )
    there = pickle.loads(pickle.dumps(read.rows))
    assert there == read.rows
    for row, other in zip(reversed(read.rows), reversed(there)):  # in any order
        assert row.image.read() == other.image.read()
    places = {(row.image.name, row.image.size, row.image.stamp, row.image.offset) for row in there}
    assert len(places) == len(labels)


@pytest.mark.parametrize("pack", PACK)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same_rows(layout: str, pack: str, tmp_path: Path) -> None:
    if layout == "csv, named from above" and pack != "folder":
        pytest.skip("the name of the folder is that of an archive")
    data = PACK[pack](tmp_path, LAYOUTS[layout])
    if layout.startswith(UNPACKED) and not pack.startswith("folder"):
        assert "unpack it" in refusal(lambda: read_labelled(data, "train"))
        return
    assert label_splits(data) == ["train", "valid"]
    read = read_labelled(data, "train")
    check(read, TRAIN)
    check(read_labelled(data, "valid"), VALID)
    assert class_names(read) == ["cat", "dog"]
    assert read.summary().startswith("3 images of 2 classes from ")
    assert refusal(lambda: read_labelled(data, "test"))


@pytest.mark.parametrize("pack", PACK)
def test_folders_of_classes_without_splits_are_all_train(pack: str, tmp_path: Path) -> None:
    """Also if one ends as a split does, and a file of notes lies beside them."""
    files = {"bullet_train/a.png": PICTURES["a.png"], "cat/b.png": PICTURES["b.png"]}
    data = PACK[pack](tmp_path, {**files, "notes.csv": b"a,b\n"})
    assert label_splits(data) == ["train"]
    check(read_labelled(data, "train"), {"a.png": ["bullet_train"], "b.png": ["cat"]})
    assert "so it is all train" in refusal(lambda: read_labelled(data, "valid"))


SINGLE = {
    "x.csv": separated(",", TRAIN),
    "x.tsv": separated("\t", TRAIN),
    "x.jsonl": json_lines(TRAIN, "category"),
    "x.json": instances(TRAIN),
    "annotations/instances_train2017.json": instances(TRAIN),
    "x.parquet": hugging_face([PICTURES[name] for name in TRAIN], [0, 1, 0]),
    "x.arrow": saved_to_disk([PICTURES[name] for name in TRAIN], [0, 1, 0])["data.arrow"],
}


@pytest.mark.parametrize("name", SINGLE)
def test_a_single_file_is_all_train(name: str, tmp_path: Path) -> None:
    in_folder(tmp_path, {name: SINGLE[name], **PICTURES})
    assert label_splits(tmp_path / name) == ["train"]
    check(read_labelled(tmp_path / name, "train"), TRAIN)
    assert "so it is all train" in refusal(lambda: read_labelled(tmp_path / name, "valid"))


@pytest.mark.parametrize("name", ["labels.csv", "metadata.jsonl", "only.csv"])
def test_one_table_for_a_folder_of_images(name: str, tmp_path: Path) -> None:
    said = separated(",", TRAIN) if name.endswith("csv") else json_lines(TRAIN)
    data = in_folder(tmp_path, {name: said, **below("train", PICTURES), "test/x.png": picture(9)})
    assert label_splits(data) == ["train"]
    check(read_labelled(data, "train"), TRAIN)


SEVERAL = {
    "x.csv": b'image,labels\na.png,dog|cat|dog\nb.png,"[""cat"", 3]"\nc.png,x;y z\n',
    "x.jsonl": rows(
        {"image": "a.png", "labels": ["dog", "cat", "dog"]},
        {"image": "b.png", "labels": ["cat", 3]},
        {"image": "c.png", "labels": "x;y z"},
        {"image": "d.png", "labels": []},
    ),
    "x.parquet": table(
        image=[f"{name}.png" for name in "abcd"],
        labels=[["dog", "cat", "dog"], ["cat", "3"], ["x;y z"], []],
    ),
    "x.json": instances(
        {"a.png": ["dog", "cat", "dog"], "b.png": ["cat", "3"], "c.png": ["x;y z"], "d.png": []}
    ),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_an_image_may_have_several_labels_or_none(name: str, tmp_path: Path) -> None:
    in_folder(tmp_path, {name: SEVERAL[name], **PICTURES})
    read = read_labelled(tmp_path / name, "train")
    labels = [row.extras["labels"] for row in read.rows]
    assert labels == [("cat", "dog"), ("3", "cat"), ("x;y z",), ()][: len(labels)]
    assert read.labels == ["3", "cat", "dog", "x;y z"]


def test_the_user_says_what_columns_are_called_and_what_is_between_labels(tmp_path: Path) -> None:
    raw = b"label,Kind,which\n0,haze clear,a.png\n1,clear,b.png\n"
    in_folder(tmp_path, {"x.csv": raw, **PICTURES})
    told = refusal(lambda: read_labelled(tmp_path / "x.csv", "train"))
    assert "has no column for the image in its first line; it has 'label', 'Kind', 'which'" in told
    assert "--image-column" in told
    columns = LabelColumns(image="which", label="Kind", separator=" ")
    read = read_labelled(tmp_path / "x.csv", "train", columns=columns)
    assert [row.extras["labels"] for row in read.rows] == [("clear", "haze"), ("clear",)]
    columns = LabelColumns(image="which", label="lost")
    told = refusal(lambda: read_labelled(tmp_path / "x.csv", "train", columns=columns))
    assert "has no column 'lost'" in told


def test_classes_are_in_natural_order(tmp_path: Path) -> None:
    labels = ["10", "9", "a10", "a9", "a", "A1b2", "A1b10", "007", "7", "9" * 5000, "é"]
    raw = rows(*({"image": f"{n}.png", "label": label} for n, label in enumerate(labels)))
    pictures = {f"{n}.png": b"" for n in range(len(labels))}
    read = read_labelled(in_folder(tmp_path, {"train.jsonl": raw, **pictures}), "train")
    ordered = ["007", "7", "9", "10", "9" * 5000, "A1b2", "A1b10", "a", "a9", "a10", "é"]
    assert class_names(read) == class_names(read, read) == ordered


NUMBERS = [(3, "3"), (3.0, "3"), (2.5, "2.5"), (True, "true"), (" x ", "x"), (10**20, f"{10**20}")]


@pytest.mark.parametrize(("value", "label"), NUMBERS)
def test_a_number_becomes_its_decimal_string(value: object, label: str, tmp_path: Path) -> None:
    raw = rows({"image": "a.png", "label": value})
    read = read_labelled(in_folder(tmp_path, {"train.jsonl": raw, **PICTURES}), "train")
    assert read.rows[0].extras == {"labels": (label,)}


REFUSED: dict[str, tuple[dict[str, bytes], str, str]] = {
    "images without classes": (PICTURES, "", "has no folder for a class; put each image into"),
    "a split without classes": (
        below("train/images", PICTURES),
        "",
        "train has no folder for a class; put each image into a folder named as its class",
    ),
    "splits below classes": (
        {f"cat/{split}/a.png": b"" for split in ("train", "test")} | {"dog/a.png": b""},
        "",
        "cat has train and test in it; put splits above classes, as train/cat",
    ),
    "an image": (PICTURES, "a.png", "images with classes are read from a folder, .tar, .zip"),
    "nothing": ({}, "lost", "lost does not exist; check the path"),
    "no file": ({}, "lost.csv", "lost.csv does not exist; check the path"),
    "packed": ({"x.tar.gz": b""}, "x.tar.gz", "is compressed as a whole"),
    "no header": ({"train.csv": b"a.png,cat\n"}, "", "has a row where the columns should be named"),
    "a column twice": (
        {"train.csv": b"image,label,label\na.png,cat,3\n"},
        "",
        "train.csv has 2 columns 'label'; give each a name of its own",
    ),
    "an empty table": ({"train.csv": b""}, "", "train.csv is empty"),
    "only a header": ({"train.csv": b"image,label\n"}, "", "train.csv: no rows at all"),
    "not text": ({"train.csv": b"\xff\xfe\n"}, "", "train.csv:1: not UTF-8"),
    "two tables": (
        {"a.csv": b"", "b.csv": b""},
        "",
        "has a.csv, b.csv; give the one with the labels as the data",
    ),
    "two for a split": (
        {"train.csv": b"", "train.tsv": b""},
        "",
        "has train.csv, train.tsv for one split; keep one of them",
    ),
    "captions": ({"train.json": b'{"images": [], "annotations": []}'}, "", "no list 'categories'"),
    "no objects": ({"train.jsonl": b"[]\n3\n"}, "", "no line of it is an object"),
    "no Parquet": ({"train.parquet": b"PAR1"}, "", "train.parquet is not a whole Parquet file"),
    "no Arrow": ({"x.arrow": b"ARROW1"}, "x.arrow", "x.arrow is not a whole Arrow stream"),
    "empty Arrow": ({"x.arrow": b""}, "x.arrow", "x.arrow is"),
    "no state": ({"state.json": b"{}"}, "", "does not name the files of a dataset"),
    "state leads out": (
        {"state.json": json.dumps({"_data_files": [{"filename": "../x.arrow"}]}).encode()},
        "",
        "outside the data",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_not_images_with_classes_is_refused_in_one_line(what: str, tmp_path: Path) -> None:
    files, name, told = REFUSED[what]
    data = in_folder(tmp_path, files) / name
    found = refusal(lambda: read_labelled(data, "train"))
    assert told in found
    assert "\n" not in found
