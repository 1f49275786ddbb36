"""Captions in tables, one to a row."""

from collections.abc import Callable
from pathlib import Path

import pytest

from saccade.data.readers import image_splits, read_images
from tests.data.images_made import CAPTIONS, PICTURES, below, in_folder, rows, table
from tests.data.readers.images.test_read import PACK, check, refusal


@pytest.mark.parametrize("pack", PACK, ids=["folder", "tar", "zip", "tar/mine", "zip/mine"])
def test_flickrs_own_files_say_the_split_of_each_image(
    tmp_path: Path, pack: Callable[[Path, dict[str, bytes]], Path]
) -> None:
    said = [f"{name}#{n}\t{s}\n" for name, two in CAPTIONS.items() for n, s in enumerate(two)]
    token = "".join([*said, "lost.jpg.1#0\tin no list\n"]).encode()
    files = {
        "Flickr8k.token.txt": token,
        "Flickr_8k.trainImages.txt": b"a.png\nc.png\n",
        "Flickr_8k.devImages.txt": b"b.png\n",
        **below("Flicker8k_Dataset", PICTURES),
    }
    data = pack(tmp_path, files)
    assert image_splits(data) == ["train", "valid"]
    check(read_images(data, "train"), "a.png", "c.png")
    check(read_images(data, "valid"), "b.png")
    assert "has no 'test': the lists beside it are of train, valid" in refusal(
        lambda: read_images(data, "test")
    )


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("captions.txt", "image,caption"),
        ("captions.csv", "Filename;Caption"),
        ("mine.tsv", "image\tcaption"),
        ("results.csv", "image_name| comment"),
    ],
)
def test_a_table_of_captions_is_all_train_and_puts_rows_of_an_image_together(
    tmp_path: Path, name: str, first: str
) -> None:
    data = in_folder(tmp_path, {name: table(*CAPTIONS, first=first), **below("any", PICTURES)})
    for given in (data, data / name):
        assert image_splits(given) == ["train"]
        check(read_images(given, "train"), *CAPTIONS)
        assert "named after no split" in refusal(lambda given=given: read_images(given, "valid"))


def test_bad_rows_of_a_table_of_captions(tmp_path: Path) -> None:
    said = b"image,caption\na.png,A dog .\na.png,One dog .\na.png, \nlost.png,A hen .\nb.png\n"
    data = in_folder(tmp_path, {"captions.csv": said, **PICTURES})
    read = read_images(data, "train", skip_bad=3)
    check(read, "a.png")
    told = [(problem.line, problem.reason.partition(":")[0]) for problem in read.problems]
    assert told == [(4, "empty"), (5, "missing image"), (6, "not 2 columns")]
    for header in (b"image,label\n", b"words,caption\n"):
        (data / "captions.csv").write_bytes(header + b"a.png,x\n")
        assert "name the columns there, as image and caption" in refusal(
            lambda: read_images(data, "train")
        )


def test_json_lines_may_name_the_file_in_other_ways(tmp_path: Path) -> None:
    for key in ("image", "filename", "file", "path"):
        said = rows({key: "a.png", "captions": CAPTIONS["a.png"]})
        data = in_folder(tmp_path / key, {"train.jsonl": said, **PICTURES})
        check(read_images(data, "train"), "a.png")
