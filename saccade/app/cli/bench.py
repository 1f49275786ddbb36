"""`saccade bench look`: what things cost beside what a user would pick instead, in one run."""

from collections.abc import Iterable
from typing import Literal

import torch
import tyro
from rich.console import Console
from rich.table import Table

from saccade.app.bench.look import Error, LookBench, Row, errors, run_look_bench, table
from saccade.app.cli.output import print_json, say


def bench_command(
    what: tyro.conf.Positional[Literal["look"]],
    /,
    *,
    bench: LookBench = LookBench(),  # noqa: B008
    json: bool = False,
) -> None:
    """Measure, beside what a user would pick instead, in the same run.

    `look` measures attention with statistics of where it looks (rows: log-sum-exp, entropy,
    maximum, sink and local mass; bundle: also received mass, mean and max maps, top 8) beside the
    fused kernel alone and beside attention that holds every weight.

    Args:
        what: look.
        bench: the attention that is measured.
        json: print the figures as JSON.
    """
    assert what == "look"
    say(f"{_machine(bench.device)}, torch {torch.__version__}")
    rows: list[Row] = []
    for row in run_look_bench(bench):
        rows.append(row)
        say(f"{row.length:,} positions measured")
    found = errors(bench)
    if json:
        print_json({"machine": _machine(bench.device), **table(rows, found)})
        return
    console = Console()
    console.print(_costs(rows))
    console.print(_errors(found))


def _machine(device: str) -> str:
    if device.startswith("cuda"):
        return torch.cuda.get_device_name()
    return f"CPU, {torch.get_num_threads()} threads"


def _costs(rows: Iterable[Row]) -> Table:
    shown = Table("positions", "fused ms", "rows ×", "bundle ×", "eager ×", "MiB", "eager MiB")
    for row in rows:
        shown.add_row(
            f"{row.length:,}",
            f"{row.fused_ms:.3f}",
            f"{row.rows_ratio:.2f}",
            f"{row.bundle_ratio:.2f}",
            _or_dash(row.eager_ratio),
            _or_dash(row.bundle_mib),
            _or_dash(row.eager_mib),
        )
    return shown


def _or_dash(value: float | None) -> str:
    return "–" if value is None else f"{value:,.1f}"


def _errors(found: Iterable[Error]) -> Table:
    shown = Table("statistic", "largest error", "of the dense computation")
    for one in found:
        shown.add_row(one.statistic, f"{one.error:.1e}", f"{one.dense_error:.1e}")
    return shown
