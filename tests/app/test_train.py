"""Training from the command line and from Python: presets, options, mistakes, runs described."""

import dataclasses
import inspect
import json
import sys
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import saccade
from saccade.app.cli import main
from saccade.app.cli.train import Options
from saccade.errors import ConfigError, RunError
from saccade.models import FAMILIES, PRESETS
from saccade.tasks import KINDS
from saccade.train.recipes import RECIPES, recipe
from saccade.train.run import TrainingOutcome
from saccade.train.settings import TrainSettings
from tests.marks import one_fast

Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch
QUICK = ["--sentences", "30", "--train.steps", "2", "--train.device", "cpu"]


def run(arguments: list[str], monkeypatch: Patch) -> int:
    monkeypatch.setattr(sys, "argv", ["saccade", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> TrainingOutcome:
    folder = tmp_path_factory.mktemp("runs") / "own"
    return saccade.train(
        "rnn-lm", out=folder, sentences=30, train={"steps": 2, "device": "cpu"}, quiet=True
    )


# The command line


def settings_classes() -> Iterator[type]:
    waiting: list[type] = [*FAMILIES.values(), *KINDS.values(), TrainSettings]
    while waiting:
        kind = waiting.pop()
        yield kind
        waiting += [t for t in typing.get_type_hints(kind).values() if dataclasses.is_dataclass(t)]


@pytest.mark.parametrize("kind", [*settings_classes()], ids=lambda kind: kind.__name__)
def test_every_option_has_a_help_text(kind: type) -> None:
    told = "\n".join(inspect.getdoc(one) or "" for one in kind.__mro__ if one is not object)
    hints = typing.get_type_hints(kind)
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        if not dataclasses.is_dataclass(hints[field.name]):
            assert f"    {field.name}: " in told, field.name


def test_help_tells_of_options_that_are_of_no_settings(monkeypatch: Patch, capsys: Capture) -> None:
    assert run(["train", "rnn-lm", "--help"], monkeypatch) == 0
    text = " ".join(capsys.readouterr().out.split())
    for name in (field.name for field in dataclasses.fields(Options)):
        if name not in ("task", "model", "train"):
            assert f"--{name.replace('_', '-')}" in text
    assert "Move what is in --out aside" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--out", ""], "--out names no folder; give one"),
        (["--out", "  "], "--out names no folder; give one"),
        (["--train.device", "meta"], "device='meta' cannot be used here"),
        (["--train.seed", "-1"], "seed=-1 must be at least 0 and below 4294967296"),
        (["--train.seed", str(1 << 70)], "must be at least 0 and below 4294967296"),
        (["--model.width", "1000000"], "GiB, and cpu has"),
        (["--model.width", "1000000000"], "no model of such sizes can be made"),
        (["--lingua.seed", "1"], "unrecognized options"),
    ],
)
def test_a_mistake_gives_one_line_and_leaves_nothing(
    options: list[str], message: str, monkeypatch: Patch, capsys: Capture, tmp_path: Path
) -> None:
    assert run(["train", "rnn-lm", *QUICK, *options], monkeypatch) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error
    assert not list(tmp_path.rglob("config.json"))


def test_a_language_without_data_is_refused(monkeypatch: Patch, capsys: Capture) -> None:
    assert run(["train", "transformer", "--source", "en"], monkeypatch) == 2
    assert "source=en is of data of your own; give --data too" in capsys.readouterr().err


def test_a_changed_setting_can_be_taken_up_or_the_run_started_over(
    monkeypatch: Patch, capsys: Capture
) -> None:
    command = ["train", "rnn-lm", *QUICK]
    assert run(command, monkeypatch) == 0
    slower = [*command, "--train.learning-rate", "1e-4", "--train.steps", "3"]
    assert run(slower, monkeypatch) == 2
    assert "--change goes on with the new one" in capsys.readouterr().err
    assert run([*slower, "--change"], monkeypatch) == 0
    assert "train.learning_rate was 0.01, now 0.0001" in capsys.readouterr().err
    assert run(["describe", "runs/rnn-lm"], monkeypatch) == 0
    told = capsys.readouterr().out
    assert "3 of 3" in told
    assert "changed.train.learning_rate (step 2)" in told
    wider = [*command, "--model.width", "32"]
    assert run(wider, monkeypatch) == 2
    assert run([*wider, "--start-over"], monkeypatch) == 0
    assert "what was in runs/rnn-lm is now in runs/rnn-lm.1" in capsys.readouterr().err
    assert Path("runs/rnn-lm.1/model.safetensors").is_file()


# Presets and sizes


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in PRESETS if name not in RECIPES])
def test_every_preset_is_a_recipe_of_its_own_size(name: str) -> None:
    chosen = recipe(name)
    assert chosen.model == PRESETS[name]
    assert name in chosen.about
    for size in ("vocabulary", "image"):
        if size in vars(chosen.model):
            assert vars(chosen.task)[size] == vars(chosen.model)[size]
    assert type(chosen.model) in {type(one.model) for one in RECIPES.values()}
    dataclasses.replace(chosen.task, data="photos").check(chosen.model)  # some need data


def test_a_preset_can_be_trained(monkeypatch: Patch, capsys: Capture) -> None:
    assert run(["train", "gpt-nano", *QUICK], monkeypatch) == 0
    assert "trained: runs/gpt-nano" in capsys.readouterr().err
    assert run(["describe", "runs/gpt-nano"], monkeypatch) == 0
    assert "of the size gpt-nano" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("name", one_fast(["transformer", "gpt2", "rnn-attention"]))
def test_sizes_are_those_of_the_vocabulary_that_is_told(
    name: str, monkeypatch: Patch, capsys: Capture
) -> None:
    assert run(["describe", name, "--json"], monkeypatch) == 0
    told = json.loads(capsys.readouterr().out)
    sizes: dict[str, Any] = {"vocabulary": told["vocabulary"]}
    network = dataclasses.replace(recipe(name).model, **sizes).build()
    assert told["parameters"] == sum(p.numel() for p in network.parameters())
    if name == "transformer":
        assert (told["vocabulary"], told["parameters"]) == (2000, 2_067_200)


@pytest.mark.slow
def test_the_list_says_what_its_sizes_assume(monkeypatch: Patch, capsys: Capture) -> None:
    assert run(["list"], monkeypatch) == 0
    captured = capsys.readouterr()
    assert "2.1 M" in captured.out
    assert "the largest vocabulary that they take" in captured.err


def test_a_run_is_described(trained: TrainingOutcome, monkeypatch: Patch, capsys: Capture) -> None:
    assert run(["describe", str(trained.folder), "--json"], monkeypatch) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["step"] == "2 of 2"
    assert told["best"] == trained.best
    assert (told["vocabulary"], told["parameters"]) == (16, 35_344)
    assert told["nearest recipe"] == "rnn-lm"
    assert told["unlike it"] == {"task.sentences": 30, "train.steps": 2}
    assert (told["data"], told["weights"], told["changed"]) == ("built-in", "model.safetensors", {})
    for damage in (b"", b"[]", b'{"step": "x"}'):
        for path in trained.folder.glob("checkpoints/*/state.json"):
            before = path.read_bytes()
            path.write_bytes(damage)
            assert run(["describe", str(trained.folder)], monkeypatch) == 0
            assert "0 of 2" in capsys.readouterr().out
            path.write_bytes(before)


# Python


def test_what_was_trained_in_python_can_be_loaded(trained: TrainingOutcome) -> None:
    assert trained.step == 2
    model = saccade.load(trained, device="cpu")
    assert model.predict("I", count=1, most_tokens=3)


def test_an_outcome_is_shown_in_short(trained: TrainingOutcome) -> None:
    assert repr(trained).startswith(f"<run {trained.folder} at step 2: loss ")


def test_train_is_called_whatever_was_imported_before() -> None:
    import saccade.train.run as module

    assert callable(saccade.train)
    assert module.train is not saccade.train
    with pytest.raises(saccade.SaccadeError, match="no recipe 'lstm'"):
        saccade.train("lstm")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"steps": 3}, r"steps says how to train; give train=\{'steps': …\}"),
        ({"sentence": 3}, "task.sentence is not a setting; there are: data, field"),
        ({"train": {"step": 3}}, "train.step is not a setting"),
        ({"model": {"width": "wide"}}, "model.width='wide' must be int"),
        ({"sentences": 0}, "sentences=0 must be at least 1"),
        ({"data": "/no/such"}, "/no/such"),
    ],
)
def test_mistakes_are_raised_and_not_printed(
    given: dict[str, Any], message: str, capsys: Capture
) -> None:
    with pytest.raises(saccade.SaccadeError, match=message):
        saccade.train("rnn-lm", quiet=True, **given)
    captured = capsys.readouterr()
    assert captured.out + captured.err == ""


def test_a_recipe_object_needs_a_folder_and_settings_reach_tables_within_tables(
    tmp_path: Path,
) -> None:
    with pytest.raises(ConfigError, match="give one, such as out='runs/mine'"):
        saccade.train(RECIPES["rnn-lm"])
    outcome = saccade.train(
        RECIPES["rnn-attention"],
        out=tmp_path / "run",
        pairs=20,
        vocabulary=300,
        lingua={"longest": 5},
        model={"width": 16},
        train={"steps": 1, "device": "cpu"},
        quiet=True,
    )
    task = json.loads((outcome.folder / "config.json").read_text())["task"]
    assert (task["lingua"]["longest"], task["lingua"]["shortest"]) == (5, 3)


def test_python_can_change_and_start_over(trained: TrainingOutcome, tmp_path: Path) -> None:
    def again(**how: bool) -> TrainingOutcome:
        settings = {"steps": 2, "device": "cpu", "clip": clip}
        return saccade.train(
            "rnn-lm", out=tmp_path / "run", sentences=30, train=settings, quiet=True, **how
        )

    clip = 1.0
    again()
    clip = 2.0
    with pytest.raises(RunError, match="--change goes on"):
        again()
    assert again(change=True).step == again(start_over=True).step == 2
    assert (tmp_path / "run.1").is_dir()
