"""However captioned images lie, the same rows come out, and nothing outside is read."""

import gzip
import json
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from saccade.data.images.cache import CacheSettings
from saccade.data.images.decode import decode
from saccade.data.readers import (
    ImagesRead,
    Problem,
    image_splits,
    read_images,
)
from saccade.data.readers.images.cached import cached_images
from saccade.errors import DataError
from tests.data.images_made import (
    CAPTIONS,
    PICTURES,
    below,
    coco,
    in_folder,
    in_tar,
    in_zip,
    karpathy,
    metadata,
    picture,
    rows,
    table,
)

VALID = {"b.png": PICTURES["b.png"]}
LAYOUTS = {
    "split folders": {
        "train/metadata.jsonl": metadata(*CAPTIONS),
        "valid/metadata.jsonl": metadata("b.png"),
        **below("train", PICTURES),
        **below("valid", VALID),
    },
    "split files": {
        "train.jsonl": metadata(*CAPTIONS),
        "dev.jsonl": metadata("b.png"),
        **PICTURES,
    },
    "split files, images in a folder": {
        "train.jsonl": metadata(*CAPTIONS),
        "dev.jsonl": metadata("b.png"),
        **below("images", PICTURES),
    },
    "coco": {
        "annotations/captions_train2017.json": coco(*CAPTIONS),
        "annotations/captions_val2017.json": coco("b.png"),
        "annotations/instances_train2017.json": b"{}",
        **below("train2017", PICTURES),
        **below("val2017", VALID),
    },
    "metadata.csv": {
        "train/metadata.csv": table(*CAPTIONS, first="file_name,text"),
        "valid/metadata.csv": table("b.png", first="file_name,text"),
        **below("train", PICTURES),
        **below("valid", VALID),
    },
    "csv": {
        "train.csv": table(*CAPTIONS, first="image,caption"),
        "val.csv": table("b.png", first="image,caption"),
        **below("Images", PICTURES),
    },
    "coco, flat": {"train.json": coco(*CAPTIONS), "val.json": coco("b.png"), **PICTURES},
}
KARPATHY = {"a.png": "train", "b.png": "val", "c.png": "restval"}
PACK: list[Callable[[Path, dict[str, bytes]], Path]] = [
    lambda root, files: in_folder(root / "data", files),
    lambda root, files: in_tar(root / "data.tar", files),
    lambda root, files: in_zip(root / "data.zip", files),
    lambda root, files: in_tar(root / "data.tar", below("./mine", files)),
    lambda root, files: in_zip(root / "data.zip", below("mine", files)),
]


def refusal(read: Callable[[], object]) -> str:
    with pytest.raises(DataError) as caught:
        read()
    return str(caught.value)


def check(read: ImagesRead, *names: str) -> None:
    """Each row has the bytes and the captions of its image, also after a journey."""
    assert [row.captions for row in read.rows] == [tuple(CAPTIONS[name]) for name in names]
    assert [row.image.read() for row in read.rows] == [PICTURES[name] for name in names]
    assert pickle.loads(pickle.dumps(read.rows)) == read.rows


@pytest.mark.parametrize("pack", PACK, ids=["folder", "tar", "zip", "tar/mine", "zip/mine"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_in_every_package_gives_the_same_rows(
    tmp_path: Path, layout: str, pack: Callable[[Path, dict[str, bytes]], Path]
) -> None:
    data = pack(tmp_path, LAYOUTS[layout])
    assert image_splits(data) == ["train", "valid"]
    check(read_images(data, "train"), *CAPTIONS)
    check(read_images(data, "valid"), "b.png")
    assert "has no 'test' split" in refusal(lambda: read_images(data, "test"))


COCO = "annotations/captions_train2017.json"


@pytest.mark.parametrize(
    "where", ["", "images", "train2017", "images/train2017", "annotations", "annotations/images"]
)
@pytest.mark.parametrize("inside", [True, False])
def test_cocos_file_finds_the_images_beside_its_folder(
    tmp_path: Path, where: str, inside: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pictures = below(where, PICTURES) if where else PICTURES
    data = in_folder(tmp_path / "coco", {COCO: coco(*CAPTIONS), **pictures})
    monkeypatch.chdir(data / "annotations" if inside else tmp_path)
    given = Path(Path(COCO).name) if inside else Path("coco") / COCO
    check(read_images(given, "train"), *CAPTIONS)


def test_all_that_is_bad_is_told_at_once(tmp_path: Path) -> None:
    names = rows(*({"file_name": name, "text": "a dog"} for name in ("a.png", "b.png", "lost.png")))
    files = {"train.jsonl": names, "a.png": PICTURES["a.png"], "b.png": b"no image"}
    data = in_folder(tmp_path / "data", files)
    (tmp_path / "cache").mkdir()

    def read(skip_bad: int) -> ImagesRead:
        found = read_images(data, "train", skip_bad=3)
        how = {"settings": CacheSettings(size=8, fit="crop"), "skip_bad": skip_bad}
        return cached_images(found, tmp_path / "cache", **how)[0]

    told = refusal(lambda: read(1))
    assert "2 bad rows" in told
    assert "train.jsonl:2: no image" in told
    assert "train.jsonl:3: missing image: 'lost.png'" in told
    assert "--skip-bad 2" in told
    assert len(read(2).rows) == 1
    assert sum(read(2).skipped.values()) == 2


@pytest.mark.parametrize("pack", PACK[:3])
def test_karpathys_file_says_the_split_of_each_image(
    tmp_path: Path, pack: Callable[[Path, dict[str, bytes]], Path]
) -> None:
    files = {"dataset_coco.json": karpathy(KARPATHY), **below("val2014", PICTURES)}
    data = pack(tmp_path, files)
    assert image_splits(data) == ["train", "valid"]
    check(read_images(data, "train"), "a.png", "c.png")
    check(read_images(data, "valid"), "b.png")
    assert "no rows at all" in refusal(lambda: read_images(data, "test"))
    assert read_images(data, "valid").rows[0].extras == {"imgid": 1}


@pytest.mark.parametrize("packed", [in_tar, in_zip])
def test_images_may_lie_in_an_archive_beside_their_captions(
    tmp_path: Path, packed: Callable[[Path, dict[str, bytes]], Path]
) -> None:
    in_folder(tmp_path, {"train.jsonl": metadata(*CAPTIONS), "dev.jsonl": metadata("b.png")})
    archive = packed(tmp_path / f"images.{packed.__name__[3:]}", PICTURES)
    check(read_images(tmp_path, "train"), *CAPTIONS)
    check(read_images(tmp_path / "train.jsonl", "train"), *CAPTIONS)
    told = read_images(tmp_path, "train").summary()
    assert told == f"3 images with 4 captions from train.jsonl + {archive.name}"


def test_an_archive_that_is_a_link_out_of_the_data_is_not_read(tmp_path: Path) -> None:
    in_tar(tmp_path / "secret.tar", PICTURES)
    in_folder(tmp_path / "data", {"train.jsonl": metadata(*CAPTIONS)})
    (tmp_path / "data" / "images.tar").symlink_to(tmp_path / "secret.tar")
    told = refusal(lambda: read_images(tmp_path / "data", "train"))
    assert "3 bad rows (3 outside the data)" in told


def test_a_single_file_is_all_train(tmp_path: Path) -> None:
    files = {"x.jsonl": metadata(*CAPTIONS), "y.json": coco(*CAPTIONS), **PICTURES}
    in_folder(tmp_path, {**files, "z.jsonl.gz": gzip.compress(files["x.jsonl"])})
    for name in ("x.jsonl", "y.json", "z.jsonl.gz"):
        check(read_images(tmp_path / name, "train"), *CAPTIONS)
        assert image_splits(tmp_path / name) == ["train"]
        told = refusal(lambda name=name: read_images(tmp_path / name, "valid"))
        assert "is named after no split, so it is all train: there is no 'valid' in it" in told


@pytest.mark.parametrize("name", ["metadata.jsonl", "coco.json"])
def test_one_file_for_a_whole_folder_is_never_two_splits(tmp_path: Path, name: str) -> None:
    said = metadata(*CAPTIONS) if name == "metadata.jsonl" else coco(*CAPTIONS)
    in_folder(tmp_path, {name: said, **PICTURES})
    assert image_splits(tmp_path) == ["train"]
    check(read_images(tmp_path, "train"), *CAPTIONS)
    assert "so it is all train" in refusal(lambda: read_images(tmp_path, "test"))


def test_two_files_for_a_split_are_refused(tmp_path: Path) -> None:
    in_folder(tmp_path, {"train.jsonl": b"x", "train.json": b"x", "train/metadata.jsonl": b"x"})
    told = refusal(lambda: read_images(tmp_path, "train"))
    assert "has train/metadata.jsonl, train.json, train.jsonl for one split" in told
    (tmp_path / "my_dev.json").write_bytes(b"x")
    (tmp_path / "your_dev.json").write_bytes(b"x")
    assert "several files for 'valid': my_dev, your_dev" in refusal(
        lambda: read_images(tmp_path, "valid")
    )


def test_other_columns_come_along_and_masks_are_found(tmp_path: Path) -> None:
    row = {"file_name": "a.png", "text": "A dog .", "boxes": [[0, 0, 1, 1]], "label": ["x"]}
    files = {"metadata.jsonl": rows({**row, "mask_file_name": "masks/a.png"})}
    in_folder(tmp_path, {**files, "a.png": picture(1), "masks/a.png": picture(2)})
    found = read_images(tmp_path, "train").rows[0]
    mask = found.extras.pop("mask_file_name")
    assert mask.read() == picture(2)
    assert found.extras == {"boxes": [[0, 0, 1, 1]], "label": ["x"]}
    assert found.captions == ("A dog .",)
    assert decode(found.image).shape == (3, 8, 8)


BAD_ROWS = [
    ({"captions": ["x"]}, "missing key: no 'file_name'; it has 'captions'"),
    (
        {"file_name": "a.png", "x": 1},
        "missing key: no 'captions', 'caption' or 'text'; it has 'file_name', 'x'",
    ),
    ({"file_name": 3, "text": "x"}, "wrong type: 'file_name' is a number, not a string"),
    (
        {"file_name": "a.png", "text": {}},
        "wrong type: 'text' is an object, not a string or a list of them",
    ),
    (
        {"file_name": "a.png", "captions": [1]},
        "wrong type: 'captions' is a number, not a string",
    ),
    (
        {"file_name": "a.png", "captions": []},
        "empty: 'captions' holds nothing, or a caption of nothing",
    ),
    (
        {"file_name": "a.png", "captions": ["x", " "]},
        "empty: 'captions' holds nothing, or a caption of nothing",
    ),
    (
        {"file_name": "z.png", "text": "x"},
        "missing image: 'z.png' is not in {root}",
    ),
    (
        {"file_name": "b.png", "text": "x"},
        "duplicate file_name: 'b.png' was on row 1; put all captions of an image in one list",
    ),
    (["a"], "wrong type: the row is a list, not an object with keys"),
    ({"file_name": "sub", "text": "x"}, "not a file: 'sub' is a folder or a device"),
]


def test_bad_rows_are_named_and_the_good_ones_stay(tmp_path: Path) -> None:
    said = [{"file_name": "b.png", "text": "x"}, *(row for row, _ in BAD_ROWS)]
    in_folder(tmp_path, {"train.jsonl": rows(*said) + b"{\n", "b.png": b"", "a.png": b""})
    (tmp_path / "sub").mkdir()
    read = read_images(tmp_path, "train", skip_bad=12)
    file = str(tmp_path / "train.jsonl")
    reasons = [reason.replace("{root}", str(tmp_path)) for _, reason in BAD_ROWS]
    assert read.problems[:-1] == [Problem(file, n, why) for n, why in enumerate(reasons, start=2)]
    assert read.problems[-1].reason.startswith("not JSON: ")
    assert len(read.rows) == 1
    assert "12 bad rows" in refusal(lambda: read_images(tmp_path, "train", skip_bad=11))
    assert read.summary().startswith("1 image with 1 caption from train.jsonl; 12 bad rows skipped")


def test_nothing_outside_the_data_is_read(tmp_path: Path) -> None:
    (tmp_path / "secret.png").write_bytes(picture(9))
    data = tmp_path / "data"
    in_folder(data, {"a.png": picture(1), "deep/b.png": picture(2)})
    (data / "link.png").symlink_to(tmp_path / "secret.png")
    (data / "up").symlink_to(tmp_path)
    (data / "inside.png").symlink_to(data / "deep" / "b.png")
    names = [
        "../secret.png",
        str(tmp_path / "secret.png"),
        "link.png",
        "up/secret.png",
        "a/../a.png",
    ]
    names += ["C:\\secret.png", "..\\secret.png", "", "a\0b"]
    said = [{"file_name": name, "text": "x"} for name in ["inside.png", *names]]
    (data / "train.jsonl").write_bytes(rows(*said))
    read = read_images(data, "train", skip_bad=len(names))
    assert [row.image.read() for row in read.rows] == [picture(2)]
    assert [problem.line for problem in read.problems] == list(range(2, 2 + len(names)))
    assert read.skipped == {"outside the data": len(names) - 1, "NUL character": 1}


FAULTY = {
    "images": [
        {"id": 1, "file_name": "a.png"},
        {"id": 1, "file_name": "b.png"},
        {"id": 2, "file_name": "b.png"},
        {"file_name": "b.png"},
        {"id": True, "file_name": "b.png"},
        {"id": 3},
        {"id": 4, "file_name": "../b.png"},
        {"id": 5, "file_name": "a.png"},
        7,
    ],
    "annotations": [
        *({"id": n, "image_id": n, "caption": "x"} for n in (1, 3, 4, 5)),
        {"id": 6, "image_id": 99, "caption": "x"},
        {"id": 7, "image_id": 1, "caption": " "},
        {"id": 8, "image_id": 1},
        {"id": 1, "image_id": 1, "caption": "y"},
        {"id": 9, "image_id": float("nan"), "caption": "y"},
    ],
}


def test_faults_of_coco_are_told_by_list_and_place(tmp_path: Path) -> None:
    in_folder(tmp_path, {"train.json": json.dumps(FAULTY).encode(), "a.png": b"", "b.png": b""})
    read = read_images(tmp_path, "train", skip_bad=99)
    assert [(row.captions, row.extras) for row in read.rows] == [(("x",), {"id": 1})]
    found = [(p.file.rpartition("#")[2], p.line, p.reason.partition(":")[0]) for p in read.problems]
    assert found == [
        ("annotations", 5, "no such image"),
        ("annotations", 6, "empty"),
        ("annotations", 7, "missing key"),
        ("annotations", 8, "duplicate id"),
        ("annotations", 9, "wrong type"),
        ("images", 2, "duplicate id"),
        ("images", 3, "no caption"),
        ("images", 4, "missing key"),
        ("images", 5, "wrong type"),
        ("images", 6, "missing key"),
        ("images", 7, "outside the data"),
        ("images", 8, "duplicate file_name"),
        ("images", 9, "wrong type"),
    ]


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (b"[]", "is a list, not COCO; write it as JSON Lines"),
        (b"{", "is not COCO: not JSON: "),
        (b'{"\xff": 1}', "is not UTF-8: at byte 2"),
        (b'{"annotations": []}', "no list 'images' in it; it has 'annotations'"),
        (b'{"images": []}', "neither a list 'annotations', nor 'sentences'"),
        (b'{"images": [], "annotations": []}', "no rows at all"),
        (b"", "is empty"),
    ],
)
def test_a_file_that_is_not_coco_is_refused(tmp_path: Path, raw: bytes, told: str) -> None:
    (tmp_path / "train.json").write_bytes(raw)
    assert told in refusal(lambda: read_images(tmp_path, "train"))
