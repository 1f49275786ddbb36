"""Captions in a text beside each image, in a folder or a .zip."""

from collections.abc import Callable
from pathlib import Path

import pytest

from saccade.data.readers import image_splits, read_images
from saccade.data.readers.images.plain import read_plain_images
from saccade.errors import DataError
from tests.data.images_made import CAPTIONS, PICTURES, Files, below, in_folder, in_zip
from tests.data.readers.images.test_read import check

SAID: dict[str, bytes] = {
    f"{name[:-4]}.txt": "\n".join([*said, "", ""]).encode() for name, said in CAPTIONS.items()
}
LAYOUTS: dict[str, Files] = {
    "beside": {**PICTURES, **SAID, "README.txt": b"mine", "classes.txt": b"dog"},
    "from Windows": {
        **PICTURES,
        **{n: b"\xef\xbb\xbf" + raw.replace(b"\n", b"\r\n") for n, raw in SAID.items()},
    },
    "in a folder": {**below("10_dogs", {**PICTURES, **SAID}), "sample.json": b"{}"},
    "of another ending": {**PICTURES, **{f"{n[:-4]}.caption": raw for n, raw in SAID.items()}},
    "in folders": {**below("images", PICTURES), **below("captions", SAID)},
    "in splits": {
        **below("train", {**PICTURES, **SAID}),
        **below("val", {"b.png": PICTURES["b.png"], "b.txt": SAID["b.txt"]}),
    },
    "in splits below": {
        **below("Images/train", PICTURES),
        **below("text/train", SAID),
        "Images/val/b.png": PICTURES["b.png"],
        "text/val/b.txt": SAID["b.txt"],
    },
}


@pytest.mark.parametrize("pack", [in_folder, lambda root, files: in_zip(root / "x.zip", files)])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_line_of_the_text_is_a_caption(
    layout: str, pack: Callable[[Path, Files], Path], tmp_path: Path
) -> None:
    data = pack(tmp_path, LAYOUTS[layout])
    check(read_images(data, "train"), *CAPTIONS)
    splits = ["train", "valid"] if "splits" in layout else ["train"]
    assert image_splits(data) == splits
    if "valid" in splits:
        check(read_images(data, "valid"), "b.png")


def test_what_does_not_go_together_is_a_bad_row(tmp_path: Path) -> None:
    files = {
        **PICTURES,
        "a.txt": b"A dog .",
        "a.jpg": PICTURES["a.png"],
        "b.txt": b" \n",
        "lost.txt": b"A cow .",
        "latin.png": PICTURES["a.png"],
        "latin.txt": b"caf\xe9",
    }
    read = read_images(in_folder(tmp_path, files), "train", skip_bad=5)
    assert [row.captions for row in read.rows] == [("A dog .",)]
    assert [(Path(p.file).name, p.reason.partition(";")[0]) for p in read.problems] == [
        ("a.txt", "duplicate image: 'a.jpg' has the same text"),
        ("b.txt", "empty: 'the text' holds nothing, or a caption of nothing"),
        ("c.png", "no caption: no c.txt beside it"),
        ("latin.txt", "not UTF-8: byte 0xe9 at offset 3 of the line"),
        ("lost.txt", "missing image: no lost.jpg or the like goes with it"),
    ]


def test_boxes_of_yolo_are_no_captions(tmp_path: Path) -> None:
    texts = {f"{name[:-4]}.txt": b"0 .5 .5 .1 .1\n" for name in PICTURES}
    data = in_folder(tmp_path, {**PICTURES, **texts})
    with pytest.raises(DataError) as raised:
        read_images(data, "train")
    assert str(raised.value) == (
        f"{data} has numbers in the texts beside its images, as YOLO has boxes (a.txt); write "
        "captions there, or train a detector, such as detr"
    )
    assert len(read_plain_images(data, "train").rows) == len(PICTURES)


def test_a_file_that_names_images_goes_before_texts(tmp_path: Path) -> None:
    table = b"image,caption\na.png,Said here .\n"
    data = in_folder(tmp_path, {**PICTURES, **SAID, "captions.csv": table})
    assert [row.captions for row in read_images(data, "train").rows] == [("Said here .",)]
