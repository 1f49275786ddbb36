"""C11: ViT against ResNet and hybrids of both by training compute."""

import math
from itertools import pairwise
from pathlib import Path

from saccade.app.compare.runs import read_finished
from saccade.app.figures.claim import LectureClaim
from saccade.app.figures.finding import Finding, LinePanel, over_seeds
from saccade.app.figures.workshop import Workshop
from saccade.app.look.draw.chart import Mark

# A ResNet's convolutions take a CPU three times as long for the same operations.
STEPS: dict[str, tuple[int, ...]] = {
    "resnet": (100, 200, 400),
    "vit": (85, 165, 325, 650),
    "hybrid": (90, 180, 360, 720),
}
NAMES = {"ResNet": "resnet", "ViT": "vit", "hybrid": "hybrid"}
SCENES = 10_000


def classifier_of(work: Workshop, recipe: str, updates: int, seed: int) -> Path:
    """A run of its own for each number of updates, so that its rate falls to zero in them."""
    steps = work.share(updates)
    short = "--train.warmup", max(1, steps // 10), "--train.validate-every", max(1, steps // 2)
    return work.train(
        recipe, "--scenes", work.share(SCENES), "--train.steps", steps, *short, seed=seed
    )


def between(line: tuple[Mark, ...], x: float) -> float:
    """The mean at some compute: straight between points, over the logarithm of compute.

    Beyond the ends it is that of the end.
    """
    if x <= line[0].x:
        return line[0].mean
    for first, then in pairwise(line):
        if first.x <= x < then.x:
            share = math.log(x / first.x) / math.log(then.x / first.x)
            return first.mean + share * (then.mean - first.mean)
    return line[-1].mean


def _runs(work: Workshop) -> dict[str, list[list[Path]]]:
    """Of each model, by budget, one for each seed."""
    return {
        name: [
            [classifier_of(work, recipe, updates, seed) for seed in work.seeds]
            for updates in STEPS[recipe]
        ]
        for name, recipe in NAMES.items()
    }


def _line(budgets: list[list[Path]]) -> tuple[Mark, ...]:
    marks: list[Mark] = []
    for paths in budgets:
        runs = [read_finished(path, figure="top1", split="") for path in paths]
        compute = [run.compute for run in runs if run.compute is not None]
        marks.append(over_seeds(sum(compute) / len(compute), [100 * run.value for run in runs]))
    return tuple(marks)


def _measure(work: Workshop) -> Finding:
    lines = {name: _line(budgets) for name, budgets in _runs(work).items()}
    resnet, vit, hybrid = lines.values()
    shared = [mark for mark in vit if mark.x <= resnet[-1].x] or [vit[0]]
    ahead = [mark.mean > between(resnet, mark.x) for mark in shared]
    last = shared[-1]
    return Finding(
        verdict=f"At {last.x:.1e} FLOPs the ViT is right in {last.mean:.1f} % of held-out scenes, "
        f"the ResNet in {between(resnet, last.x):.1f} %, a ViT that reads a small ResNet in "
        f"{between(hybrid, last.x):.1f} %; of {len(ahead)} budgets that ViT and ResNet have, the "
        f"ViT is ahead at {sum(ahead)}. With {vit[-1].x:.1e} it comes to {vit[-1].mean:.1f} %. "
        "Nobody has pre-trained either, which is what the published comparison rests on.",
        holds=all(ahead),
        head=("model", "FLOPs", "top-1", "smallest", "largest"),
        rows=tuple(
            (name, f"{m.x:.1e}", f"{m.mean:.1f} %", f"{m.low:.1f} %", f"{m.high:.1f} %")
            for name, line in lines.items()
            for m in line
        ),
        lines=(
            LinePanel(
                title="Class of the largest object, held-out scenes",
                x_title="training compute in FLOPs",
                y_title="top-1 in %",
                lines=lines,
                log_x=True,
                spread="bar",
            ),
        ),
    )


CLAIM = LectureClaim(
    key="C11",
    title="ViT against ResNet by compute",
    claim="At the same training compute Vision Transformers do better than ResNets (pre-trained on "
    "hundreds of millions of images).",
    expect="Where the claim holds, the line of the ViT lies above that of the ResNet. Small and "
    "from nothing, as here, convolutions may well be ahead, and a hybrid between: they know what "
    "is near.",
    seconds=780,
    measure=_measure,
    runs=_runs,
)
