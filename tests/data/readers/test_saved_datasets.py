"""What `datasets` of Hugging Face saved to disk, and Parquet in parts: the rows that went in."""

import json
from pathlib import Path
from typing import Any

import pytest

from saccade.data.readers import (
    image_splits,
    read_images,
    read_labelled_texts,
    read_pairs,
    read_texts,
    splits,
    stream_texts,
)
from saccade.errors import DataError
from tests.data.images_made import picture

pa: Any = pytest.importorskip("pyarrow")
pq: Any = pytest.importorskip("pyarrow.parquet")


def saved(folder: Path, columns: dict[str, list[Any]], parts: int = 2) -> Path:
    """As `save_to_disk` writes it."""
    folder.mkdir(parents=True)
    table = pa.table(columns)
    names = [f"data-{n:05}-of-{parts:05}.arrow" for n in range(parts)]
    step = -(-len(table) // parts)
    for place, name in enumerate(names):
        stream = pa.ipc.new_stream(str(folder / name), table.schema)
        stream.write_table(table.slice(place * step, step), max_chunksize=3)
        stream.close()
    state = {"_data_files": [{"filename": name} for name in names]}
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "dataset_info.json").write_text("{}")
    return folder


TEXTS = [f"text {n}" for n in range(11)]


def test_texts_of_a_dataset_without_splits_are_train(tmp_path: Path) -> None:
    data = saved(tmp_path / "data", {"id": list(range(11)), "text": TEXTS})
    assert splits(data) == ["train"]
    assert read_texts(data, "train").texts == TEXTS
    assert stream_texts(data, "train").count() == 11
    assert read_texts(data / "data-00000-of-00002.arrow", "train").texts == TEXTS[:6]


def test_splits_of_a_dataset_are_folders(tmp_path: Path) -> None:
    saved(tmp_path / "train", {"text": TEXTS})
    saved(tmp_path / "validation", {"text": ["held out"]}, parts=1)
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["train", "validation"]}')
    assert splits(tmp_path) == ["train", "valid"]
    assert read_texts(tmp_path, "train").texts == TEXTS
    assert read_texts(tmp_path, "valid").texts == ["held out"]


def test_pairs_of_a_dataset(tmp_path: Path) -> None:
    pairs = [{"en": f"a {n}", "de": f"b {n}"} for n in range(5)]
    data = saved(tmp_path / "data", {"translation": pairs})
    read = read_pairs(data, "train", source="en", target="de")
    assert read.pairs == [(f"a {n}", f"b {n}") for n in range(5)]


def test_labelled_texts_of_a_dataset(tmp_path: Path) -> None:
    data = saved(tmp_path / "data", {"text": TEXTS, "label": ["a", "b"] * 5 + ["a"]})
    read = read_labelled_texts(data, "train")
    assert [(row.texts[0], row.label) for row in read.rows] == list(
        zip(TEXTS, ["a", "b"] * 5 + ["a"], strict=True)
    )


def test_captions_of_a_dataset_have_their_images_with_them(tmp_path: Path) -> None:
    images = [{"bytes": picture(n), "path": None} for n in range(4)]
    said = [["one", "another"], ["two"], ["three"], ["four"]]
    saved(tmp_path / "train", {"image": images, "caption": said})
    saved(tmp_path / "test", {"image": images[:1], "caption": said[:1]}, parts=1)
    (tmp_path / "dataset_dict.json").write_text("{}")
    assert image_splits(tmp_path) == ["train", "test"]
    read = read_images(tmp_path, "train")
    assert [list(row.captions) for row in read.rows] == said
    assert [row.image.read() for row in read.rows] == [picture(n) for n in range(4)]


def test_parts_of_parquet_are_one_split(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for n in range(2):
        path = tmp_path / "data" / f"train-0000{n}-of-00002.parquet"
        pq.write_table(pa.table({"text": TEXTS[n * 6 : n * 6 + 6]}), path)
    assert splits(tmp_path) == ["train"]
    assert read_texts(tmp_path, "train").texts == TEXTS
    images = [{"bytes": picture(n), "path": None} for n in range(2)]
    path = tmp_path / "captions.parquet"
    pq.write_table(pa.table({"image": images, "text": ["a", "b"]}), path)
    assert [row.captions for row in read_images(path, "train").rows] == [("a",), ("b",)]
    with pytest.raises(DataError, match="has no column for the image; it has text"):
        read_images(tmp_path / "data" / "train-0000[01]-of-00002.parquet", "train")


def test_bad_rows_are_told_of_by_file_and_row(tmp_path: Path) -> None:
    data = saved(tmp_path / "data", {"text": [*TEXTS[:7], "", None, *TEXTS[9:]]})
    second = data / "data-00001-of-00002.arrow"
    with pytest.raises(DataError) as caught:
        read_texts(data, "train")
    assert f"{second}:2: empty\n" in str(caught.value)
    assert f"{second}:3: wrong type: 'text' is null, not a string" in str(caught.value)


def test_what_is_damaged_or_was_not_saved_is_refused(tmp_path: Path) -> None:
    data = saved(tmp_path / "data", {"text": TEXTS})
    with pytest.raises(DataError, match="has no column 'body'; its columns are: 'text'"):
        read_texts(data, "train", field="body")
    (data / "data-00001-of-00002.arrow").write_bytes(b"\xff\xff\xff\xffnonsense")
    with pytest.raises(DataError, match="is not a whole Arrow stream file"):
        read_texts(data, "train")
    (data / "state.json").write_text('{"_data_files": 3}')
    with pytest.raises(DataError, match="does not name the files of a dataset"):
        read_texts(data, "train")
    (data / "state.json").write_text('{"_data_files": [], "_indices_data_files": [1]}')
    with pytest.raises(DataError, match=r"save it again after flatten_indices\(\)"):
        read_texts(data, "train")


def test_what_datasets_itself_has_saved_is_read() -> None:
    """By `DatasetDict.save_to_disk` of datasets 5.2, its validation split after a `filter`."""
    data = Path(__file__).with_name("saved_by_datasets")
    assert splits(data) == ["train", "valid"]
    read = read_labelled_texts(data, "train")
    assert [(row.texts, row.label) for row in read.rows] == [
        (("A dull film .",), "bad"),
        (("A fine film .",), "good"),
        (("So so .",), "bad"),
    ]
    assert read_texts(data, "valid").texts == ["A fine film ."]
    pairs = read_pairs(data, "train", source="en", target="de").pairs
    assert pairs == [("a dog", "ein Hund")] * 3
