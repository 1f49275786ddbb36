"""Tars of samples: grouped by stem, read as a stream, bad members told of by row."""

import io
import json
import os
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.data.images.members import Member
from saccade.data.readers import (
    LabelColumns,
    image_splits,
    label_splits,
    read_images,
    read_labelled,
    read_labelled_texts,
    read_pairs,
    read_texts,
    splits,
)
from saccade.data.readers.images.plain import plain_image_splits, read_plain_images
from saccade.data.readers.report import BadRow
from saccade.data.readers.tar_samples import tar_count, tar_records
from saccade.errors import DataError
from tests.data.images_made import in_tar, picture
from tests.data.readers.text.packed import PACK

words = st.text(st.characters(codec="utf-8", exclude_characters="\0\n\r﻿"), min_size=1)


@given(texts=st.lists(words, min_size=1, max_size=8), more=st.booleans())
def test_each_stem_is_a_record(
    texts: list[str], more: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    files = dict[str, bytes]()
    for number, text in enumerate(texts):
        files[f"a/{number}.txt"] = text.encode() + b"\n"
        files[f"a/{number}.json"] = json.dumps({"n": number, "text": "of the json"}).encode()
        if more:
            files[f"a/{number}.npy"] = b"\0\xff"  # nobody's business
    path = in_tar(tmp_path_factory.mktemp("tar") / "x.tar", files)
    expected = [{"n": number, "text": text} for number, text in enumerate(texts)]
    assert list(tar_records(path)) == expected
    assert tar_count(path) == len(texts)


def test_an_image_is_where_its_bytes_lie(tmp_path: Path) -> None:
    files = {f"{n}.{end}": picture(n) for n in range(3) for end in ("png", "seg.png")}
    for record, seed in zip(tar_records(in_tar(tmp_path / "x.tar", files)), range(3), strict=True):
        assert isinstance(record, dict)
        assert list(record) == ["image"]  # what has two dots in its ending is another thing
        assert isinstance(record["image"], Member)
        assert record["image"].read() == picture(seed)


def link(name: str, to: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = tarfile.SYMTYPE, to
    return info


BAD = {
    "not UTF-8: byte 0xe9 at offset 1 of .txt": {"1.txt": b"x\xe9"},
    "NUL character: in .txt": {"1.txt": b"x\0"},
    "not JSON: Expecting value at column 1": {"1.json": b"nonsense"},
    "wrong type: the row is a list, not an object with keys": {"1.json": b"[]"},
    "too long: .txt has over 1,000,000 bytes": {"1.txt": b"x" * 1_000_001},
    "empty": {"1.txt": b"  \n"},
    "missing key: no 'text'; it has 'image'; give --field": {"1.jpg": b"x"},
    "missing key: no 'text'; it has no keys": {"1.npy": b"x"},
    "outside the data: '../1.txt' is not a plain name below the data's folder": {"../1.txt": b"x"},
}


@pytest.mark.parametrize("reason", BAD)
def test_what_is_wrong_with_a_sample_is_told_by_its_number(reason: str, tmp_path: Path) -> None:
    files = {"0.txt": b"good", **BAD[reason], "2.txt": b"good too"}
    path = in_tar(tmp_path / "train-0.tar", files)
    with pytest.raises(DataError) as caught:
        read_texts(path, "train")
    assert f"\n  {path}:2: {reason}\nmend" in str(caught.value)
    assert read_texts(path, "train", skip_bad=1).texts == ["good", "good too"]


def test_a_link_and_a_member_that_is_there_twice_are_bad(tmp_path: Path) -> None:
    path = tmp_path / "x.tar"
    with tarfile.open(path, "w") as archive:
        archive.addfile(link("0.txt", "/etc/passwd"))
        for raw in (b"one", b"two"):
            info = tarfile.TarInfo("1.txt")
            info.size = 3
            archive.addfile(info, io.BytesIO(raw))
    first, second = tar_records(path)
    assert isinstance(first, BadRow)
    assert isinstance(second, BadRow)
    assert str(first) == "not a file: '0.txt' is a link or a device in the archive"
    assert str(second) == "duplicate member: '1.txt' is there twice"


@pytest.mark.parametrize(("ending", "called"), [(".gz", "gzip"), (".zst", "zst")])
def test_packed_tars_are_read_as_texts_and_damaged_ones_are_refused(
    ending: str, called: str, tmp_path: Path
) -> None:
    plain = in_tar(tmp_path / "plain.tar", {f"{n}.txt": b"text %d" % n for n in range(9)})
    packed = tmp_path / f"train.tar{ending}"
    packed.write_bytes(PACK[ending](plain.read_bytes()))
    assert read_texts(packed, "train").texts == read_texts(plain, "train").texts
    assert tar_count(packed) == 9
    packed.write_bytes(packed.read_bytes()[:-20])
    with pytest.raises(DataError, match=f"is not a whole {called} file"):
        read_texts(packed, "train")
    for cut in (512 * 5 + 100, 700):
        os.truncate(plain, cut)
        with pytest.raises(DataError, match=r"is not a whole tar archive \(.*\); fetch it again"):
            read_texts(plain, "train")


def test_the_number_of_samples_is_guessed_from_the_first(tmp_path: Path) -> None:
    path = in_tar(tmp_path / "x.tar", {f"{n}.txt": b"some text" for n in range(3000)})
    assert tar_count(path) == pytest.approx(3000, rel=0.02)


def test_pairs_are_two_endings_or_a_record(tmp_path: Path) -> None:
    files = {"0.en": b"a dog", "0.de": b"ein Hund"}
    files["1.json"] = json.dumps({"translation": {"en": "a cat", "de": "eine Katze"}}).encode()
    path = in_tar(tmp_path / "train.tar", files)
    read = read_pairs(path, "train", source="en", target="de")
    assert read.pairs == [("a dog", "ein Hund"), ("a cat", "eine Katze")]


def test_numbered_tars_of_a_folder_are_one_split(tmp_path: Path) -> None:
    for number in (10, 9):
        in_tar(tmp_path / f"wiki-train-{number}.tar", {f"{number}.txt": b"text %d" % number})
    in_tar(tmp_path / "wiki-val-0.tar", {"0.txt": b"held out"})
    assert splits(tmp_path) == ["train", "valid"]
    assert read_texts(tmp_path, "train").texts == ["text 9", "text 10"]
    assert read_texts(tmp_path, "valid").texts == ["held out"]


def test_tars_with_numbers_alone_are_all_train(tmp_path: Path) -> None:
    for number in range(3):
        in_tar(tmp_path / f"{number:05}.tar", {f"{number}.txt": b"text %d" % number})
        (tmp_path / f"{number:05}_stats.json").write_text("{}")
    assert splits(tmp_path) == ["train"]
    assert read_texts(tmp_path, "train").summary() == "3 texts from 00000.tar + … + 00002.tar"


def captioned(folder: Path, *names: str) -> Path:
    folder.mkdir(exist_ok=True)
    for place, name in enumerate(names):
        files = {f"{place}.png": picture(place), f"{place}.txt": b"image %d" % place}
        in_tar(folder / name, {**files, "x.png": picture(7), "x.json": b'{"captions": ["a", "b"]}'})
    return folder


def test_captions_stand_beside_their_images(tmp_path: Path) -> None:
    data = captioned(tmp_path / "data", "train-0.tar", "train-1.tar", "test-0.tar")
    assert image_splits(data) == ["train", "test"]
    read = read_images(data, "train")
    assert [row.captions for row in read.rows] == [
        ("image 0",),
        ("a", "b"),
        ("image 1",),
        ("a", "b"),
    ]
    assert [row.image.read() for row in read.rows[:2]] == [picture(0), picture(7)]
    assert read.summary() == "4 images with 6 captions from train-0.tar + train-1.tar"
    one = read_images(data / "test-0.tar", "train")
    assert one.rows[0].captions == ("image 2",)
    by_pattern = read_images(data / "train-{0..1}.tar", "train")
    assert [row.captions for row in by_pattern.rows] == [row.captions for row in read.rows]
    with pytest.raises(DataError, match=r"has no 'valid' split: no valid-….tar"):
        read_images(data, "valid")


def test_a_sample_without_its_image_or_caption_is_a_bad_row(tmp_path: Path) -> None:
    files = {"0.png": picture(0), "0.txt": b"good", "1.txt": b"alone", "2.png": picture(2)}
    path = in_tar(tmp_path / "x.tar", files)
    with pytest.raises(DataError) as caught:
        read_images(path, "train")
    assert f"{path}:2: missing image: the sample has none of .jpg, .jpeg, .png" in str(caught.value)
    assert f"{path}:3: missing key: no 'captions'; it has 'image'" in str(caught.value)


def test_labels_are_in_cls_or_in_json(tmp_path: Path) -> None:
    files = {"0.png": picture(0), "0.cls": b"3\n", "1.png": picture(1), "1.cls": b"10"}
    path = in_tar(tmp_path / "train-0.tar", files)
    in_tar(tmp_path / "valid-0.tar", {"0.png": picture(2), "0.json": b'{"label": ["a", "b"]}'})
    assert label_splits(tmp_path) == ["train", "valid"]
    read = read_labelled(tmp_path, "train")
    assert [row.extras["labels"] for row in read.rows] == [("3",), ("10",)]
    assert read.labels == ["3", "10"]
    assert read_labelled(tmp_path, "valid").rows[0].extras["labels"] == ("a", "b")
    assert len(read_labelled(path, "train").rows) == 2
    with pytest.raises(DataError, match="samples have no image and one of kind"):
        read_labelled(tmp_path / "train-*.tar", "train", columns=LabelColumns(label="kind"))


def test_a_tar_of_folders_of_classes_is_what_it_was(tmp_path: Path) -> None:
    files = {f"train/{kind}/{n}.png": picture(n) for kind in "ab" for n in range(2)}
    read = read_labelled(in_tar(tmp_path / "x.tar", files), "train")
    assert [row.extras["labels"] for row in read.rows] == [("a",), ("a",), ("b",), ("b",)]


def test_images_alone_are_read_from_many_tars(tmp_path: Path) -> None:
    data = captioned(tmp_path / "data", "000.tar", "001.tar")
    assert plain_image_splits(data) == ["train"]
    assert len(read_plain_images(data, "train").rows) == 4
    assert len(read_plain_images(data / "00*.tar", "train").rows) == 4


def test_texts_with_labels_are_samples_too(tmp_path: Path) -> None:
    files = {
        "0.txt": b"A dull film .",
        "0.cls": b"bad",
        "1.txt": b"A fine film .",
        "1.cls": b"good",
    }
    in_tar(tmp_path / "train-0.tar", files)
    in_tar(tmp_path / "train-1.tar", {"2.json": b'{"text": "So so .", "label": "bad"}'})
    read = read_labelled_texts(tmp_path, "train")
    assert [(row.texts, row.label) for row in read.rows] == [
        (("A dull film .",), "bad"),
        (("A fine film .",), "good"),
        (("So so .",), "bad"),
    ]
