"""Each bench runs Saccade and its peers on any machine, and they agree."""

import json
import subprocess
import sys
from typing import Any

import pytest

from saccade.app.bench.decode import DecodeBench
from saccade.app.bench.floor import Machine
from saccade.app.bench.growth import GrowthBench
from saccade.app.bench.settings import BenchSettings
from saccade.app.bench.train import TrainBench
from saccade.app.cli.bench import BENCHES, bench_command
from saccade.errors import ConfigError

SIZES = {
    "size": "small",
    "vocabulary": 60,
    "width": 32,
    "depth": 1,
    "heads": 2,
    "hidden": 48,
    "sentences": 3,
}
TINY = ["--device", "cpu", "--seconds", "0"]
TINY += [text for name, value in SIZES.items() for text in (f"--{name}", str(value))]
MACHINE = Machine(1e12, 1e11)


@pytest.fixture(autouse=True)
def known_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measuring the machine takes seconds; it has a test of its own."""
    monkeypatch.setattr("saccade.app.cli.bench.measure_machine", lambda *_: MACHINE)


def figures(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert bench_command([*arguments, *TINY, "--json"]) == 0
    return json.loads(capsys.readouterr().out)["results"]


def names(race: dict[str, Any]) -> list[str]:
    return [row["name"] for row in race["rows"]]


@pytest.mark.slow
def test_training_is_measured_beside_peers_whose_losses_are_ours(
    capsys: pytest.CaptureFixture[str],
) -> None:
    translation, language = figures(capsys, "train", "--no-compiled", "--window", "8")
    every = ["saccade", "torch", "torch-default", "huggingface", "huggingface-default"]
    assert names(translation) == every
    assert names(language) == ["saccade", "nanogpt"]
    for race in (translation, language):
        assert race["absent"] == {}
        for row in race["rows"][1:]:
            assert row["agreement"] < 1e-5
    assert translation["rows"][0]["padding"] < translation["rows"][1]["padding"]


@pytest.mark.slow
def test_compiled_ones_are_measured_too() -> None:
    only = ["--task", "language", "--window", "8", "--peers", "nanogpt-compiled"]
    command = [sys.executable, "-m", "saccade", "bench", "train", *only, *TINY, "--json"]
    # In a process of its own: the shape checker of the tests is not for compilers.
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    (race,) = json.loads(done.stdout)["results"]
    assert names(race) == ["saccade", "saccade-compiled", "nanogpt-compiled"]
    compiled = race["rows"][2]
    assert compiled["first_seconds"] > 10 * compiled["milliseconds"] / 1000


@pytest.mark.slow
def test_decoding_is_measured_beside_engines_that_write_the_same(
    capsys: pytest.CaptureFixture[str],
) -> None:
    races = figures(capsys, "decode", "--steps", "6", "--beams", "1", "3", "--peers", "huggingface")
    floats = [race for race in races if "int8" not in race["job"]["title"]]
    assert [race["job"]["tokens"] for race in floats] == [18, 18, 6, 6]
    for race in floats:
        assert names(race) == ["saccade", "huggingface"]
        assert race["rows"][1]["agreement"] == 1.0
    assert [names(race) for race in races if race not in floats] == [["saccade-int8"]] * 4


@pytest.mark.slow
def test_the_rnn_is_measured_beside_a_loop_that_does_the_same(
    capsys: pytest.CaptureFixture[str],
) -> None:
    races = figures(capsys, "rnn", "--steps", "6", "--beams", "1", "3")
    for race in (races[0], races[3]):
        assert race["rows"][1]["agreement"] < 1e-5
    for race in (*races[1:3], *races[4:]):
        assert race["rows"][1]["agreement"] == 1.0
        assert race["job"]["tokens"] == 18


@pytest.mark.slow
def test_growth_has_a_table_for_each_work_and_size() -> None:
    bench = GrowthBench(
        device="cpu",
        size="small",
        vocabulary=60,
        depth=1,
        lengths=(3, 5),
        counts=(2,),
        widths=(64, 128),
        sentences=2,
        seconds=0.0,
    )
    found = list(bench.results(MACHINE, print))
    works = ("one update", "one step of decoding")
    sizes = {"length": [3, 5], "sentences": [2], "width": [64, 128]}
    assert [(one.varied, one.work) for one in found] == [(v, w) for v in sizes for w in works]
    for one in found:
        assert [point.size for point in one.points] == sizes[one.varied]
        assert one.points[0].power is None
    before, after = found[0].points
    assert after.power is not None
    assert before.milliseconds * (5 / 3) ** after.power == pytest.approx(after.milliseconds)


@pytest.mark.slow
def test_the_table_is_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    bench_command(["rnn", "--contexts", "readout", "--steps", "4", *TINY])
    captured = capsys.readouterr()
    assert "× is to loop" in captured.out
    assert "TFLOP/s" in captured.err
    shown = next(line for line in captured.out.splitlines() if line.startswith("loop"))
    assert "1.00" in shown


def test_what_is_not_measured_is_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("saccade.app.bench.race.find_spec", lambda name: None)
    arguments = ["decode", "--beams", "1", "--steps", "3", "--peers", "ctranslate2", *TINY]
    bench_command(arguments)
    said = capsys.readouterr().out
    assert "not measured: ctranslate2 (ctranslate2 is not installed)" in said


def test_without_a_bench_or_with_help_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench_command([]) == 2
    assert bench_command(["--help"]) == 0
    said = capsys.readouterr().out
    assert all(f"\n  {name} " in said for name in BENCHES)


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(ConfigError, match="there is no bench 'sing'; there are: train, pretrain"):
        bench_command(["sing"])
    with pytest.raises(ConfigError, match="precision=int4 is not one of auto, fp32, bf16"):
        TrainBench(precision="int4")
    with pytest.raises(ConfigError, match="peers=fairseq is not one of huggingface"):
        DecodeBench(peers="fairseq")
    with pytest.raises(ConfigError, match="steps=0 must be at least 1"):
        DecodeBench(steps=0)
    with pytest.raises(ConfigError, match="width=0 must be at least 1"):
        GrowthBench(widths=(0,))


def test_sizes_that_are_not_given_fit_the_device() -> None:
    bench: BenchSettings = TrainBench(device="cpu")
    assert (bench.fitting, bench.arithmetic, bench.repeats) == ("small", "fp32", 1)
    assert (TrainBench(device="cpu", size="base").fitting) == "base"
