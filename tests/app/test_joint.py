"""Models of images and texts as a user meets them: from Python and from the command line."""

import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

import saccade
from saccade.app.kinds.joint.model import JointModel
from saccade.data import shapes
from saccade.errors import ConfigError, DataError, RunError
from tests.app.joint_runs import BOXES, joint_run, write_images
from tests.app.test_classification import run
from tests.app.test_cli import Capture, Patch
from tests.marks import one_fast
from tests.tasks.joint.made import user_questions
from tests.tasks.joint.pair_tools import ANSWERS
from tests.train.small import rewrite

KINDS = ("answering", "referring", "fitting", "joint")
EVERY = (*KINDS, "choosing")
ASKED = "is the ___ ring red?"


@pytest.fixture
def images(tmp_path: Path) -> Path:
    return write_images(tmp_path / "images")


@pytest.fixture(autouse=True)
def few_scenes(monkeypatch: Patch) -> None:
    monkeypatch.setattr("saccade.tasks.joint.data.HELD_BACK", 12)


def load_joint(folder: Path) -> JointModel:
    model = saccade.load(folder, device="cpu")
    assert isinstance(model, JointModel)
    return model


def rows(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines()]


@pytest.mark.parametrize("kind", one_fast(KINDS))
def test_python_says_of_many_what_it_says_of_each(
    joint: dict[str, Path], images: Path, kind: str
) -> None:
    model, told = load_joint(joint[kind]), list[Any]()
    files = [images / "0.png", str(images / "1.png"), (images / "2.png").read_bytes()]
    boxes, texts = [BOXES[:n] for n in (3, 2, 1)], [ASKED, "the red cross", "two rings"]
    many = model.predict(files, texts, boxes, progress=lambda *done: told.append(done))
    for one, file, text, some in zip(many, files, texts, boxes, strict=True):
        alone = model.predict(file, text, some)
        assert (alone.text, alone.given) == (one.text, text)
        assert alone.score == pytest.approx(one.score, abs=1e-5)
    assert told == [(3, 3)]
    same = model.predict(files[0], texts, BOXES)
    assert [one.given for one in same] == texts
    assert [one.name for one in model.predict(files, ASKED, boxes)][:2] == [
        str(images / "0.png"),
        str(images / "1.png"),
    ]
    assert str(many[0]) == many[0].text
    assert repr(many[0]) == f"PairPrediction({ASKED!r}, {many[0].text!r})"
    assert "JointModel(" in repr(model)


def test_python_tells_what_each_kind_has(joint: dict[str, Path], images: Path) -> None:
    found = {
        kind: load_joint(joint[kind]).predict(images / "0.png", ASKED, BOXES) for kind in KINDS
    }
    answered = found["answering"]
    assert answered.answers[0] == (answered.text, answered.score)
    assert (answered.box, answered.fits, answered.blanks) == (None, None, [])
    assert found["referring"].box in [(0, 0, 64, 48), *(pytest.approx(box) for box in BOXES)]
    assert found["fitting"].fits == found["fitting"].score
    assert found["fitting"].text == ("fits" if found["fitting"].score >= 0.5 else "does not fit")
    filled = found["joint"]
    assert filled.text == f"is the {filled.blanks[0][0].word} ring red?"
    arrays = torch.tensor(BOXES, dtype=torch.float32)
    model = load_joint(joint["answering"])
    assert model.predict(images / "0.png", ASKED, arrays).score == answered.score


def test_python_refuses_in_a_line(joint: dict[str, Path], images: Path) -> None:
    model, cells, file = (
        load_joint(joint["answering"]),
        load_joint(joint["cells"]),
        images / "0.png",
    )
    with pytest.raises(
        DataError, match=r"answering looks at boxes, and .*0.png has none; give box"
    ):
        model.predict(file, ASKED)
    with pytest.raises(DataError, match="cells looks at the cells of a grid; leave boxes out"):
        cells.predict(file, ASKED, BOXES)
    with pytest.raises(DataError, match=r"boxes\[1\]: a box is \[left, top, right, bottom\]"):
        model.predict(file, ASKED, [BOXES[0], [1, 2]])
    with pytest.raises(DataError, match="2 images and 3 texts: give as many of both, or one"):
        cells.predict([file, file], ["a", "b", "c"])
    with pytest.raises(DataError, match="2 images have boxes of 1; give those of each"):
        model.predict([file, file], ASKED, [BOXES])
    with pytest.raises(DataError, match="give a text, not int"):
        cells.predict(file, 3)
    with pytest.raises(DataError, match="int is no image"):
        cells.predict(3, ASKED)
    with pytest.raises(ConfigError, match="of='up' is no answer of this model"):
        cells.look(file, ASKED, of="up").film.document()


def test_one_question_gives_its_best_answers_and_many_a_line_each(
    joint: dict[str, Path], images: Path, capsys: Capture
) -> None:
    model = load_joint(joint["cells"])
    best = model.predict(images / "0.png", "how many?", best=3).answers
    code, out, _ = run(
        capsys, "predict", joint["cells"], images / "0.png", "how many?", "--best", 3
    )
    assert code == 0
    assert rows(out) == [[label, f"{round(p, 6):.4f}"] for label, p in best]
    texts = ("how many?", "is it red?")
    asked = [part for text in texts for part in ("--text", text)]
    code, out, _ = run(capsys, "predict", joint["cells"], images, *asked)
    expected = [
        [str(file), text, model.predict(file, text).text]
        for file in sorted(images.glob("*.png"))
        for text in texts
    ]
    assert (code, [row[:3] for row in rows(out)]) == (0, expected)
    code, out, _ = run(capsys, "predict", joint["cells"], images / "0.png", *asked)
    assert [row[:2] for row in rows(out)] == [row[1:] for row in expected[:2]]
    code, out, _ = run(capsys, "predict", joint["cells"], images, texts[0])
    assert [[row[0], row[1]] for row in rows(out)] == [[r[0], r[2]] for r in expected[::2]]


def test_pairs_come_from_a_file_or_from_standard_input(
    joint: dict[str, Path], images: Path, capsys: Capture, monkeypatch: Patch
) -> None:
    model = load_joint(joint["answering"])
    lines = [
        {"image": "0.png", "question": "how many?", "boxes": BOXES},
        {"image": "1.png", "text": "is it red?", "boxes": BOXES[:1]},
    ]
    file = images / "asked.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    code, out, _ = run(capsys, "predict", joint["answering"], file)
    expected = [
        [str(images / "0.png"), "how many?", model.predict(images / "0.png", "how many?", BOXES)],
        [
            str(images / "1.png"),
            "is it red?",
            model.predict(images / "1.png", "is it red?", BOXES[:1]),
        ],
    ]
    assert code == 0
    assert rows(out) == [[a, b, c.text, f"{round(c.score, 6):.4f}"] for a, b, c in expected]
    typed = f"{images / '0.png'}\thow many?\n\n{images / 'none.png'}\tis it red?\n".encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(typed)))
    code, out, err = run(
        capsys, "predict", joint["answering"], "-", "--boxes", images / "boxes.jsonl"
    )
    assert (code, rows(out)) == (1, rows(out)[:1])
    assert rows(out)[0][2] == expected[0][2].text
    assert "none.png" in err
    assert "1 of 2 could not be read" in err


def test_json_has_everything(joint: dict[str, Path], images: Path, capsys: Capture) -> None:
    keys = {
        "answering": {"answers"},
        "referring": {"box", "score"},
        "fitting": {"fits"},
        "joint": {"fits", "blanks"},
    }
    boxes = ("--boxes", images / "boxes.jsonl", "--json")
    for kind in KINDS:
        code, out, _ = run(capsys, "predict", joint[kind], images, ASKED, *boxes)
        found = json.loads(out)
        assert (code, len(found)) == (0, 3)
        assert set(found[0]) == {"file", "asked", "text", *keys[kind]}
    (images / "1.png").write_bytes(b"no image at all")
    code, out, _ = run(capsys, "predict", joint["referring"], images, ASKED, *boxes)
    assert (code, ["error" in row for row in json.loads(out)]) == (1, [False, True, False])


def test_a_detector_says_where_the_regions_are(
    joint: dict[str, Path], detector: Path, images: Path, capsys: Capture, monkeypatch: Patch
) -> None:
    monkeypatch.setattr("saccade.tasks.joint.detected.LEAST", 0.0)
    found = saccade.load(detector, device="cpu").predict(images / "0.png", threshold=0.0)
    boxes = list(dict.fromkeys(one.box for one in found.objects))
    expected = load_joint(joint["referring"]).predict(images / "0.png", "the ring", boxes)
    asked = ("predict", joint["referring"], images / "0.png", "the ring", "--detector", detector)
    code, out, _ = run(capsys, *asked)
    (told,) = rows(out)
    assert code == 0
    assert [float(x) for x in told] == pytest.approx([*expected.box, expected.score], abs=0.06)
    code, _, err = run(capsys, *asked[:-1], joint["fitting"])
    assert (code, "finds no objects; name a run that does" in err) == (2, True)


def test_phrases_are_drawn_each_under_a_name_of_its_own(
    joint: dict[str, Path], images: Path, tmp_path: Path, capsys: Capture
) -> None:
    drawn = tmp_path / "new" / "drawn"
    boxes = ("--boxes", images / "boxes.jsonl", "--draw", drawn)
    asked = ("--text", "the ring", "--text", "the star")
    assert run(capsys, "predict", joint["referring"], images / "0.png", *asked, *boxes)[0] == 0
    assert {path.name for path in drawn.iterdir()} == {"0.png", "0-2.png"}
    with Image.open(drawn / "0.png") as image:
        assert image.size == (64 * 8, 48 * 8)


def test_images_are_ranked_by_a_sentence_and_sentences_by_an_image(
    joint: dict[str, Path], images: Path, capsys: Capture
) -> None:
    boxes = ("--boxes", images / "boxes.jsonl")
    code, out, _ = run(capsys, "predict", joint["fitting"], images, "a red ring", *boxes)
    found = [float(row[1]) for row in rows(out)]
    assert (code, len(found), found) == (0, 3, sorted(found, reverse=True))
    texts = ("a red ring", "the star", "two moons and a cross")
    asked = [part for text in texts for part in ("--text", text)]
    code, out, _ = run(capsys, "predict", joint["fitting"], images / "0.png", *asked, *boxes)
    assert {row[0] for row in rows(out)} == set(texts)
    found = [float(row[1]) for row in rows(out)]
    assert (code, found) == (0, sorted(found, reverse=True))
    model = load_joint(joint["fitting"])
    best = max(texts, key=lambda text: model.predict(images / "0.png", text, BOXES).score)
    assert rows(out)[0][0] == best


def test_blanks_are_filled(joint: dict[str, Path], images: Path, capsys: Capture) -> None:
    found = load_joint(joint["joint"]).predict(images / "0.png", ASKED, BOXES, best=2)
    boxes = ("--boxes", images / "boxes.jsonl", "--best", 2)
    code, out, _ = run(capsys, "predict", joint["joint"], images / "0.png", ASKED, *boxes)
    words = ", ".join(f"{round(p, 6):.3f}".join((f"{word} ", "")) for word, p in found.blanks[0])
    assert (code, out) == (0, f"{found.text}\t{found.fits:.4f}\n  {words}\n")


@pytest.mark.parametrize("kind", one_fast(EVERY))
def test_eval_prints_a_table_keeps_it_and_gives_json(
    joint: dict[str, Path], kind: str, tmp_path: Path, capsys: Capture
) -> None:
    own = shutil.copytree(joint[kind], tmp_path / "own")
    code, out, _ = run(capsys, "eval", own, "--keep", "--json")
    found = json.loads(out)
    assert (code, found["split"], found["images"]) == (0, "test", 12)
    kept = json.loads((own / "scores-test.json").read_text())["scores"]
    figure = {"answering": "by_kind_count", "fitting": "image_recall_R@1"}.get(kind, "images")
    flat = found["by_kind"]["count"] if kind == "answering" else found["images"]
    assert kept[figure] == (found["image_recall"]["R@1"] if kind == "fitting" else flat)
    code, out, _ = run(capsys, "eval", own, "--split", "valid")
    told = {
        "answering": "  to count",
        "referring": "accuracy at IoU 0.5",
        "fitting": "sentences by images",
        "joint": "word accuracy",
        "choosing": "chance    0.25",
    }
    assert (code, told[kind] in out, "valid" in out) == (0, True, True)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["fitting", "joint"])
def test_the_pointing_game_is_played_beside_the_scores(
    joint: dict[str, Path], kind: str, tmp_path: Path, capsys: Capture, monkeypatch: Patch
) -> None:
    own = shutil.copytree(joint[kind], tmp_path / "own")
    code, out, _ = run(capsys, "eval", own, "--pointing", "--json", "--keep")
    game = json.loads(out)["pointing"]
    assert code == 0
    assert 12 <= game["nouns"] <= 12 * 3
    assert 0 < game["chance"] < 1
    assert list(game["layers"]) == ["joins.0.words.cross", "joins.1.words.cross"]
    kept = json.loads((own / "scores-test.json").read_text())["scores"]
    assert (kept["pointing_nouns"], kept["pointing_chance"]) == (game["nouns"], game["chance"])
    code, out, _ = run(capsys, "eval", own, "--pointing")
    layer = game["layers"]["joins.0.words.cross"]
    told = [f"{share:.3f}" for share in (layer["mean"], *layer["heads"])]
    (line,) = (line.split() for line in out.splitlines() if line.startswith("joins.0"))
    assert (code, line) == (0, ["joins.0.words.cross", *told])
    assert f"how often {game['nouns']} nouns look at the region that they mean" in out
    # Whoever asks for it on data of their own is told at once, not after all has been scored.
    home = {"fitting": "fitting", "joint": "pretraining"}[kind]
    monkeypatch.setattr(f"saccade.app.kinds.joint.{home}.evaluate_{home}", pytest.fail)
    (own / "captions.jsonl").write_text("")
    code, _, err = run(capsys, "eval", own, "--pointing", "--data", own)
    assert (code, "--pointing is of shapes, of which the truth is known; leave it out" in err) == (
        2,
        True,
    )


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["png", "svg", "json", "html"])
@pytest.mark.parametrize("which", ["referring", "cells", "joint"])
def test_a_look_is_saved_in_every_form(
    joint: dict[str, Path], images: Path, tmp_path: Path, capsys: Capture, which: str, ending: str
) -> None:
    boxes = () if which == "cells" else ("--boxes", images / "boxes.jsonl")
    out = tmp_path / f"x.{ending}"
    code, said, err = run(capsys, "look", joint[which], images / "0.png", ASKED, *boxes, "-o", out)
    assert (code, "wrote" in err) == (0, True)
    if ending == "json":
        table = json.loads(out.read_text())
        assert table["words"][1:-1] == [
            "is",
            "the",
            "___" if which == "joint" else "<unknown>",
            "ring",
        ]
        assert [len(row) for row in table["weights"]] == [len(table["regions"])] * len(
            table["words"]
        )
        for row in table["weights"]:
            assert sum(row) == pytest.approx(1, abs=1e-3)
        assert (table["grid"] is None) == (which != "cells")
    elif ending == "png":
        with Image.open(out) as image:
            assert image.size[0] > 400
    else:
        assert ASKED.split(maxsplit=1)[0] in out.read_text()
    if ending == "html":
        assert said == ""
    else:
        assert said.startswith(f"{ASKED} → ")


@pytest.mark.slow
def test_a_page_of_a_split_tells_what_is_right(
    joint: dict[str, Path], tmp_path: Path, capsys: Capture
) -> None:
    for kind in EVERY:
        page = tmp_path / f"{kind}.html"
        code, out, _ = run(capsys, "look", joint[kind], "--split", "test", "--rows", 3, "-o", page)
        assert (code, out) == (0, "")
        assert page.stat().st_size > 100_000
    code, out, _ = run(capsys, "look", joint["referring"], "--split", "test", "--rows", 2)
    assert (code, out.count(" → ")) == (0, 2)


def test_a_run_on_data_of_ones_own_is_scored_and_looked_at_with_its_detector(
    detector: Path, tmp_path: Path, capsys: Capture, monkeypatch: Patch
) -> None:
    monkeypatch.setenv("SACCADE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("saccade.tasks.joint.detected.LEAST", 0.0)
    own = shutil.copytree(detector, tmp_path / "detr")
    data = user_questions(tmp_path / "data", boxes=False)
    folder = joint_run(tmp_path / "own", "answering", data=str(data), detector=str(own))
    code, out, _ = run(capsys, "eval", folder, "--split", "valid", "--json")
    assert (code, json.loads(out)["questions"]) == (0, 1)
    page = tmp_path / "page.html"
    look = ("look", folder, "--split", "valid", "-o", page)
    assert run(capsys, *look)[0] == 0
    assert shapes.KINDS[0] in page.read_text()
    shutil.rmtree(own)
    for command in (("eval", folder, "--split", "valid"), look):
        code, _, err = run(capsys, *command)
        assert code == 2
        assert (
            "the detector that the run was trained with, which must stay where it was: "
            f"there is no run at {own}; `saccade train NAME` makes one"
        ) in err
        assert err.count("\n") == 1


def test_python_looks_at_what_it_predicted(
    joint: dict[str, Path], images: Path, tmp_path: Path
) -> None:
    model = load_joint(joint["answering"])
    look = model.predict(images / "0.png", ASKED, BOXES).look(layer=0, head=1)
    assert "joins.0.words.cross, head 1" in look.matrix.title
    assert look.matrix.columns == ["the image", "1", "2", "3"]
    assert look.save(tmp_path / "x.html").stat().st_size > 100_000
    assert look.matrix.weights.sum(dim=1).tolist() == pytest.approx([1.0] * len(look.matrix.rows))
    pieces = model.look(Image.open(images / "0.png"), ASKED, BOXES, units="pieces")
    assert len(pieces.matrix.rows) >= len(look.matrix.rows)
    assert look._repr_html_().startswith("<iframe")
    assert look._repr_png_().startswith(b"\x89PNG")
    assert len(repr(look)) < 400, "a notebook stores it"
    document = look.film.document()
    regions = document.looks[0].regions
    assert regions is not None
    assert (document.kind, regions.asked, len(regions.boxes)) == ("joint", ASKED, 4)


def test_answers_of_another_run_are_refused(joint: dict[str, Path], tmp_path: Path) -> None:
    own = shutil.copytree(joint["answering"], tmp_path / "own")
    rewrite(own / "answers.json", json.dumps({"answers": ANSWERS.names[1:]}))
    with pytest.raises(RunError, match=r"answers.json has 7 answers, and the model tells 8 apart"):
        saccade.load(own, device="cpu")
    (own / "answers.json").write_text("[]")
    with pytest.raises(RunError, match="does not say what the run answers"):
        saccade.load(own, device="cpu")
