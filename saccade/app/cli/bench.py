"""`saccade bench …`: what things cost beside what a user would pick instead, in one run."""

from dataclasses import dataclass
from inspect import getdoc
from typing import Any, Generic, TypeVar

import torch
import tyro

from saccade.app.bench.decode import DecodeBench
from saccade.app.bench.detect import DetectBench
from saccade.app.bench.draw import DrawBench
from saccade.app.bench.finetune import FineTuneBench
from saccade.app.bench.floor import measure_machine
from saccade.app.bench.growth import GrowthBench
from saccade.app.bench.joint import JointBench
from saccade.app.bench.look import LookBench, LookCost, errors, run_look_bench, table
from saccade.app.bench.pretrain import PretrainBench
from saccade.app.bench.race import or_dash
from saccade.app.bench.rnn import RnnBench
from saccade.app.bench.scale import ScaleBench
from saccade.app.bench.settings import RaceSettings, Result
from saccade.app.bench.timing import machine_name
from saccade.app.bench.train import TrainBench
from saccade.app.bench.vision import VisionBench
from saccade.app.cli.options import parse
from saccade.app.cli.output import print_json, say, show_help, show_table, tell
from saccade.errors import ConfigError, perhaps

USAGE = """usage: saccade bench WHAT …

Measure Saccade beside what a user would pick instead, in the same run.

  train     an update of a Transformer and of a language model
  pretrain  an update of a BERT that fills hidden words
  finetune  a classifier of texts from given weights, beside Hugging Face's Trainer
  decode    greedy decoding and beam search of a Transformer
  vision    an update and the class scores of ViT, Swin, ConvNeXt, MViT and ResNet
  detect    an update of a DETR, and what it finds, beside Hugging Face's
  joint     an update of a ViLBERT and one reading, beside torch's own layers
  draw      images drawn by a DALL·E, beside DALLE-pytorch
  rnn       an RNN with attention beside a loop over single words
  scale     an update of a GPT as large as one GPU holds, and what split weights cost
  growth    how cost grows with length, number of sentences and width
  look      attention with statistics of where it looks beside the fused kernel

`saccade bench WHAT --help` tells more."""

Settings = TypeVar("Settings")
BENCHES: dict[str, type[RaceSettings] | type[LookBench]] = {
    "train": TrainBench,
    "pretrain": PretrainBench,
    "finetune": FineTuneBench,
    "decode": DecodeBench,
    "vision": VisionBench,
    "detect": DetectBench,
    "joint": JointBench,
    "draw": DrawBench,
    "rnn": RnnBench,
    "scale": ScaleBench,
    "growth": GrowthBench,
    "look": LookBench,
}


@dataclass(frozen=True)
class BenchCommand(Generic[Settings]):
    """What every bench takes from the command line.

    Args:
        bench: what is measured.
        json: print the figures as JSON.
    """

    bench: Settings
    json: bool = False


def bench_command(arguments: list[str]) -> int:
    """Run one of the benches."""
    if not arguments or arguments[0] in ("-h", "--help"):
        show_help(USAGE)
        return 0 if arguments else 2
    what, *rest = arguments
    if what not in BENCHES:
        near = perhaps(what, BENCHES)
        raise ConfigError(f"there is no bench {what!r}{near}; there are: {', '.join(BENCHES)}")
    kind = BENCHES[what]
    about, _, _ = (getdoc(kind) or "").partition("\n\nArgs:")
    command: Any = parse(
        BenchCommand[kind],
        rest,
        prog=f"saccade bench {what}",
        description=about,
        config=(tyro.conf.OmitArgPrefixes,),
    )
    (run_look if what == "look" else run_races)(command.bench, json=command.json)
    return 0


def run_races(bench: RaceSettings, *, json: bool) -> None:
    """Measure the machine, then table by table; each is printed as soon as it is there."""
    name = machine_name(bench.where)
    machine = measure_machine(bench.where, bench.arithmetic)
    about = f"{name}, torch {torch.__version__}, {bench.arithmetic}"
    say(
        f"{about}: a large product runs at {machine.flops / 1e12:.3g} TFLOP/s, "
        f"a large copy at {machine.bandwidth / 1e9:,.0f} GB/s"
    )
    found: list[dict[str, Any]] = []
    for result in bench.results(machine, say):
        found.append(result.table())
        if not json:
            _tell_result(result)
    if json:
        figures = {"flops": machine.flops, "bandwidth": machine.bandwidth}
        print_json({"machine": about, **figures, "results": found})


def run_look(bench: LookBench, *, json: bool) -> None:
    """Measure length by length, then the errors."""
    machine = machine_name(torch.device(bench.device))
    say(f"{machine}, torch {torch.__version__}")
    costs: list[LookCost] = []
    for cost in run_look_bench(bench):
        costs.append(cost)
        say(f"{cost.length:,} positions measured")
    found = errors(bench)
    if json:
        print_json({"machine": machine, **table(costs, found)})
        return
    names = ("positions", "fused ms", "rows ×", "bundle ×", "eager ×", "MiB", "eager MiB")
    show_table(map(_cost_row, costs), head=names)
    tell("")
    rows = ((one.statistic, f"{one.error:.1e}", f"{one.dense_error:.1e}") for one in found)
    show_table(rows, head=("statistic", "largest error", "of the dense computation"))


def _cost_row(cost: LookCost) -> tuple[str, ...]:
    return (
        f"{cost.length:,}",
        f"{cost.fused_ms:.3f}",
        f"{cost.rows_ratio:.2f}",
        f"{cost.bundle_ratio:.2f}",
        *(or_dash(value) for value in (cost.eager_ratio, cost.bundle_mib, cost.eager_mib)),
    )


def _tell_result(result: Result) -> None:
    tell(result.heading())
    columns = result.columns()
    show_table(zip(*columns.values()), head=tuple(columns))
    for remark in (*result.remarks(), ""):
        tell(remark)
