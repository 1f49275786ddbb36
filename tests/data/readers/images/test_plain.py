"""Images alone: whatever lies around them, the same ones come out, and splits are kept apart."""

from pathlib import Path

import pytest

from saccade.data.readers.images.named import named_images
from saccade.data.readers.images.plain import plain_image_splits, read_plain_images
from saccade.errors import DataError
from tests.data.images_made import (
    PICTURES,
    Files,
    below,
    coco,
    in_folder,
    in_tar,
    in_zip,
    karpathy,
    metadata,
    rows,
)

ALL = ["a.png", "b.png", "c.png"]
LAYOUTS: dict[str, Files] = {
    "plain": PICTURES,
    "classes": {f"class {n}/{name}": raw for n, (name, raw) in enumerate(PICTURES.items())},
    "one folder in another": below("data/images", PICTURES),
    "captions": {"metadata.jsonl": metadata(*ALL), **PICTURES},
    "COCO": {"annotations/captions_train2017.json": coco(*ALL), **below("train2017", PICTURES)},
    "rows without captions": {
        "train.jsonl": rows(*({"image": name, "label": 1} for name in (*ALL, "a.png"))),
        **PICTURES,
    },
    "notes beside them": {"notes.txt": b"hello", "info.json": b"{", **PICTURES},
    "train": {**below("train", PICTURES), "test/d.png": PICTURES["a.png"]},
}


def names(data: Path, split: str = "train") -> list[str]:
    return sorted(Path(row.image.name).name for row in read_plain_images(data, split).rows)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_image_is_found_once(layout: str, tmp_path: Path) -> None:
    files = LAYOUTS[layout]
    for data in (
        in_folder(tmp_path / "folder", files),
        in_tar(tmp_path / "packed.tar", files),
        in_zip(tmp_path / "packed.zip", files),
    ):
        assert names(data) == ALL


def test_an_image_of_a_form_that_is_not_read_is_not_passed_over(tmp_path: Path) -> None:
    """Whoever decodes it says why; here it is a row, and of a folder that is named it is one."""
    data = in_folder(tmp_path, {**PICTURES, "d.heic": b"x", "e/f.AVIF": b"x", "notes.txt": b"x"})
    assert names(data) == [*ALL, "d.heic", "f.AVIF"]
    assert len(list(named_images([str(data)]))) == len(ALL) + 2


def test_splits_are_what_folders_and_files_are_named_after(tmp_path: Path) -> None:
    folders = in_folder(
        tmp_path / "folders", {**below("train", PICTURES), "val/b.png": PICTURES["b.png"]}
    )
    assert plain_image_splits(folders) == ["train", "valid"]
    assert names(folders, "valid") == ["b.png"]
    splits = {"a.png": "train", "b.png": "val", "c.png": "restval"}
    named = in_folder(
        tmp_path / "named", {"dataset_some.json": karpathy(splits), **below("val2014", PICTURES)}
    )
    assert plain_image_splits(named) == ["train", "valid"]
    assert (names(named), names(named, "valid")) == (["a.png", "c.png"], ["b.png"])
    plain = in_folder(tmp_path / "plain", PICTURES)
    assert plain_image_splits(plain) == ["train"]


def test_years_and_a_folder_above_are_no_part_of_a_split(tmp_path: Path) -> None:
    for name, above in (("coco", ""), ("yolo", "images/")):
        files = {f"{above}train2014/a.png": PICTURES["a.png"], "labels/val2014/a.txt": b""}
        data = in_folder(tmp_path / name, {f"{above}val2014/b.png": PICTURES["b.png"], **files})
        assert plain_image_splits(data) == ["train", "valid"]
        assert (names(data), names(data, "valid")) == (["a.png"], ["b.png"])


def test_a_split_that_is_not_there_is_told(tmp_path: Path) -> None:
    data = in_folder(tmp_path / "photos", PICTURES)
    with pytest.raises(DataError, match=r"has no 'test' split of images: no folder test; it holds"):
        read_plain_images(data, "test")


def test_a_folder_without_images_is_told(tmp_path: Path) -> None:
    data = in_folder(tmp_path / "notes", {"a.txt": b"nothing"})
    with pytest.raises(DataError, match="holds no image: no name in it ends in "):
        read_plain_images(data, "train")


def test_links_that_lead_out_or_nowhere_are_bad_rows(tmp_path: Path) -> None:
    data = in_folder(tmp_path / "photos", PICTURES)
    (tmp_path / "secret.png").write_bytes(PICTURES["a.png"])
    (data / "out.png").symlink_to(tmp_path / "secret.png")
    (data / "lost.png").symlink_to(data / "none.png")
    with pytest.raises(DataError, match=r"2 bad rows .*1 missing image.*1 outside the data"):
        read_plain_images(data, "train")
    assert len(read_plain_images(data, "train", skip_bad=2).rows) == 3
