"""A model that fills blanks as a user meets it: from Python, from the command line, served."""

import io
import json
from pathlib import Path

import pytest

import saccade
from saccade.app.kinds.masked.kind import MaskedModel
from saccade.app.look.settings import LookSettings
from saccade.errors import ConfigError, DataError
from tests.app.serve.serving import LocalServer
from tests.app.test_classification import run
from tests.app.test_cli import Capture, Patch

TEXT = "The old ___ is not [MASK]."


@pytest.fixture(scope="module")
def model(filler: Path) -> MaskedModel:
    found = saccade.load(filler, device="cpu")
    assert isinstance(found, MaskedModel)
    return found


def test_a_text_comes_back_filled_with_the_best_words_for_each_blank(model: MaskedModel) -> None:
    found = model.predict(TEXT)
    first, second = (words[0].word for words in found.blanks)
    assert found.text == str(found) == f"The old {first} is not {second}."
    assert found.given == TEXT
    assert [len(words) for words in found.blanks] == [5, 5]
    many = model.predict([TEXT, "___"], n_best=2)
    assert [one.given for one in many] == [TEXT, "___"]
    assert many[0].text == found.text
    assert [len(words) for words in many[0].blanks] == [2, 2]
    assert repr(found).startswith("MaskedPrediction('The old ")
    assert "filler" in repr(model)
    with pytest.raises(DataError, match="no blank to fill"):
        model.predict("no blank")
    with pytest.raises(DataError, match="give a text or a list of texts, not int"):
        model.predict(3)  # type: ignore[call-overload]


def test_lines_of_a_file_and_of_standard_input_stay_aligned(
    filler: Path, model: MaskedModel, tmp_path: Path, capsys: Capture, monkeypatch: Patch
) -> None:
    lines = [TEXT, "", "They ___ here."]
    (tmp_path / "texts.txt").write_text("\n".join(lines) + "\n")
    expected = [model.predict(line).text if line else "" for line in lines]
    code, out, _ = run(capsys, "predict", filler, tmp_path / "texts.txt")
    assert (code, out.split("\n")) == (0, [*expected, ""])
    typed = io.TextIOWrapper(io.BytesIO("\n".join(lines).encode()))
    monkeypatch.setattr("sys.stdin", typed)
    code, out, _ = run(capsys, "predict", filler, "-")
    assert (code, out.split("\n")) == (0, [*expected, ""])


def test_the_best_words_are_printed_below_and_told_as_json(
    filler: Path, model: MaskedModel, capsys: Capture
) -> None:
    found = model.predict(TEXT, n_best=3)
    _, out, _ = run(capsys, "predict", filler, TEXT, "--n-best", "3")
    below = [
        "  " + ", ".join(f"{word} {probability:.3f}" for word, probability in words)
        for words in found.blanks
    ]
    assert out.splitlines() == [found.text, *below]
    _, out, _ = run(capsys, "predict", filler, TEXT, "--json")
    (told,) = json.loads(out)
    assert (told["given"], told["text"]) == (TEXT, found.text)
    assert [blank["word"] for blank in told["blanks"]] == [words[0].word for words in found.blanks]
    assert [len(blank["words"]) for blank in told["blanks"]] == [5, 5]


def test_eval_tells_the_figures_of_a_split(
    filler: Path, capsys: Capture, monkeypatch: Patch, tmp_path: Path
) -> None:
    monkeypatch.setattr("saccade.tasks.masked.task.HELD_BACK", 40)
    code, out, _ = run(capsys, "eval", filler, "--json")
    found = json.loads(out)
    assert code == 0
    assert (found["split"], found["texts"] + found["left_out"]) == ("test", 40)
    assert {"loss", "perplexity", "accuracy", "tokens"} <= set(found)
    assert run(capsys, "eval", filler, "--json")[1] == out
    (tmp_path / "own.txt").write_text("The dog is here.\n" + "very " * 300 + "long\n")
    _, out, _ = run(capsys, "eval", filler, "--data", tmp_path / "own.txt", "--json")
    found = json.loads(out)
    assert (found["split"], found["texts"], found["left_out"]) == ("own.txt", 1, 1)
    (tmp_path / "own.txt").write_text("very " * 300 + "long\n")
    code, _, error = run(capsys, "eval", filler, "--data", tmp_path / "own.txt")
    assert code
    assert "none of the 1 texts has words and at most 200 tokens" in error


@pytest.mark.parametrize("ending", ["html", "svg", "png", "json"])
def test_a_look_is_printed_and_drawn(
    ending: str, filler: Path, tmp_path: Path, capsys: Capture
) -> None:
    code, out, _ = run(capsys, "look", filler, TEXT, "--units", "words")
    rows = [line.split("←")[0].strip() for line in out.splitlines()]
    assert code == 0
    assert rows == ["<start>", "The", "old", "___", "is", "not", "___", "."]
    path = tmp_path / f"look.{ending}"
    assert run(capsys, "look", filler, TEXT, "-o", path)[0] == 0
    assert path.stat().st_size > 1000


def test_a_look_has_layers_heads_and_the_rollout(model: MaskedModel) -> None:
    mean, head = model.look(TEXT, layer=0), model.look(TEXT, layer=0, head=1)
    rolled = model.predict(TEXT).look(layer="rollout")
    for look in (mean, head, rolled):
        assert look.weights.sum(dim=-1).tolist() == pytest.approx([1.0] * len(look.rows), abs=1e-3)
    assert rolled.title == "filler: rollout, through all layers"
    assert mean.caption == model.predict(TEXT).text
    assert model.look("without a blank").caption == "without a blank"
    with pytest.raises(ConfigError, match="only reads; leave it out"):
        model.look(TEXT, LookSettings(most_tokens=3))


@pytest.mark.slow
def test_an_electra_is_trained_and_used_by_the_same_commands(
    tmp_path: Path, capsys: Capture, monkeypatch: Patch
) -> None:
    monkeypatch.setattr("saccade.tasks.masked.task.HELD_BACK", 40)
    run_folder, small = tmp_path / "electra", ["--train.steps", "3", "--train.device", "cpu"]
    data = ["--sentences", "60", "--vocabulary", "320", "--model.depth", "1"]
    assert run(capsys, "train", "electra", *data, *small, "--out", run_folder)[0] == 0
    figures = json.loads(run(capsys, "eval", run_folder, "--json")[1])
    assert {"loss", "accuracy", "replaced", "recall"} <= set(figures)
    _, out, _ = run(capsys, "predict", run_folder, "The old ___ is here.")
    assert out.startswith("The old ")
    assert run(capsys, "look", run_folder, TEXT, "-o", tmp_path / "look.html")[0] == 0


def test_it_is_served(filler: Path, model: MaskedModel) -> None:
    with LocalServer([filler]) as server:
        answer = server.predict([TEXT, "___"], n_best=7).json()["predictions"]
        assert [one["text"] for one in answer] == [one.text for one in model.predict([TEXT, "___"])]
        assert len(answer[0]["blanks"][0]["words"]) == 7
        refusals = {
            "text": ({"text": ""}, "nothing to read in an empty text"),
            "within": ({"text": "un___able"}, "a blank within a word"),
            "none": ({"text": "no blank"}, "write ___ or [MASK]"),
            "long": ({"text": "word " * 150 + "___"}, "filler sees 200"),
            "beam": ({"text": TEXT, "beam": 3}, "fills blanks and writes nothing else"),
        }
        for body, says in refusals.values():
            refused = server.post("/v1/predict", body)
            assert refused.status_code == 422
            assert says in refused.json()["error"]["message"]
            assert refused.json()["error"]["field"] == ("beam" if "beam" in body else "text")
        look = server.post("/v1/look", {"text": TEXT}).json()
        assert (look["kind"], look["subject"]) == ("masked", TEXT)
        assert server.get("/info").json()["runs"][0]["kind"] == "masked"
