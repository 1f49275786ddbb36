"""A model that understands texts as a user meets it: from Python and from the command line."""

import io
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

import saccade
from saccade.app.kinds.understanding.model import UnderstandingModel
from saccade.app.look.document import read_json
from saccade.errors import ConfigError, DataError, RunError
from saccade.train.events import Note
from saccade.train.run import train
from saccade.train.storage.folder import RunFolder
from tests.app.test_classification import run
from tests.app.test_cli import Capture, Patch
from tests.app.understanders import tiny_understander, trained_understander, write_glue
from tests.data.glue_made import glue_folder, lines
from tests.marks import one_fast
from tests.tasks.understanding.texts import sentence, settings_for
from tests.train.small import rewrite

ASKED = "the very old dog sleeps ."


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("understanders")
    made = {
        kind: trained_understander(folder / kind, kind)
        for kind in ("classes", "number", "labels", "tags")
    }
    return {**made, "pairs": trained_understander(folder / "pairs", "classes", pairs=True)}


@pytest.fixture(scope="module")
def glue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("glue")
    data = write_glue(folder / "SST-2")
    train(tiny_understander(settings_for(data, "auto")), folder / "run", lambda event: None)
    return folder / "run"


def loaded(folder: Path) -> UnderstandingModel:
    model = saccade.load(folder, device="cpu")
    assert isinstance(model, UnderstandingModel)
    return model


def test_python_says_what_is_true_of_a_text_of_many_and_of_pairs(runs: dict[str, Path]) -> None:
    model = loaded(runs["classes"])
    one = model.predict(ASKED)
    assert one.text == str(one) == one.labels[0] == one.guesses[0].label
    assert one.score == one.guesses[0].probability
    first, _ = model.predict([ASKED, "a cat"])
    assert first.text == one.text
    assert set(model.labels) == {"dog", "cat", "tree"}
    assert isinstance(loaded(runs["number"]).predict(ASKED).number, float)
    tagged = loaded(runs["tags"]).predict(ASKED)
    assert tagged.words == ASKED.split()
    assert len(tagged.labels) == len(tagged.words)
    pair = loaded(runs["pairs"]).predict((ASKED, "a cat"))
    assert pair.text == loaded(runs["pairs"]).predict(f"{ASKED}\ta cat").text
    cases: list[tuple[str, Any, type[Exception], str]] = [
        ("classes", 3, DataError, "give a text, or a pair as a tuple of two, not int"),
        ("classes", ("a", "b"), DataError, "2 texts where one is read"),
        ("pairs", "alone", DataError, "1 text where a pair is read"),
    ]
    for kind, given, error, message in cases:
        with pytest.raises(error, match=message):
            loaded(runs[kind]).predict(given)
    with pytest.raises(ConfigError, match="best=0"):
        model.predict(ASKED, best=0)


def test_predict_tells_the_best_classes_or_a_line_for_each_text(
    runs: dict[str, Path], tmp_path: Path, capsys: Capture, monkeypatch: Patch
) -> None:
    model = loaded(runs["classes"])
    code, out, _ = run(capsys, "predict", runs["classes"], ASKED, "--best", 2)
    told = [line.split("\t") for line in out.splitlines()]
    expected = model.predict(ASKED, best=2).guesses
    assert (code, told) == (0, [[one.label, f"{one.probability:.4f}"] for one in expected])
    texts = [ASKED, "a cat"]
    lines = [f"{one.text}\t{one.score:.4f}" for one in model.predict(texts)]
    file = tmp_path / "texts.txt"
    file.write_text(f"{ASKED}\n\na cat\n")
    assert run(capsys, "predict", runs["classes"], file)[1].splitlines() == [lines[0], "", lines[1]]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(file.read_bytes())))
    assert run(capsys, "predict", runs["classes"], "-")[1].splitlines() == [lines[0], "", lines[1]]
    code, out, _ = run(capsys, "predict", runs["classes"], *texts, "--json")
    assert [row["labels"] for row in json.loads(out)] == [[line.split("\t")[0]] for line in lines]


def test_numbers_tags_labels_and_pairs_are_told_each_in_their_way(
    runs: dict[str, Path], capsys: Capture
) -> None:
    number = loaded(runs["number"]).predict(ASKED).number
    assert run(capsys, "predict", runs["number"], ASKED)[1].strip() == f"{number:.4g}"
    words, tags = run(capsys, "predict", runs["tags"], ASKED)[1].splitlines()
    assert words.split() == ASKED.split()
    assert tags.split() == loaded(runs["tags"]).predict(ASKED).labels
    assert [words.index(word) for word in ASKED.split()[:2]] == [
        tags.index(tag) for tag in tags.split()[:2]
    ]
    two = run(capsys, "predict", runs["tags"], ASKED, "a cat")[1].splitlines()
    assert two[0] == " ".join(tags.split())
    ways = [(f"{ASKED}\ta cat",), (ASKED, "--second", "a cat")]
    told = {run(capsys, "predict", runs["pairs"], *way)[1] for way in ways}
    assert len(told) == 1
    code, _, err = run(capsys, "predict", runs["pairs"], ASKED)
    assert (code, "give two with a tab between them" in err) == (2, True)
    code, out, _ = run(capsys, "predict", runs["labels"], ASKED, "--json")
    (row,) = json.loads(out)
    assert set(row["labels"]) == {g["label"] for g in row["guesses"] if g["probability"] >= 0.5}


def test_a_text_that_is_too_long_is_cut_and_that_is_said(
    runs: dict[str, Path], capsys: Capture
) -> None:
    code, out, err = run(capsys, "predict", runs["classes"], "dog " * 60, "--json")
    assert (code, json.loads(out)[0]["cut"]) == (0, True)
    assert "cut: 1 of the texts, of which the run reads 32 tokens" in err
    code, _, err = run(capsys, "look", runs["classes"], "dog " * 60)
    assert (code, "cut: 1 of the texts, of which the run reads 32 tokens" in err) == (0, True)
    assert "cut" not in run(capsys, "look", runs["classes"], "dog")[2]


@pytest.mark.parametrize("kind", one_fast(["classes", "number", "labels", "tags", "pairs"]))
def test_eval_has_the_figures_of_each_kind(
    kind: str, runs: dict[str, Path], tmp_path: Path, capsys: Capture
) -> None:
    code, out, _ = run(capsys, "eval", runs[kind], "--json")
    found = json.loads(out)
    assert (code, found["split"], found["texts"]) == (0, "test", 12)
    if kind == "number":
        assert found["mean_squared_error"] >= 0
        assert run(capsys, "eval", runs[kind], "--confusion", "x.png")[0] == 2
        return
    counted = "words" if kind == "tags" else "texts"
    assert sum(one[counted] for one in found["by_class"].values()) >= 12 * (kind != "labels")
    code, out, _ = run(capsys, "eval", runs[kind], "--split", "valid")
    assert (code, "precision" in out, "recall" in out) == (0, True, True)
    if kind in ("classes", "tags"):
        drawn = tmp_path / "confusion.png"
        assert run(capsys, "eval", runs[kind], "--confusion", drawn)[0] == 0
        with Image.open(drawn) as image:
            assert image.size[0] > 100
        right = torch.tensor(found["confusion"]).diagonal().sum().item()
        total = sum(map(sum, found["confusion"]))
        assert found["accuracy"] == pytest.approx(right / total)


def test_a_submission_is_written_where_nothing_is_known(
    glue: Path, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "SST-2.tsv"
    code, told, _ = run(capsys, "eval", glue, "--submission", out)
    rows = [line.split("\t") for line in out.read_text().splitlines()]
    assert (code, rows[0], [row[0] for row in rows[1:]]) == (
        0, ["index", "prediction"], [str(n) for n in range(7)]
    )  # fmt: skip
    assert "what is true of them is not known, so there is nothing to score\n" in told
    _, told, _ = run(capsys, "eval", glue)
    assert "nothing to score; take --split valid, or write GLUE's leaderboard its file" in told
    model = loaded(glue)
    assert model.labels == ("negative", "positive")
    spelt = {"negative": "0", "positive": "1"}
    said = [spelt[one.text] for one in model.predict([sentence(n) for n in range(7)])]
    assert [row[1] for row in rows[1:]] == said
    found = json.loads(run(capsys, "eval", glue, "--split", "valid", "--json")[1])
    assert {"accuracy", "loss", "confusion"} <= set(found)


def test_texts_without_a_label_among_others_are_counted_and_do_not_count(
    runs: dict[str, Path], tmp_path: Path, capsys: Capture
) -> None:
    first, second, *_ = loaded(runs["classes"]).labels
    asked = ("eval", runs["classes"], "--data", tmp_path)
    test = tmp_path / "test.csv"
    test.write_text(f"text,label\n{ASKED},{first}\n{ASKED},\n{ASKED},{second}\n")
    code, told, _ = run(capsys, *asked)
    assert (code, "1 of them have no label, and do not count below" in told) == (0, True)
    found = json.loads(run(capsys, *asked, "--json")[1])
    assert (found["texts"], found["unlabelled"], sum(map(sum, found["confusion"]))) == (3, 1, 2)
    test.write_text(f"text,label\n{ASKED},\n")
    assert run(capsys, *asked)[1].endswith("nothing to score; take --split valid\n")


def test_a_submission_of_a_single_file_gets_its_usual_name_in_a_folder(
    glue: Path, tmp_path: Path, capsys: Capture
) -> None:
    data = glue.parent / "SST-2" / "test.tsv"
    code, _, err = run(capsys, "eval", glue, "--data", data, "--submission", tmp_path)
    assert (code, str(tmp_path / "SST-2.tsv") in err) == (0, True)
    assert len((tmp_path / "SST-2.tsv").read_text().splitlines()) == 8


def test_files_that_cannot_be_written_are_refused_before_anything_is_read(
    glue: Path, tmp_path: Path, capsys: Capture
) -> None:
    nowhere, there = tmp_path / "nowhere", "there is no folder"
    for option, file, told in (
        ("--submission", nowhere / "SST-2.tsv", there),
        ("--submission", nowhere, "must end in .tsv, or be a folder that is there"),
        ("--confusion", nowhere / "x.png", there),
    ):
        code, out, err = run(capsys, "eval", glue, "--split", "valid", option, file)
        assert (bool(code), out, told in err) == (True, "", True)


def test_a_run_of_mnli_answers_the_diagnostic_set(tmp_path: Path, capsys: Capture) -> None:
    data, asked = glue_folder(tmp_path, "MNLI"), glue_folder(tmp_path, "AX")
    train(tiny_understander(settings_for(data, "auto")), tmp_path / "run", lambda event: None)
    code, _, _ = run(capsys, "eval", tmp_path / "run", "--data", asked, "--submission", tmp_path)
    assert (code, (tmp_path / "AX.tsv").read_text()[:19]) == (0, "index\tprediction\n0\t")
    rows = lines(("Premise", "Hypothesis", "Label"), ("A cat.", "No cat.", "contradiction"))
    (tmp_path / "diagnostic-full.tsv").write_text(rows)
    full = ("--data", tmp_path / "diagnostic-full.tsv", "--json")
    found = json.loads(run(capsys, "eval", tmp_path / "run", *full)[1])
    assert "matthews" in found


def test_other_data_may_call_their_columns_otherwise(
    runs: dict[str, Path], tmp_path: Path, capsys: Capture
) -> None:
    data = tmp_path / "other.csv"
    data.write_text(f"body,kind\n{ASKED},dog\n")
    code, _, err = run(capsys, "eval", runs["classes"], "--data", data)
    assert (code, "name yours with --label" in err) == (2, True)
    named = ("--text", "body", "--label", "kind", "--json")
    code, out, _ = run(capsys, "eval", runs["classes"], "--data", data, *named)
    assert (code, json.loads(out)["texts"]) == (0, 1)


def test_a_run_of_other_data_writes_no_submission(runs: dict[str, Path], capsys: Capture) -> None:
    code, _, err = run(capsys, "eval", runs["classes"], "--submission", "x.tsv")
    assert (code, "was not trained on a task of GLUE; leave --submission out" in err) == (2, True)


@pytest.mark.parametrize("ending", one_fast(["png", "svg", "json", "html"]))
def test_a_look_is_written_in_every_form(
    ending: str, runs: dict[str, Path], tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / f"look.{ending}"
    code, told, _ = run(capsys, "look", runs["classes"], ASKED, "-o", out)
    assert (code, out.stat().st_size > 300) == (0, True)
    if ending == "json":
        found = json.loads(out.read_text())
        assert found["rows"] == ["relevance", "rollout", "encoder.0.self", "encoder.1.self"]
        assert found["columns"] == ["<start>", *ASKED.split()]
    assert ("relevance" in told) == (ending != "html")


def test_a_look_is_at_what_is_asked_for(runs: dict[str, Path], capsys: Capture) -> None:
    model = loaded(runs["classes"])
    look = model.predict(ASKED).look()
    assert look.caption.startswith(model.predict(ASKED).text)
    other = next(name for name in model.labels if name != model.predict(ASKED).text)
    assert model.look(ASKED, of=other).caption.startswith(other)
    assert (model.look(ASKED, of=other).weights[0] != look.weights[0]).any()
    assert model.look(ASKED, layer=0).rows == [f"encoder.0.self, head {n}" for n in range(2)]
    pieces = model.look(ASKED, units="pieces")
    torch.testing.assert_close(pieces.weights.sum(dim=1), torch.ones(4))
    tagged = loaded(runs["tags"])
    rows = [f"{word} {tag}" for word, tag in zip(ASKED.split(), tagged.predict(ASKED).labels)]
    assert tagged.look(ASKED).rows == rows
    pair = loaded(runs["pairs"]).look((ASKED, "a cat runs"), flow=True)
    assert (pair.rows, pair.columns) == (["a", "cat", "runs"], ASKED.split())
    code, out, _ = run(capsys, "look", runs["pairs"], ASKED, "--second", "a cat", "--flow")
    assert (code, len(out.splitlines())) == (0, 3)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"of": "poem"}, "of='poem' is no label of this model; there are: "),
        ({"head": 1}, "head=1 is of a layer"),
        ({"layer": 0, "head": 7}, "has no head 7"),
        ({"flow": True}, "--flow is between two texts"),
    ]
    for options, message in wrong:
        with pytest.raises(ConfigError, match=message):
            model.look(ASKED, **options)
    with pytest.raises(ConfigError, match="nothing to look at in an empty text"):
        model.look(" ")
    with pytest.raises(ConfigError, match="it tells a number: leave --of out"):
        loaded(runs["number"]).look(ASKED, of="x")


@pytest.mark.parametrize("kind", ["classes", "number", "labels", "tags", "pairs"])
def test_the_document_says_what_was_said_and_where_each_text_lies(
    kind: str, runs: dict[str, Path]
) -> None:
    model = loaded(runs[kind])
    given: Any = (ASKED, "a cat") if kind == "pairs" else ASKED
    document = model.look(given).document()
    (look,) = document.looks
    assert document.kind == "understanding"
    assert read_json(json.dumps(document, default=vars)) == document
    assert look.text == model.predict(given).text
    text, decision = look.axes["text"], look.axes["decision"]
    parts = ["".join(text.tokens[start:end]).strip() for start, end in text.texts]
    assert parts == ([ASKED, "a cat"] if kind == "pairs" else [ASKED])
    assert [site.name for site in look.sites] == [
        "relevance", "rollout", "encoder.0.self", "encoder.1.self"
    ]  # fmt: skip
    assert [site.derived for site in look.sites] == [True, True, False, False]
    if kind == "tags":
        assert decision.tokens == ASKED.split()
        assert decision.choices is not None
        assert [one[0][0] for one in decision.choices] == model.predict(given).labels
        firsts = [text.tokens[place].strip()[:1] for place in decision.places]
        assert firsts == [word[0] for word in ASKED.split()]
    else:
        assert decision.places == [0]
    assert (look.classes is None) == (kind in ("number", "tags"))


def test_two_runs_are_looked_at_side_by_side(
    runs: dict[str, Path], tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "look.html"
    other = tmp_path / "other"
    shutil.copytree(runs["classes"], other)
    assert run(capsys, "look", runs["classes"], ASKED, "--compare", other, "-o", out)[0] == 0
    assert out.stat().st_size > 10_000


def test_a_run_whose_labels_do_not_fit_is_refused(runs: dict[str, Path], tmp_path: Path) -> None:
    good = json.loads((runs["classes"] / "labels.json").read_text())
    for number, (content, told) in enumerate(
        (
            (json.dumps({**good, "names": ["a"]}), "has 1 labels, and the model tells 3 apart"),
            ("[]", "does not say what the run tells of texts"),
            ("\x00", "does not say what the run tells of texts"),
        )
    ):
        broken = tmp_path / str(number)
        shutil.copytree(runs["classes"], broken)
        rewrite(broken / "labels.json", content)
        with pytest.raises(RunError, match=told):
            saccade.load(broken)


@pytest.mark.slow
def test_it_goes_on_from_a_run_that_filled_hidden_words(
    filler: Path, runs: dict[str, Path], tmp_path: Path
) -> None:
    """The tokenizer and all but the head come along."""
    model = RunFolder(filler).load_recipe().model
    data = Path(loaded(runs["classes"]).tool.settings.data)
    recipe = replace(
        tiny_understander(settings_for(data, "classes", labelled=6)), model=model, init=str(filler)
    )
    told: list[str] = []

    def watch(event: object) -> None:
        if isinstance(event, Note):
            told.append(event.text)

    train(replace(recipe, train=replace(recipe.train, learning_rate=0.0)), tmp_path / "on", watch)
    assert (tmp_path / "on/tokenizer.json").read_bytes() == (filler / "tokenizer.json").read_bytes()
    assert any(line.startswith("starting from ") for line in told)
    before, after = (saccade.load(run, device="cpu").network for run in (filler, tmp_path / "on"))
    kept = {n: w for n, w in after.state_dict().items() if n in before.state_dict()}
    assert any(name.startswith("encoder.") for name in kept)
    for name, weight in kept.items():
        torch.testing.assert_close(weight, before.state_dict()[name])
