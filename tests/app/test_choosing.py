"""Sentences to choose from, as a user gives them: from Python and from the command line."""

import io
import json
from pathlib import Path

import pytest

from saccade.errors import DataError
from tests.app.joint_runs import BOXES, write_images
from tests.app.test_classification import run
from tests.app.test_cli import Capture, Patch
from tests.app.test_joint import load_joint, rows

SENTENCES = ("a red ring", "the star", "two moons and a cross")
TEXTS = [part for text in SENTENCES for part in ("--text", text)]


@pytest.fixture
def images(tmp_path: Path) -> Path:
    return write_images(tmp_path / "images")


def test_python_chooses_among_sentences(joint: dict[str, Path], images: Path) -> None:
    model, files = load_joint(joint["choosing"]), [images / "0.png", images / "1.png"]
    one = model.predict(files[0], list(SENTENCES), BOXES)
    assert (one.text, one.score) == one.answers[0]
    assert {label for label, _ in one.answers} == set(SENTENCES)
    assert sum(p for _, p in one.answers) == pytest.approx(1, abs=1e-5)
    assert one.given == "\t".join(SENTENCES)
    many = model.predict(files, list(SENTENCES), [BOXES, BOXES])
    assert [two.name for two in many] == [str(file) for file in files]
    assert many[0].score == pytest.approx(one.score, abs=1e-5)
    rows = [list(SENTENCES), ["a ring", "a star"]]
    each = model.predict(files[0], rows, BOXES)
    assert [len(two.answers) for two in each] == [3, 2]
    assert each[0].score == pytest.approx(one.score, abs=1e-5)
    look = model.look(files[0], list(SENTENCES), BOXES, of="the star")
    assert look.caption.startswith("the star → ")
    assert one.look().caption.startswith(f"{one.text} → chosen ")
    with pytest.raises(DataError, match="'a ring' is one sentence, and there is nothing to choose"):
        model.predict(files[0], ["a ring"], BOXES)


def test_one_image_gives_all_sentences_and_many_a_line_each(
    joint: dict[str, Path], images: Path, capsys: Capture
) -> None:
    model, boxes = load_joint(joint["choosing"]), ("--boxes", images / "boxes.jsonl")
    found = model.predict(images / "0.png", list(SENTENCES), BOXES).answers
    code, out, _ = run(capsys, "predict", joint["choosing"], images / "0.png", *TEXTS, *boxes)
    assert code == 0
    assert rows(out) == [[label, f"{round(p, 6):.4f}"] for label, p in found]
    code, out, _ = run(capsys, "predict", joint["choosing"], images, *TEXTS, *boxes)
    assert (code, len(rows(out))) == (0, 3)
    assert rows(out)[0] == [str(images / "0.png"), found[0].label, f"{found[0].probability:.4f}"]
    code, out, _ = run(
        capsys, "predict", joint["choosing"], images / "0.png", *TEXTS, *boxes, "--json"
    )
    (row,) = json.loads(out)
    assert row["asked"] == list(SENTENCES)
    assert (row["text"], len(row["answers"])) == (found[0].label, 3)


def test_rows_of_sentences_come_from_a_file_or_from_standard_input(
    joint: dict[str, Path], images: Path, capsys: Capture, monkeypatch: Patch
) -> None:
    model = load_joint(joint["choosing"])
    lines = [
        {"image": "0.png", "sentences": SENTENCES, "boxes": BOXES, "right": 2},
        {"image": "1.png", "sentences": ["a ring", " "], "boxes": BOXES},
        {"image": "lost.png", "sentences": ["a ring", "a star"], "boxes": BOXES},
        {"image": "1.png", "sentences": ["a ring", "a star"], "boxes": BOXES[:1]},
    ]
    file = images / "asked.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    code, out, err = run(capsys, "predict", joint["choosing"], file)
    first = model.predict(images / "0.png", list(SENTENCES), BOXES)
    last = model.predict(images / "1.png", ["a ring", "a star"], BOXES[:1])
    assert code == 1
    assert [row[:2] for row in rows(out)] == [
        [str(images / "0.png"), first.text],
        [str(images / "1.png"), last.text],
    ]
    assert float(rows(out)[1][2]) == pytest.approx(last.score, abs=1e-4)
    assert "' ' has no word that the model knows" in err
    assert "lost.png" in err
    assert "2 of 4 could not be read" in err
    typed = f"{images / '0.png'}\t{first.given}\n".encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(typed)))
    boxes = ("--boxes", images / "boxes.jsonl")
    code, out, _ = run(capsys, "predict", joint["choosing"], "-", *boxes)
    assert (code, rows(out)[0][1]) == (0, first.text)


def test_a_look_prints_every_sentence_and_draws_the_one_that_is_chosen(
    joint: dict[str, Path], images: Path, tmp_path: Path, capsys: Capture
) -> None:
    asked = ("look", joint["choosing"], images / "0.png", *TEXTS)
    boxes = ("--boxes", images / "boxes.jsonl")
    code, out, _ = run(capsys, *asked, *boxes)
    assert code == 0
    assert [line.partition(" → ")[0] for line in out.splitlines() if " → " in line] == list(
        SENTENCES
    )
    assert out.count(" → chosen ") == 1
    drawn = tmp_path / "x.json"
    code, out, _ = run(capsys, *asked, *boxes, "-o", drawn)
    assert (code, out.count(" → chosen ")) == (0, 1)
    code, out, _ = run(capsys, *asked, *boxes, "-o", drawn, "--of", "the star")
    assert (code, out.startswith("the star → ")) == (0, True)
    assert json.loads(drawn.read_text())["words"][1:] == ["the", "star"]
