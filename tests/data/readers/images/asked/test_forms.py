"""The same rows in any form of file, and packed in any way, are read as the same."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from saccade.data.readers import (
    CHOICES,
    QUESTIONS,
    REFERRING,
    AskedItem,
    Choice,
    ImageQuestion,
    Referred,
    asked_splits,
    read_asked,
)
from tests.data.asked_made import (
    ASKED,
    CHOSEN,
    FORMS,
    HEIGHT,
    PICTURES,
    REFERS,
    WIDTH,
    WRITERS,
    jsonl,
    parquet,
)
from tests.data.boxes_made import blank
from tests.data.images_made import Files, below, in_folder, in_tar, in_zip, rows

Pack = Callable[[Path, Files], Path]
PACKS: dict[str, Pack] = {
    "folder": in_folder,
    "zip": lambda root, files: in_zip(root / "x.zip", files),
    "tar": lambda root, files: in_tar(root / "x.tar", files),
    "zip of a folder": lambda root, files: in_zip(root / "x.zip", below("top", files)),
}
EXPECTED: dict[str, list[AskedItem]] = {
    "questions": [
        ImageQuestion(0, "what is it?", ("a dog", "dog", "dog")),
        ImageQuestion(1, "how many, or none?", ("two",)),
        ImageQuestion(0, "is it red?", ("no",)),
    ],
    "referring": [
        Referred(0, "the dog on the left", (0.1, 0.1, 0.5, 0.5)),
        Referred(0, "the other", (0.5, 0.5, 1.0, 1.0)),
        Referred(1, 'a "cat", maybe', (0.0125, 0.05, 0.05, 0.15)),
    ],
    "choices": [
        Choice(0, ("a dog runs", "a dog sleeps", "a cat"), 1),
        Choice(0, ("yes", "no"), 0),
    ],
}
IMAGES = {"questions": ["b.png", "a.png"], "referring": ["b.png", "c.png"], "choices": ["a.png"]}
REGIONS = {
    "questions": [((0.0, 0.0, 0.5, 0.5),), None],
    "referring": [((0.0, 0.0, 1.0, 1.0),), None],
    "choices": [((1 / WIDTH, 1 / HEIGHT, 2 / WIDTH, 2 / HEIGHT),)],
}


@pytest.mark.parametrize("pack", PACKS)
@pytest.mark.parametrize("file", WRITERS)
@pytest.mark.parametrize("name", FORMS)
def test_any_file_packed_in_any_way_is_read_as_the_same(
    name: str, file: str, pack: str, tmp_path: Path
) -> None:
    if file == "parquet" and pack != "folder":
        pytest.skip("Parquet is not read out of an archive")
    form, records = FORMS[name]
    split = {f"train.{file}": WRITERS[file](records), f"dev.{file}": WRITERS[file](records[:1])}
    data = PACKS[pack](tmp_path, {**split, **below("images", PICTURES)})
    read = read_asked(data, "train", form)
    assert read.items == EXPECTED[name]
    assert [Path(row.image.name).name for row in read.images] == IMAGES[name]
    assert read.regions == REGIONS[name]
    assert asked_splits(data, form) == ["train", "valid"]
    assert read_asked(data, "valid", form).items == EXPECTED[name][:1]


@pytest.mark.parametrize("name", FORMS)
def test_items_know_their_lines(name: str, tmp_path: Path) -> None:
    form, records = FORMS[name]
    data = in_folder(tmp_path, {**PICTURES, "train.jsonl": jsonl(records)})
    read = read_asked(data, "train", form)
    assert [item.line for item in read.items] == [*range(1, len(records) + 1)]
    assert {item.file for item in read.items} == {str(tmp_path / "train.jsonl")}
    first = {item.image: item.line for item in reversed(read.items)}
    assert [row.line for row in read.images] == [first[n] for n in range(len(read.images))]


LAYOUTS: dict[str, tuple[str, Files]] = {
    "a single file": ("x.jsonl", {**PICTURES, "x.jsonl": jsonl(ASKED)}),
    "a single file of another form": (
        "questions.csv",
        {**PICTURES, "questions.csv": WRITERS["csv"](ASKED)},
    ),
    "one file, named after no split": ("", {**PICTURES, "questions.jsonl": jsonl(ASKED)}),
    "named after its form": ("", {**PICTURES, "train_questions.jsonl": jsonl(ASKED)}),
    "its form first": ("", {**PICTURES, "vqa_train.jsonl": jsonl(ASKED)}),
    "beside other forms": (
        "",
        {
            **PICTURES,
            "train.jsonl": jsonl(ASKED),
            "train_choices.jsonl": jsonl(CHOSEN),
            "referring_train.jsonl": jsonl(REFERS),
        },
    ),
    "a folder for the split": (
        "",
        {**below("train", PICTURES), "train/metadata.jsonl": jsonl(ASKED)},
    ),
    "annotations": ("", {**PICTURES, "annotations/train.jsonl": jsonl(ASKED)}),
    "deep": ("", {**below("x/y", PICTURES), "x/y/train.jsonl": jsonl(ASKED)}),
    "images named as the file is": ("", {**below("train", PICTURES), "train.jsonl": jsonl(ASKED)}),
    "in parts": (
        "",
        {
            **PICTURES,
            "data/train-00000-of-00002.parquet": parquet(ASKED[:1]),
            "data/train-00001-of-00002.parquet": parquet(ASKED[1:]),
        },
    ),
}


@pytest.mark.parametrize("what", LAYOUTS)
def test_files_are_found_where_people_put_them(what: str, tmp_path: Path) -> None:
    name, files = LAYOUTS[what]
    data = in_folder(tmp_path, files) / name
    assert asked_splits(data, QUESTIONS) == ["train"]
    assert read_asked(data, "train", QUESTIONS).items == EXPECTED["questions"]


def test_images_in_an_archive_beside_the_file_are_found(tmp_path: Path) -> None:
    in_folder(tmp_path, {"train.jsonl": jsonl(ASKED)})
    in_tar(tmp_path / "images.tar", PICTURES)
    read = read_asked(tmp_path, "train", QUESTIONS)
    assert read.summary() == (
        "3 questions about 2 images with 1 region from train.jsonl + images.tar"
    )


def test_how_much_there_is_is_told(tmp_path: Path) -> None:
    records = [*({"image": "a.png", "question": "x", "answer": "y"} for _ in range(2)), {}]
    in_folder(tmp_path, {**PICTURES, "train.jsonl": rows(*records)})
    read = read_asked(tmp_path, "train", QUESTIONS, skip_bad=1)
    assert read.summary() == (
        "2 questions about 1 image from train.jsonl; 1 bad row skipped (1 missing key); "
        "1 duplicate kept"
    )


def test_an_answer_may_stand_alone_and_as_in_vqa_s_own_files(tmp_path: Path) -> None:
    said = [{"answer": "red", "answer_id": 1}, {"answer": "dark red", "answer_id": 2}]
    asked = {"image": "a.png", "question": "what colour?"}
    records = [{**asked, "answer": "red"}, {**asked, "answers": said}, {**asked, "answers": "red"}]
    in_folder(tmp_path, {**PICTURES, "train.jsonl": rows(*records)})
    found = read_asked(tmp_path, "train", QUESTIONS).items
    assert [item.answers for item in found] == [("red",), ("red", "dark red"), ("red",)]


def test_a_bbox_has_sides_and_an_image_is_upright(tmp_path: Path) -> None:
    turned = blank(HEIGHT, WIDTH, form="JPEG", orientation=6)  # shown WIDTH × HEIGHT
    record = {"image": "t.jpg", "phrase": "it", "bbox": [4, 2, 16, 8], "bboxes": [[0, 0, 40, 20]]}
    in_folder(tmp_path, {"t.jpg": turned, "train.jsonl": rows(record)})
    read = read_asked(tmp_path, "train", REFERRING)
    assert read.items == [Referred(0, "it", (0.1, 0.1, 0.5, 0.5))]
    assert read.regions == [((0.0, 0.0, 1.0, 1.0),)]


def test_images_may_lie_in_parquet_itself(tmp_path: Path) -> None:
    raw = [{"bytes": PICTURES[one], "path": one} for one in ("a.png", "b.png")]
    records = [
        {"image": one, "sentences": ["x", "y"], "right": 1, "boxes": [[0.0, 0.0, 20.0, 20.0]]}
        for one in raw
    ]
    in_folder(tmp_path, {"train.parquet": parquet(records)})
    read = read_asked(tmp_path, "train", CHOICES)
    assert [item.image for item in read.items] == [0, 1]
    assert read.regions == [((0.0, 0.0, 0.5, 1.0),)] * 2
    assert [row.image.read() for row in read.images] == [PICTURES["a.png"], PICTURES["b.png"]]


def test_sizes_are_read_only_where_there_are_boxes_and_once_for_an_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import saccade.data.readers.images.asked.images as module

    seen: list[str] = []

    def size(image: object) -> tuple[int, int]:
        seen.append(str(image))
        return HEIGHT, WIDTH

    monkeypatch.setattr(module, "header_size", size)
    boxed = [{**one, "boxes": [[0, 0, 9, 9]]} for one in [ASKED[0]] * 5]
    in_folder(tmp_path, {**PICTURES, "train.jsonl": rows(*ASKED[:2]), "dev.jsonl": rows(*boxed)})
    read_asked(tmp_path, "train", QUESTIONS)
    assert seen == []
    read_asked(tmp_path, "dev", QUESTIONS)
    assert len(seen) == 1


def test_regions_may_come_later_than_the_image(tmp_path: Path) -> None:
    asked = {"image": "a.png", "question": "x", "answer": "y"}
    boxes = [[0, 0, 20, 10], [20, 10, 40, 20]]
    records = [asked, {**asked, "boxes": boxes}, asked, {**asked, "boxes": boxes}]
    in_folder(tmp_path, {**PICTURES, "train.jsonl": rows(*records)})
    read = read_asked(tmp_path, "train", QUESTIONS)
    assert read.regions == [((0.0, 0.0, 0.5, 0.5), (0.5, 0.5, 1.0, 1.0))]
    assert len(read.items) == 4


def test_an_item_says_nothing_of_where_it_stood_when_compared() -> None:
    item = Choice(0, ("a", "b"), 1, file="x", line=3)
    assert item == dataclasses.replace(item, line=4)
    assert item != dataclasses.replace(item, right=0)
