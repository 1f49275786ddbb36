"""C14: a captioner of a biased world is right for the wrong reasons, until the Equalizer."""

from pathlib import Path
from typing import Any

import torch

from saccade.app.api import load
from saccade.app.figures.claim import LectureClaim
from saccade.app.figures.finding import BarPanel, Finding, over_seeds
from saccade.app.figures.workshop import Workshop
from saccade.decode.engine import Decoding
from saccade.tasks.captioning.captioner import ImageCaptioner
from saccade.tasks.captioning.data import read_captioned
from saccade.tasks.captioning.reasons import WORLDS, reasons

STEPS, SCENES = 1000, 300
OFF = (
    *("--equalizer.confusion", 0),
    *("--equalizer.confident", 0),
    *("--equalizer.masked", 0),
)
NAMES = {"Equalizer": (), "baseline": OFF}
BIASED, BALANCED = WORLDS
FIGURES = (
    "wrong, biased test",
    "wrong, balanced test",
    "right against the bias",
    "points at the figure",
)


def fares(tool: ImageCaptioner, scenes: int) -> dict[str, float]:
    """How a captioner fares on the biased and the balanced test, in per cent."""
    found: dict[str, dict[str, Any]] = {}
    for world in WORLDS:
        data = read_captioned(tool.settings, world)
        some = data.only(torch.arange(min(scenes, len(data))), data.report)
        found[world] = reasons(tool, some, Decoding(beam=1))
    balanced = found[BALANCED]
    values = (
        found[BIASED]["error"],
        balanced["error"],
        balanced["against_the_bias"]["right"],
        balanced["pointing"].get("hits", 0.0),
    )
    return {name: 100 * float(value) for name, value in zip(FIGURES, values)}


def _trained(work: Workshop, options: tuple[str | int, ...], seed: int) -> Path:
    steps = work.share(STEPS)
    often = "--train.validate-every", max(1, steps // 4)
    return work.train("equalizer", *options, "--train.steps", steps, *often, seed=seed)


def _runs(work: Workshop) -> dict[str, list[Path]]:
    return {
        name: [_trained(work, options, seed) for seed in work.seeds]
        for name, options in NAMES.items()
    }


def _measure(work: Workshop) -> Finding:
    scenes = max(40, work.share(SCENES))
    found = {
        name: [fares(load(path, device=work.device).tool, scenes) for path in paths]
        for name, paths in _runs(work).items()
    }
    bars = {
        name: tuple(over_seeds(0, [run[figure] for run in runs]) for figure in FIGURES)
        for name, runs in found.items()
    }
    equal, plain = bars.values()
    return Finding(
        verdict=f"The baseline names the wrong group in {plain[0].mean:.0f} % of biased scenes and "
        f"{plain[1].mean:.0f} % of balanced ones; where the surroundings mislead it is right in "
        f"{plain[2].mean:.0f} %, and it points at the figure in {plain[3].mean:.0f} %. With the "
        f"Equalizer: {equal[0].mean:.0f} %, {equal[1].mean:.0f} %, {equal[2].mean:.0f} % and "
        f"{equal[3].mean:.0f} %.",
        holds=plain[1].low > plain[0].high + 10
        and equal[1].high < plain[1].low
        and equal[2].low > plain[2].high,
        head=("in %", *(f"{name} (smallest, largest)" for name in bars)),
        rows=tuple(
            (
                figure,
                *(f"{b[at].mean:.1f} ({b[at].low:.1f}, {b[at].high:.1f})" for b in bars.values()),
            )
            for at, figure in enumerate(FIGURES)
        ),
        bars=(
            BarPanel(
                title="Knights and wizards of held-out scenes",
                x_title="% of scenes or captions",
                groups=FIGURES,
                bars=bars,
            ),
        ),
    )


CLAIM = LectureClaim(
    key="C14",
    title="Biased data: right for the wrong reasons, before and after the Equalizer",
    claim="A captioner that learns from biased images names people by their surroundings. It looks "
    "right as long as the bias holds. Losses that ask it to be unsure without the person, and sure "
    "with them, make it look at the person.",
    expect="The baseline errs little on the biased test and in about half of the balanced one, "
    "where surroundings mislead half the time; the Equalizer errs rarely on both, and is right "
    "against the bias.",
    seconds=840,
    measure=_measure,
    runs=_runs,
)
