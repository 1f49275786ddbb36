"""Images and texts compared, as a user meets it: from Python and from the command line."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

import saccade
from saccade.app.kinds.matching.model import Match, MatchingModel, distinct_names
from saccade.errors import ConfigError, DataError
from tests.app.joint_runs import write_images
from tests.app.matching_runs import matching_run
from tests.app.test_classification import run
from tests.app.test_cli import Capture, Patch

TEXTS = ["a red circle", "a blue star above a black ring", "two crosses"]


@pytest.fixture
def images(tmp_path: Path) -> Path:
    return write_images(tmp_path / "images")


@pytest.fixture(autouse=True)
def few_scenes(monkeypatch: Patch) -> None:
    for kind in ("joint", "classification"):
        monkeypatch.setattr(f"saccade.tasks.{kind}.data.HELD_BACK", 12)


@pytest.fixture(scope="module")
def model(matcher: Path) -> MatchingModel:
    loaded = saccade.load(matcher, device="cpu")
    assert isinstance(loaded, MatchingModel)
    return loaded


@pytest.fixture(scope="module")
def vit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return matching_run(tmp_path_factory.mktemp("runs") / "vit", "vit-nano")


def asked(texts: list[str]) -> list[str]:
    return [part for text in texts for part in ("--text", text)]


def rows(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines()]


def test_python_says_of_many_what_it_says_of_each(model: MatchingModel, images: Path) -> None:
    files = [images / "0.png", str(images / "1.png"), (images / "2.png").read_bytes()]
    many = model.predict(files, TEXTS[0])
    alone = [model.predict(file, TEXTS[0]) for file in files]
    assert [one.score for one in many] == pytest.approx([one.score for one in alone], abs=1e-5)
    assert isinstance(alone[0], Match)
    assert alone[0].given == TEXTS[0]
    assert str(alone[0]) == f"{alone[0].score:.4f}"
    ranked = model.rank(files, TEXTS[0])
    assert [one.score for one in ranked] == sorted((one.score for one in many), reverse=True)
    assert [one.score for one in model.rank(files[0], TEXTS[0])] == [alone[0].score]
    assert "MatchingModel('matcher'" in repr(model)


def test_python_tells_images_apart_by_texts(model: MatchingModel, images: Path) -> None:
    found = model.predict(images / "0.png", TEXTS)
    cosines = torch.tensor([model.predict(images / "0.png", text).score for text in TEXTS])
    expected = (model.tool.model.scale.detach() * cosines).softmax(dim=0)
    torch.testing.assert_close(found.probabilities, expected, atol=1e-3, rtol=1e-3)
    assert found.text == TEXTS[int(cosines.argmax())]
    twice = model.predict(images / "0.png", [*TEXTS, TEXTS[0]])
    assert len(twice.probabilities) == 3  # a text that comes again is the same class


def test_python_refuses_in_a_line(model: MatchingModel, images: Path) -> None:
    file = images / "0.png"
    with pytest.raises(DataError, match="there are no texts to tell images apart by; give one"):
        model.predict(file, [])
    with pytest.raises(DataError, match="give a text, not int"):
        model.predict(file, 3)
    with pytest.raises(DataError, match="int is no image"):
        model.predict(3, TEXTS[0])
    with pytest.raises(ConfigError, match="of='up' is no class of this model; there are: a red"):
        model.look(file, TEXTS, of="up")
    assert distinct_names(["a", "b", "a"]) == ("a", "b", "a (2)")


def test_several_texts_get_probabilities_for_each_image(
    matcher: Path, model: MatchingModel, images: Path, capsys: Capture
) -> None:
    code, out, _ = run(capsys, "predict", matcher, images / "0.png", *asked(TEXTS))
    found = model.predict(images / "0.png", TEXTS)
    assert code == 0
    assert rows(out) == [[text, f"{p:.4f}"] for text, p in found.guesses]
    code, out, _ = run(capsys, "predict", matcher, images, *asked(TEXTS))
    files = sorted(images.glob("*.png"))
    every = model.predict(files, TEXTS)
    assert rows(out) == [
        [str(file), one.text, f"{one.score:.4f}"] for file, one in zip(files, every, strict=True)
    ]
    code, out, _ = run(capsys, "predict", matcher, images, *asked(TEXTS), "--best", 2, "--json")
    assert [len(row["guesses"]) for row in json.loads(out)] == [2, 2, 2]


def test_one_text_ranks_images_by_their_likeness(
    matcher: Path, model: MatchingModel, images: Path, capsys: Capture
) -> None:
    files = sorted(images.glob("*.png"))
    ranked = model.rank(files, TEXTS[1])
    code, out, _ = run(capsys, "predict", matcher, images, TEXTS[1])
    assert code == 0
    assert rows(out) == [[one.name, one.text] for one in ranked]
    code, out, _ = run(capsys, "predict", matcher, images / "1.png", TEXTS[1])
    assert rows(out) == [[model.predict(images / "1.png", TEXTS[1]).text]]
    (images / "bad.png").write_bytes(b"no image")
    code, out, err = run(capsys, "predict", matcher, images, TEXTS[1], "--json")
    table = json.loads(out)
    assert code == 1
    assert "1 of 4 images could not be read" in err
    assert [row["file"] for row in table[:3]] == [one.name for one in ranked]
    assert "error" in table[3]


def test_eval_tells_recall_both_ways_and_keeps_it(
    matcher: Path, tmp_path: Path, capsys: Capture
) -> None:
    own = shutil.copytree(matcher, tmp_path / "own")
    code, out, _ = run(capsys, "eval", own, "--json", "--keep")
    found = json.loads(out)
    assert code == 0
    assert (found["images"], found["split"]) == (12, "test")
    kept = json.loads((own / "scores-test.json").read_text())["scores"]
    assert kept["image_recall_R@1"] == found["image_recall"]["R@1"]
    code, out, _ = run(capsys, "eval", matcher, "--split", "many")
    assert "images by sentences" in out
    assert "sentences by images" in out


def test_eval_tells_how_classes_fare_that_nobody_has_learnt(
    matcher: Path, images: Path, capsys: Capture
) -> None:
    code, out, _ = run(capsys, "eval", matcher, "--classes", "shapes")
    assert code == 0
    assert "classes as texts: the picture shows a {}; top-1 by chance 0.1250" in out
    assert "top-5" in out
    for name in ("red_ring", "zeppelin"):
        (images / "test" / name).mkdir(parents=True)
        (images / "test" / name / "0.png").write_bytes((images / "0.png").read_bytes())
    classes = images / "test"
    code, out, _ = run(capsys, "eval", matcher, "--classes", classes, "--template", "a {}")
    assert code == 0
    assert "1 of them have words that the model does not know: zeppelin" in out
    code, out, _ = run(capsys, "eval", matcher, "--classes", classes, "--json")
    found = json.loads(out)
    assert (found["images"], found["template"]) == (2, "a photo of a {}")


@pytest.mark.slow
@pytest.mark.parametrize("encoder", ["resnet-nano", "vit-nano"])
def test_look_shows_where_in_the_image_the_likeness_came_from(
    matcher: Path, vit: Path, images: Path, encoder: str, tmp_path: Path, capsys: Capture
) -> None:
    folder = matcher if encoder == "resnet-nano" else vit
    kinds = ["Grad-CAM"] if folder is matcher else ["relevance", "rollout", "Grad-CAM"]
    code, out, _ = run(capsys, "look", folder, images / "0.png", *asked(TEXTS))
    assert code == 0
    assert out.splitlines()[0].rpartition(" ")[0] in TEXTS
    assert all(kind in out for kind in kinds)
    for ending in ("png", "svg", "json", "html"):
        path = tmp_path / f"x.{ending}"
        code, _, _ = run(capsys, "look", folder, images / "0.png", TEXTS[0], "-o", path)
        assert code == 0
        assert path.stat().st_size > 200
    table = json.loads((tmp_path / "x.json").read_text())
    assert table["words"][: len(kinds)] == kinds
    cosine = saccade.load(folder, device="cpu").predict(images / "0.png", TEXTS[0]).score
    assert table["caption"] == f"{TEXTS[0]}: cosine {cosine:.3f}"


def document(page: Path) -> Any:
    text = page.read_text(encoding="utf-8")
    start = text.index('id="saccade-look"')
    return json.loads(text[text.index(">", start) + 1 : text.index("</script>", start)])


@pytest.mark.slow
def test_a_page_tells_the_captions_of_a_split_from_one_another(
    matcher: Path, tmp_path: Path, capsys: Capture
) -> None:
    page = tmp_path / "page.html"
    code, _, _ = run(capsys, "look", matcher, "--split", "test", "--rows", 3, "-o", page)
    assert code == 0
    whole = document(page)
    assert (whole["kind"], len(whole["looks"])) == ("classification", 3)
    truths = [look["classes"]["truth"] for look in whole["looks"]]
    guesses = {label for look in whole["looks"] for label, _ in look["classes"]["guesses"]}
    assert guesses == {truth for (truth,) in truths}


def test_look_at_words_shows_which_of_them_count(
    matcher: Path, model: MatchingModel, images: Path, tmp_path: Path, capsys: Capture
) -> None:
    given = (images / "0.png", images / "1.png", TEXTS[1], "--words")
    code, out, _ = run(capsys, "look", matcher, *given)
    assert code == 0
    assert "relevance" in out
    assert "star" in out
    page = tmp_path / "words.html"
    code, _, _ = run(capsys, "look", matcher, *given, "-o", page)
    assert code == 0
    whole = document(page)
    assert whole["kind"] == "understanding"
    assert {str(images / name) for name in ("0.png", "1.png")} == {
        label for label, _ in whole["looks"][0]["classes"]["guesses"]
    }
    look = model.look_at_words([images / "0.png", images / "1.png"], TEXTS[1])
    assert look.rows[:2] == ["relevance", "rollout"]
    words = look.columns
    assert [words[i] for i in range(len(words)) if words[i] in TEXTS[1].split()]
