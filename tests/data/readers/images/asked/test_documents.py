"""JSON of questions as it is given out is read as it is, with the answers in a file beside it."""

import json
from pathlib import Path
from typing import Any

import pytest

from saccade.data.readers import QUESTIONS, REFERRING, ImageQuestion, asked_splits, read_asked
from saccade.errors import DataError
from tests.data.boxes_made import blank
from tests.data.images_made import Files, in_folder, in_zip, rows

IMAGE = blank()
RED = ("red", "red", "dark red")


def packed(value: object) -> bytes:
    return json.dumps(value).encode()


def said(*answers: str) -> list[dict[str, str]]:
    return [{"answer": answer, "answer_confidence": "yes"} for answer in answers]


def vqa(split: str = "train2014", *, answers: Any = None) -> dict[str, bytes]:
    """VQA v2's pair, as its site gives it out; annotations are in another order."""
    asked = [
        {"image_id": 9, "question": "what colour?", "question_id": 9000},
        {"image_id": 9, "question": "how many?", "question_id": 9001},
        {"image_id": 25, "question": "is it red?", "question_id": 25000},
    ]
    if answers is None:
        answers = [
            {"question_id": 25000, "image_id": 25, "answers": said("no", " ")},
            {"question_id": 9001, "image_id": 9, "answers": said("2")},
            {"question_id": 9000, "image_id": 9, "answers": said(*RED)},
        ]
    return {
        f"v2_OpenEnded_mscoco_{split}_questions.json": packed({"info": {}, "questions": asked}),
        f"v2_mscoco_{split}_annotations.json": packed({"annotations": answers}),
        f"{split}/COCO_{split}_000000000009.jpg": IMAGE,
        f"{split}/COCO_{split}_000000000025.jpg": IMAGE,
    }


def items(data: Path, split: str = "train") -> list[ImageQuestion]:
    return read_asked(data, split, QUESTIONS).items


def test_vqa_reads_the_pair_that_its_site_gives_out(tmp_path: Path) -> None:
    without = packed({"questions": [{"image_id": 1, "question": "?", "question_id": 1}]})
    data = in_folder(
        tmp_path,
        {
            **vqa(),
            **vqa("val2014"),
            "v2_OpenEnded_mscoco_test2015_questions.json": without,
            "v2_OpenEnded_mscoco_test-dev2015_questions.json": without,
            "v2_mscoco_train2014_complementary_pairs.json": b"[]",
        },
    )
    expected = [
        ImageQuestion(0, "what colour?", RED),
        ImageQuestion(0, "how many?", ("2",)),
        ImageQuestion(1, "is it red?", ("no",)),
    ]
    assert asked_splits(data, QUESTIONS) == ["train", "valid", "test"]
    read = read_asked(data, "train", QUESTIONS)
    assert read.items == expected
    assert read.summary() == (
        "3 questions about 2 images from v2_OpenEnded_mscoco_train2014_questions.json"
    )
    assert read.images[1].image.name.endswith("train2014/COCO_train2014_000000000025.jpg")
    assert items(data, "valid") == expected
    with pytest.raises(DataError) as raised:
        items(data, "test")
    assert str(raised.value).endswith(
        "v2_OpenEnded_mscoco_test2015_questions.json has questions without answers: no "
        "v2_mscoco_test2015_annotations.json beside it; put it there, or name a split that has "
        "answers"
    )
    name = "v2_OpenEnded_mscoco_train2014_questions.json"
    assert items(data / name) == expected
    assert items(in_zip(tmp_path / "x.zip", vqa())) == expected


FORMS: dict[str, Files] = {
    "GQA": {
        "train_balanced_questions.json": packed(
            {"05": {"imageId": "25", "question": "what colour?", "answer": "red"}}
        ),
        "train_sceneGraphs.json": packed({"25": {"objects": {}}}),
        "images/25.jpg": IMAGE,
    },
    "VizWiz": {
        "Annotations/train.json": packed(
            [{"image": "V_1.jpg", "question": "what colour?", "answers": said("red")}]
        ),
        "train/V_1.jpg": IMAGE,
        "val/V_1.jpg": IMAGE,
    },
    "CLEVR": {
        "questions/CLEVR_train_questions.json": packed(
            {
                "info": {},
                "questions": [
                    {"image_filename": "C_1.png", "question": "what colour?", "answer": "red"}
                ],
            }
        ),
        "questions/images/train/C_1.png": IMAGE,
    },
    "CLEVR with its scenes": {
        "questions/CLEVR_train_questions.json": packed(
            [{"image_filename": "C_1.png", "question": "what colour?", "answer": "red"}]
        ),
        "questions/CLEVR_val_questions.json": packed([]),
        "scenes/CLEVR_train_scenes.json": packed({"scenes": []}),
        "images/train/C_1.png": IMAGE,
        "images/val/C_1.png": IMAGE,
    },
    "TextVQA": {
        "TextVQA_0.5.1_train.json": packed(
            {"data": [{"image_id": "00f2", "question": "what colour?", "answers": ["red"]}]}
        ),
        "train_images/00f2.jpg": IMAGE,
    },
    "A-OKVQA": {
        "aokvqa_v1p0_train.json": packed(
            [{"image_id": 25, "question": "what colour?", "direct_answers": ["red"]}]
        ),
        "train2017/000000000025.jpg": IMAGE,
        "val2017/000000000025.jpg": IMAGE,
    },
    "a table with ids": {
        "data_train.csv": b"question,answer,image_id\nwhat colour?,red,image25\n",
        "images/image25.png": IMAGE,
    },
}


@pytest.mark.parametrize("form", FORMS)
def test_other_sets_are_read_as_they_are_given_out(form: str, tmp_path: Path) -> None:
    data = in_folder(tmp_path, FORMS[form])
    read = read_asked(data, "train", QUESTIONS)
    assert read.items == [ImageQuestion(0, "what colour?", ("red",))]
    assert "val" not in read.images[0].image.name.removeprefix(str(tmp_path))


@pytest.mark.parametrize("split", ["train", "val"])
def test_a_file_of_clevr_finds_its_images_beside_its_folder(split: str, tmp_path: Path) -> None:
    name = f"questions/CLEVR_{split}_questions.json"
    row = {"image_filename": "C_1.png", "question": "what colour?", "answer": "red"}
    images = {f"images/{one}/C_1.png": IMAGE for one in ("train", "val")}
    data = in_folder(tmp_path, {name: packed({"questions": [row]}), **images})
    (image,) = read_asked(data / name, "train", QUESTIONS).images
    assert image.image.name == f"{data}/images/{split}/C_1.png"


def test_questions_without_answers_in_a_file_that_names_no_questions_are_told_so(
    tmp_path: Path,
) -> None:
    asked = [{"image_id": 9, "question": "what colour?", "question_id": 9000}]
    data = in_folder(tmp_path, {"train.json": packed({"questions": asked})})
    with pytest.raises(DataError) as raised:
        items(data)
    assert str(raised.value).endswith(
        "train.json has questions without answers; write 'answer' into each, or name a split that "
        "has answers"
    )


def test_a_bad_row_is_told_by_its_place_in_the_list(tmp_path: Path) -> None:
    files = vqa(answers=[{"question_id": 9000, "multiple_choice_answer": "red"}, {}, 7])
    read = read_asked(in_folder(tmp_path, files), "train", QUESTIONS, skip_bad=2)
    assert read.items == [ImageQuestion(0, "what colour?", ("red",))]
    where = f"{tmp_path}/v2_OpenEnded_mscoco_train2014_questions.json#questions"
    assert [(p.file, p.line, p.kind) for p in read.problems] == [
        (where, 2, "no answers"),
        (where, 3, "no answers"),
    ]


def test_images_of_coco_lie_in_the_folder_that_their_names_say(tmp_path: Path) -> None:
    row = {"image": "COCO_train2014_000000000009.jpg", "phrase": "the dog", "bbox": [0, 0, 9, 9]}
    files = {"valid.jsonl": rows(row), "images/train2014/COCO_train2014_000000000009.jpg": IMAGE}
    assert len(read_asked(in_folder(tmp_path, files), "valid", REFERRING).items) == 1


REFUSED = {
    "not JSON": (b"[", "train.json: not JSON: Expecting value at column 2; fetch it again"),
    "not UTF-8": (b'["\xff"]', "train.json is not UTF-8: at byte 2; save it as UTF-8"),
    "a number": (b"7", "train.json has no rows: neither a list of them, nor one under questions"),
    "other keys": (b'{"a": 1}', "nor an object for each; it has 'a'"),
    "answers": (b'{"annotations": [], "info": 1}', "has annotations and no questions; give the"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_list_of_rows_is_refused(what: str, tmp_path: Path) -> None:
    raw, told = REFUSED[what]
    with pytest.raises(DataError) as raised:
        items(in_folder(tmp_path, {"train.json": raw}))
    assert told in str(raised.value)
    assert "\n" not in str(raised.value)


def test_answers_that_are_no_list_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError) as raised:
        items(in_folder(tmp_path, vqa(answers={})))
    assert "v2_mscoco_train2014_annotations.json has no list of annotations" in str(raised.value)


def test_json_of_other_things_is_left_alone(tmp_path: Path) -> None:
    others = {
        "annotations/instances_train2014.json": b"{}",
        "annotations/captions_train2014.json": b"{}",
        "config.json": b"{}",
    }
    data = in_folder(tmp_path, {**vqa(), **others})
    assert len(items(data)) == 3
