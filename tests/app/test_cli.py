"""The command line as a user meets it: what it prints, where, and with which exit code."""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from saccade.app.cli import COMMANDS, main
from saccade.models.text.gpt import GptConfig
from saccade.tasks.language.task import LanguageSettings
from saccade.train.recipes import RECIPES
from saccade.train.run import train
from tests.app.conftest import QUICK
from tests.train.small import ignore


def run(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["saccade", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch


def test_every_command_teaches_with_help(monkeypatch: Patch, capsys: Capture) -> None:
    for command in COMMANDS:
        assert run([command, "--help"], monkeypatch) == 0
        assert len(capsys.readouterr().out) > 200, command


def test_help_of_a_recipe_shows_its_own_values(monkeypatch: Patch, capsys: Capture) -> None:
    assert run(["train", "transformer", "--help"], monkeypatch) == 0
    text = capsys.readouterr().out
    assert "--model.width INT" in text
    assert "192" in text
    assert "--source STR" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fly"], "there is no command 'fly'; there are: train, eval"),
        (["train", "lstm"], "no recipe 'lstm'; there are: rnn-lm, rnn-seq2seq"),
        (["train", "--data", "x"], "name a recipe first: saccade train RECIPE --data x"),
        (["train", "gpt", "--data", "/no/such"], "/no/such"),
        (["eval", "/no/run"], "there is no run at /no/run; `saccade train NAME` makes one"),
        (["describe", "lstm"], "no recipe 'lstm'"),
        (["train", "transformer", "--model.heads", "7"], "width=192 does not divide into heads=7"),
        (["train", "rnn-lm", "--train.device", "moon"], "device='moon' cannot be used here"),
    ],
)
def test_a_mistake_gives_one_line_and_exit_code_2(
    arguments: list[str], message: str, monkeypatch: Patch, capsys: Capture, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(arguments, monkeypatch) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert "Traceback" not in captured.err


@pytest.mark.slow
@pytest.mark.parametrize("line", ["train vit --data {}", "describe {}", "serve {}", "compare {}"])
@pytest.mark.parametrize("name", [300 * "a", "locked/runs"])
def test_a_path_that_the_system_refuses_gives_one_line_whoever_touches_it(
    line: str, name: str, tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    plain = os.stat

    def refuse(path: Any, *rest: Any, **more: Any) -> os.stat_result:  # as it does all but root
        if "locked" in str(path):
            raise PermissionError(13, "Permission denied", str(path))
        return plain(path, *rest, **more)

    monkeypatch.setattr(os, "stat", refuse)
    assert run(line.format(tmp_path / name).split(), monkeypatch) == 2
    told = [one for one in capsys.readouterr().err.splitlines() if one.startswith("saccade: ")]
    assert len(told) == 1
    assert name in told[0]


def test_list_knows_every_recipe(monkeypatch: Patch, capsys: Capture) -> None:
    assert run(["list", "--json"], monkeypatch) == 0
    rows = json.loads(capsys.readouterr().out)
    names = [row["recipe"] for row in rows]
    assert names[:6] == [
        "rnn-lm",
        "rnn-seq2seq",
        "rnn-attention",
        "conv-seq2seq",
        "transformer",
        "gpt",
    ]
    assert all(row["parameters"] > 0 for row in rows)
    sizes = {row["recipe"]: (row["parameters"], row.get("vocabulary")) for row in rows}
    assert sizes["rnn-lm"] == (35_344, 16)  # what training it says
    assert sizes["rnn-lm-ptb"][1] == 10_004  # as on the data that it is for
    assert run(["describe", "rnn-lm", "--json"], monkeypatch) == 0
    described = json.loads(capsys.readouterr().out)
    assert (described["parameters"], described["vocabulary"]) == sizes["rnn-lm"]


@pytest.mark.slow
def test_the_list_and_the_help_of_train_name_every_recipe_within_80_columns(
    monkeypatch: Patch, capsys: Capture
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for arguments in (["list"], ["train", "--help"]):
        assert run(arguments, monkeypatch) == 0
        lines = capsys.readouterr().out.splitlines()
        assert max(map(len, lines)) <= 80
        assert {*RECIPES} <= {line.split()[0] for line in lines if line.startswith("  ")}


def test_the_list_follows_the_lectures(monkeypatch: Patch, capsys: Capture) -> None:
    assert run(["list"], monkeypatch) == 0
    lines = capsys.readouterr().out.splitlines()
    numbers = [int(line[1:].split()[0]) for line in lines if line[:1] == "S" and line[1].isdigit()]
    assert numbers == sorted(numbers)
    assert numbers[-1] == 25


def test_describe_counts_the_weights_of_a_preset(monkeypatch: Patch, capsys: Capture) -> None:
    assert run(["describe", "gpt2"], monkeypatch) == 0
    assert "124,439,808" in capsys.readouterr().out


def test_a_recipe_as_toml_can_be_trained(
    monkeypatch: Patch, capsys: Capture, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["describe", "rnn-lm", "--toml"], monkeypatch) == 0
    text = capsys.readouterr().out.replace("steps = 500", "steps = 2")
    Path("mine.toml").write_text(text.replace("sentences = 3000", "sentences = 30"))
    assert run(["train", "mine.toml"], monkeypatch) == 0
    assert Path("runs/mine/model.safetensors").is_file()


@pytest.mark.slow
def test_eval_prints_scores_and_the_signature(
    translator: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    assert (
        run(["eval", str(translator), "--split", "valid", "--beam", "1", "--json"], monkeypatch)
        == 0
    )
    scores = json.loads(capsys.readouterr().out)
    assert {"bleu", "chrf", "perplexity", "alignment_error_rate", "bleu_by_length"} <= set(scores)
    assert "version:" in scores["signature"]
    assert sum(scores["sentences_by_length"].values()) == scores["sentences"]


def test_eval_of_a_language_model_samples_its_world(
    writer: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    assert run(["eval", str(writer), "--json"], monkeypatch) == 0
    scores = json.loads(capsys.readouterr().out)
    assert scores["samples"] == 1000
    assert scores["perplexity"] > 1


def test_lines_that_are_too_long_for_the_model_are_left_out_and_counted(
    tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    task = LanguageSettings(unit="lines", level="words", sentences=60)
    model = GptConfig(width=16, depth=1, heads=2, longest=16)
    train(replace(RECIPES["gpt"], model=model, task=task, train=QUICK), tmp_path / "run", ignore)
    test, command = tmp_path / "test.txt", ["eval", str(tmp_path / "run"), "--json", "--data"]
    test.write_text("I am\n" + "I " * 16 + "\n" + "I " * 15 + "\n")
    capsys.readouterr()
    assert run([*command, str(test)], monkeypatch) == 0
    scores = json.loads(capsys.readouterr().out)
    assert (scores["texts"], scores["left_out"]) == (2, 1)
    test.write_text("I " * 16 + "\n")
    assert run([*command, str(test)], monkeypatch) == 2
    told = "none of the 1 lines has under 16 tokens, and run sees no more; give shorter ones"
    assert told in capsys.readouterr().err


def test_predict_reads_arguments_a_file_or_standard_input(
    translator: Path, monkeypatch: Patch, capsys: Capture, tmp_path: Path
) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("The dog eats.\nShe sleeps.\n")
    assert run(["predict", str(translator), "The dog eats.", "She sleeps."], monkeypatch) == 0
    given = capsys.readouterr().out
    assert run(["predict", str(translator), str(texts)], monkeypatch) == 0
    from_file = capsys.readouterr().out
    with texts.open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        assert run(["predict", str(translator)], monkeypatch) == 0
    assert given == from_file == capsys.readouterr().out
    assert len(given.splitlines()) == 2


def test_predict_tells_scores_as_json(
    translator: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    arguments = ["predict", str(translator), "The dog eats.", "--n-best", "2", "--json"]
    assert run(arguments, monkeypatch) == 0
    (one,) = json.loads(capsys.readouterr().out)
    assert one["source"] == "The dog eats."
    assert one["others"][0]["score"] <= one["score"]


def test_a_language_model_goes_on_from_a_prompt(
    writer: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    arguments = ["predict", str(writer), "I am", "--count", "3", "--most-tokens", "4"]
    assert run(arguments, monkeypatch) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert all(line.startswith("I am") for line in lines)


def test_look_prints_the_alignment_and_writes_the_picture(
    translator: Path, monkeypatch: Patch, capsys: Capture, tmp_path: Path
) -> None:
    picture = tmp_path / "look.svg"
    assert run(["look", str(translator), "The dog eats.", "-o", str(picture)], monkeypatch) == 0
    captured = capsys.readouterr()
    assert "← " in captured.out
    assert f"wrote {picture} ({picture.stat().st_size:,} bytes)" in captured.err
    assert picture.read_text().startswith("<svg")


@pytest.mark.slow
def test_look_writes_a_page_and_compares_two_runs(
    translator: Path, monkeypatch: Patch, capsys: Capture, tmp_path: Path
) -> None:
    page, both = tmp_path / "look.html", tmp_path / "both.html"
    arguments = ["look", str(translator), "The dog eats.", "--beam", "2", "-o"]
    assert run([*arguments, str(page)], monkeypatch) == 0
    assert "← " in capsys.readouterr().out
    assert run([*arguments, str(both), "--compare", str(translator)], monkeypatch) == 0
    assert f"wrote {both}" in capsys.readouterr().err
    for path in (page, both):
        assert path.read_text().startswith("<!doctype html>")
    assert both.read_text().count('"run"') == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--compare", "{run}"], "--compare is shown on a page; name it with --out x.html"),
        (["--zoom", "decoder"], "--zoom decoder: name a site and a head, as decoder.3.self:7"),
        (["-o", "x.gif"], "x.gif: a look is saved as .html, .svg, .png, .json, not .gif"),
        (["--budget", "1"], "budget=1 must be at least 100000 bytes"),
    ],
)
def test_a_mistake_in_looking_gives_one_line(
    options: list[str], message: str, translator: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    options = [option.format(run=translator) for option in options]
    assert run(["look", str(translator), "The dog eats.", *options], monkeypatch) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert "Traceback" not in captured.err


def test_bad_data_stop_training_with_their_lines(
    monkeypatch: Patch, capsys: Capture, tmp_path: Path
) -> None:
    (tmp_path / "train.en").write_text("a\n\nc\n")
    (tmp_path / "train.fr").write_text("x\ny\nz\n")
    arguments = [
        "train",
        "transformer",
        "--data",
        str(tmp_path),
        "--source",
        "en",
        "--target",
        "fr",
    ]
    monkeypatch.chdir(tmp_path)
    assert run(arguments, monkeypatch) == 2
    error = capsys.readouterr().err
    assert "train.en:2: one side empty: the source" in error
    assert "--skip-bad 1" in error
