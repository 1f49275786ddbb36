"""`saccade bench …`: what things cost beside what a user would pick instead, in one run."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
import tyro
from rich.console import Console
from rich.table import Table

from saccade.app.bench.decode import DecodeBench, run_decode_bench
from saccade.app.bench.floor import Machine, measure_machine
from saccade.app.bench.growth import Growth, GrowthBench, run_growth_bench
from saccade.app.bench.look import Error, LookBench, Row, errors, run_look_bench, table
from saccade.app.bench.race import Race
from saccade.app.bench.rnn import RnnBench, run_rnn_bench
from saccade.app.bench.settings import RaceSettings
from saccade.app.bench.train import TrainBench, run_train_bench
from saccade.app.bench.vit import VitBench, run_vit_bench
from saccade.app.cli.output import print_json, say
from saccade.errors import ConfigError

USAGE = """usage: saccade bench WHAT …

Measure Saccade beside what a user would pick instead, in the same run.

  train     an update of a Transformer and of a language model
  decode    greedy decoding and beam search of a Transformer
  vit       an update and the class scores of a Vision Transformer
  rnn       an RNN with attention beside a loop over single words
  growth    how cost grows with length, number of sentences and width
  look      attention with statistics of where it looks beside the fused kernel

`saccade bench WHAT --help` tells more."""

Result = Race | Growth
DASH = "–"


def bench_command(arguments: list[str]) -> int:
    """Run one of the benches."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE)
        return 0 if arguments else 2
    what, *rest = arguments
    if what not in BENCHES:
        raise ConfigError(f"there is no bench {what!r}; there are: {', '.join(BENCHES)}")
    tyro.cli(
        BENCHES[what],
        args=rest,
        prog=f"saccade bench {what}",
        config=(tyro.conf.OmitArgPrefixes,),
    )
    return 0


def train_bench(*, bench: TrainBench = TrainBench(), json: bool = False) -> None:  # noqa: B008
    """Measure an update of the weights: forward, backward and AdamW, in real tokens.

    Peers: torch.nn.Transformer (torch: without dropout on attention weights, as ours;
    torch-default: with it; torch-compiled), Hugging Face's Marian (huggingface: with our dropout
    inside the MLPs; huggingface-default: without), and for the language model a GPT-2 as small
    training scripts write it (nanogpt, nanogpt-compiled) and Hugging Face's
    (huggingface-compiled). All start from the same weights; their losses are compared.

    Args:
        bench: what is measured.
        json: print the figures as JSON.
    """
    _run(bench, lambda machine: run_train_bench(bench, machine, say), json)


def decode_bench(*, bench: DecodeBench = DecodeBench(), json: bool = False) -> None:  # noqa: B008
    """Measure the translation of many sentences and of one, greedily and with a beam.

    Peers: Hugging Face's generate (huggingface) and on a CPU CTranslate2 (ctranslate2,
    ctranslate2-int8), with the same weights. Texts are compared with ours in float32; weights of
    eight bits may say something else, and these are random, so they soon do.

    Args:
        bench: what is measured.
        json: print the figures as JSON.
    """
    _run(bench, lambda machine: run_decode_bench(bench, machine, say), json)


def vit_bench(*, bench: VitBench = VitBench(), json: bool = False) -> None:  # noqa: B008
    """Measure a Vision Transformer: an update of its weights, and class scores without one.

    Peers: timm, torchvision and Hugging Face, each also compiled on a GPU, with the same weights.
    They train in mixed precision as ours and read pictures with weights in the precision asked
    for. × is to the fastest of them; what is computed is compared with ours in float32.

    Args:
        bench: what is measured.
        json: print the figures as JSON.
    """
    _run(bench, lambda machine: run_vit_bench(bench, machine, say), json)


def rnn_bench(*, bench: RnnBench = RnnBench(), json: bool = False) -> None:  # noqa: B008
    """Measure training and decoding of an RNN with attention beside a plain loop over words.

    Args:
        bench: what is measured.
        json: print the figures as JSON.
    """
    _run(bench, lambda machine: run_rnn_bench(bench, machine, say), json)


def growth_bench(*, bench: GrowthBench = GrowthBench(), json: bool = False) -> None:  # noqa: B008
    """Measure how the cost of an update and of a step of decoding grows with the sizes.

    Args:
        bench: what is measured.
        json: print the figures as JSON.
    """
    _run(bench, lambda machine: run_growth_bench(bench, machine, say), json)


def look_bench(*, bench: LookBench = LookBench(), json: bool = False) -> None:  # noqa: B008
    """Measure attention with statistics of where it looks.

    Rows are log-sum-exp, entropy, maximum, sink and local mass; the bundle has also received mass,
    mean and max maps and the top 8. Beside the fused kernel alone and beside attention that holds
    every weight.

    Args:
        bench: the attention that is measured.
        json: print the figures as JSON.
    """
    say(f"{_machine(torch.device(bench.device))}, torch {torch.__version__}")
    rows: list[Row] = []
    for row in run_look_bench(bench):
        rows.append(row)
        say(f"{row.length:,} positions measured")
    found = errors(bench)
    if json:
        print_json({"machine": _machine(torch.device(bench.device)), **table(rows, found)})
        return
    console = Console()
    console.print(_costs(rows))
    console.print(_errors(found))


BENCHES: dict[str, Callable[..., None]] = {
    "train": train_bench,
    "decode": decode_bench,
    "vit": vit_bench,
    "rnn": rnn_bench,
    "growth": growth_bench,
    "look": look_bench,
}


def _run(bench: RaceSettings, measured: Callable[[Machine], Iterator[Result]], json: bool) -> None:
    """Measure the machine, then table by table; each is printed as soon as it is there."""
    name, console = _machine(bench.where), Console(highlight=False)
    machine = measure_machine(bench.where, bench.arithmetic)
    about = f"{name}, torch {torch.__version__}, {bench.arithmetic}"
    say(
        f"{about}: a large product runs at {machine.flops / 1e12:.3g} TFLOP/s, "
        f"a large copy at {machine.bandwidth / 1e9:,.0f} GB/s"
    )
    found: list[dict[str, Any]] = []
    for result in measured(machine):
        found.append(result.table())
        if not json:
            _show(result, console)
    if json:
        figures = {"flops": machine.flops, "bandwidth": machine.bandwidth}
        print_json({"machine": about, **figures, "results": found})


def _machine(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name()
    return f"CPU, {torch.get_num_threads()} threads"


def _show(result: Result, console: Console) -> None:
    if isinstance(result, Race):
        job = result.job
        floor = f"floor {1000 * job.floor_seconds:.3g} ms"
        real = "real tokens" if job.unit == "tokens" else job.unit
        title = f"{job.title}: {job.tokens:,} {real}, {floor}; × is to {job.against or DASH}"
        console.print(title, soft_wrap=True)
        console.print(_race(result))
        for peer, reason in result.absent.items():
            console.print(f"not measured: {peer} ({reason})", soft_wrap=True)
    else:
        console.print(f"{result.work}, by {result.varied}", soft_wrap=True)
        console.print(_growth(result))
    console.print()


def _race(race: Race) -> Table:
    shown = Table(box=None, pad_edge=False)
    columns = _columns(race)
    for name, texts in columns.items():
        if any(text != DASH for text in texts):
            shown.add_column(name, no_wrap=True, justify="right" if name else "left")
    for texts in zip(*(texts for texts in columns.values() if any(t != DASH for t in texts))):
        shown.add_row(*texts)
    return shown


def _columns(race: Race) -> dict[str, list[str]]:
    rows, agreement = race.rows, race.job.agreement
    same = ".1%" if agreement == "same text" else ".0e"
    return {
        "": [row.name for row in rows],
        "ms": [f"{row.milliseconds:,.4g}" for row in rows],
        f"{race.job.unit}/s": [f"{row.tokens_per_second:,.0f}" for row in rows],
        "×": [_or_dash(row.ratio, ".2f") for row in rows],
        "floor": [f"{row.floor_share:.1%}" for row in rows],
        "padding": [_or_dash(row.padding, ".1%") for row in rows],
        "MiB": [_or_dash(row.memory_mib, ",.0f") for row in rows],
        "first s": [f"{row.first_seconds:.1f}" for row in rows],
        agreement: [_or_dash(row.agreement, same) for row in rows],
    }


def _growth(growth: Growth) -> Table:
    shown = Table(box=None, pad_edge=False)
    for name in (growth.varied, "ms", "grows as", "tokens/s", "floor", "MiB"):
        shown.add_column(name, no_wrap=True, justify="right")
    for point in growth.points:
        shown.add_row(
            f"{point.size:,}",
            f"{point.milliseconds:,.4g}",
            "–" if point.power is None else f"{growth.varied}^{point.power:.2f}",
            f"{point.tokens_per_second:,.0f}",
            f"{point.floor_share:.1%}",
            _or_dash(point.memory_mib),
        )
    return shown


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


def _or_dash(value: float | None, form: str = ",.1f") -> str:
    return DASH if value is None else f"{value:{form}}"


def _errors(found: Iterable[Error]) -> Table:
    shown = Table("statistic", "largest error", "of the dense computation")
    for one in found:
        shown.add_row(one.statistic, f"{one.error:.1e}", f"{one.dense_error:.1e}")
    return shown
