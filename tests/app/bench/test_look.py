"""`saccade bench look` measures what it says, on any machine."""

import json

import pytest

from saccade.app.bench.look import LookBench, errors, run_look_bench, table
from saccade.app.cli.bench import bench_command, run_look
from saccade.errors import ConfigError

TINY = LookBench(lengths=(64, 300), heads=2, head_width=8, seconds=0.0)


def test_a_row_per_length_with_ratios_to_the_fused_kernel() -> None:
    rows = list(run_look_bench(TINY))
    assert [row.length for row in rows] == [64, 300]
    for row in rows:
        assert row.same_output
        assert row.bundle_ratio == pytest.approx(row.bundle_ms / row.fused_ms)
        assert row.eager_ms is not None
        assert row.bundle_mib is None  # the CPU does not count


@pytest.mark.slow
def test_errors_are_within_twice_those_of_the_dense_computation() -> None:
    found = errors(TINY)
    assert {one.statistic for one in found} >= {"entropy", "received", "mean_map", "top_weights"}
    for one in found:
        assert one.error <= 2 * one.dense_error + 1e-6


@pytest.mark.slow
def test_the_figures_are_json(capsys: pytest.CaptureFixture[str]) -> None:
    run_look(TINY, json=True)
    figures = json.loads(capsys.readouterr().out)
    assert figures["machine"].startswith("CPU")
    assert set(figures) == {"machine", *table([], [])}


def test_the_table_is_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    bench_command(
        ["look", "--lengths", "64", "--heads", "1", "--head-width", "8", "--seconds", "0"]
    )
    captured = capsys.readouterr()
    assert "fused ms" in captured.out
    assert "64 positions measured" in captured.err


def test_a_precision_that_is_not_known_is_refused() -> None:
    with pytest.raises(ConfigError, match="precision=int4 is not one of bf16, fp16, fp32"):
        LookBench(precision="int4")
