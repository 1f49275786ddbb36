"""C12: shifted patches and local self-attention help a ViT where images are few."""

from pathlib import Path

from saccade.app.compare.runs import read_finished
from saccade.app.figures.claim import LectureClaim
from saccade.app.figures.finding import Finding, LinePanel, over_seeds
from saccade.app.figures.workshop import Workshop

SCENES = (1000, 4000)
STEPS = 600
RECIPES = {"SPT and LSA": "sl-vit", "plain ViT": "vit"}


def classifier(work: Workshop, recipe: str, scenes: int, seed: int) -> Path:
    """Both see the same scenes as often, varied alike."""
    steps = work.share(STEPS)
    often = "--train.validate-every", max(1, steps // 3)
    return work.train(
        recipe, "--scenes", work.share(scenes), "--train.steps", steps, *often, seed=seed
    )


def _runs(work: Workshop) -> dict[str, dict[int, list[Path]]]:
    """Of each model, by scenes, one for each seed."""
    return {
        name: {
            scenes: [classifier(work, recipe, scenes, seed) for seed in work.seeds]
            for scenes in SCENES
        }
        for name, recipe in RECIPES.items()
    }


def _top1(run: Path) -> float:
    return 100 * read_finished(run, figure="top1", split="").value


def _measure(work: Workshop) -> Finding:
    lines = {
        name: tuple(over_seeds(scenes, list(map(_top1, paths))) for scenes, paths in by.items())
        for name, by in _runs(work).items()
    }
    local, plain = lines.values()
    return Finding(
        verdict=f"From {SCENES[0]:,} scenes the ViT with shifted patches and local self-attention "
        f"is right in {local[0].mean:.1f} % of held-out ones and the plain one in "
        f"{plain[0].mean:.1f} %; from {SCENES[1]:,} in {local[1].mean:.1f} % and "
        f"{plain[1].mean:.1f} %.",
        holds=all(one.low > other.high for one, other in zip(local, plain)),
        head=("scenes", *(f"{name}: top-1 (smallest, largest)" for name in lines)),
        rows=tuple(
            (
                f"{scenes:,}",
                *(f"{b[at].mean:.1f} ({b[at].low:.1f}, {b[at].high:.1f})" for b in lines.values()),
            )
            for at, scenes in enumerate(SCENES)
        ),
        lines=(
            LinePanel(
                title="Class of the largest object, held-out scenes",
                x_title="scenes to learn from",
                y_title="top-1 in %",
                lines=lines,
                log_x=True,
                spread="bar",
            ),
        ),
    )


CLAIM = LectureClaim(
    key="C12",
    title="SPT and LSA on a small data set",
    claim="A ViT lacks the locality that convolutions are born with, so it needs many images. "
    "Shifted patch tokenization (SPT) and locality self-attention (LSA) give some of it back, and "
    "small data sets are learnt better.",
    expect="The line of SPT and LSA lies above that of the plain ViT at both sizes, beyond the "
    "spread of the seeds.",
    seconds=660,
    measure=_measure,
    runs=_runs,
)
