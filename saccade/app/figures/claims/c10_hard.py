"""C10: soft attention against hard attention, on captions of shapes."""

from pathlib import Path

import torch

from saccade.app.api import load
from saccade.app.compare.curves import curves_of, read_curve
from saccade.app.figures.claim import LectureClaim
from saccade.app.figures.finding import BarPanel, Finding, LinePanel, over_seeds
from saccade.app.figures.workshop import Workshop
from saccade.app.look.draw.chart import Mark
from saccade.decode.engine import Decoding
from saccade.metrics.captioning import caption_scores
from saccade.tasks.base import silent
from saccade.tasks.captioning.captioner import ImageCaptioner
from saccade.tasks.captioning.data import read_captioned
from saccade.tasks.captioning.evaluate import captions_of, content_scores
from saccade.tasks.captioning.pointing import summed

RECIPES = {"soft": "show-attend-tell", "hard": "show-attend-tell-hard"}
STEPS, SCENES, TESTED = 600, 10_000, 200
FIGURES = ("captions all true", "words that point at what they mean")


def captioner_run(work: Workshop, recipe: str, seed: int) -> Path:
    """Both see the same scenes, for as many updates."""
    steps = work.share(STEPS)
    return work.train(
        recipe,
        *("--scenes", work.share(SCENES), "--train.steps", steps),
        *("--train.warmup", max(1, steps // 10), "--train.validate-every", max(1, steps // 6)),
        seed=seed,
    )


def caption_figures(tool: ImageCaptioner, scenes: int) -> dict[str, float]:
    """On held-out scenes: CIDEr-D, the share of true captions, and the pointing game."""
    data = read_captioned(tool.settings, "test")
    some = data.only(torch.arange(min(scenes, len(data))), data.report)
    said, game = captions_of(tool, some, Decoding(beam=1), silent, len(some), look=True)
    true = content_scores(said, some.scenes)["exact"]
    points = summed(game).get("hits", 0.0)
    cider = caption_scores(said, [list(one) for one in some.captions])["cider_d"]
    return {"CIDEr-D": cider, **dict(zip(FIGURES, (100 * true, 100 * points)))}


def _runs(work: Workshop) -> dict[str, list[Path]]:
    return {
        name: [captioner_run(work, recipe, seed) for seed in work.seeds]
        for name, recipe in RECIPES.items()
    }


def _measure(work: Workshop) -> Finding:
    runs = _runs(work)
    found = {
        name: [
            caption_figures(load(path, device=work.device).tool, work.share(TESTED))
            for path in paths
        ]
        for name, paths in runs.items()
    }
    marks = {
        name: {figure: over_seeds(0, [one[figure] for one in some]) for figure in some[0]}
        for name, some in found.items()
    }
    soft, hard = marks.values()
    cider = "CIDEr-D"
    return Finding(
        verdict=f"After as many updates soft attention has a CIDEr-D of {soft[cider].mean:.0f} and "
        f"hard attention {hard[cider].mean:.0f}; {soft[FIGURES[0]].mean:.0f} % and "
        f"{hard[FIGURES[0]].mean:.0f} % of captions are true, and {soft[FIGURES[1]].mean:.0f} % "
        f"and {hard[FIGURES[1]].mean:.0f} % of words point at what they mean.",
        holds=soft[cider].low > hard[cider].high,
        head=("attention", *soft),
        rows=tuple(
            (name, *(f"{m.mean:.1f} ({m.low:.1f}, {m.high:.1f})" for m in one.values()))
            for name, one in marks.items()
        ),
        lines=(_curves(runs),),
        bars=(
            BarPanel(
                title="Captions of held-out scenes",
                x_title="%",
                groups=FIGURES,
                bars={name: tuple(one[f] for f in FIGURES) for name, one in marks.items()},
            ),
        ),
    )


def _curves(runs: dict[str, list[Path]]) -> LinePanel:
    lines: dict[str, tuple[Mark, ...]] = {}
    for name, paths in runs.items():
        (curve,) = curves_of(read_curve(path, figure="loss") for path in paths)
        lines[name] = tuple(
            Mark("", float(p.update), p.mean, p.smallest, p.largest) for p in curve.points
        )
    return LinePanel(
        title="While they learn",
        x_title="updates",
        y_title="held-out loss in nats a word",
        lines=lines,
    )


CLAIM = LectureClaim(
    key="C10",
    title="Soft against hard attention",
    claim="Soft attention reads a weighted mean of all places and learns by gradients; hard "
    "attention looks at one place at a time and must be learnt by trial (REINFORCE), which is "
    "noisier.",
    expect="The loss of soft attention falls sooner and lower, with less spread over seeds.",
    seconds=780,
    measure=_measure,
    runs=_runs,
)
