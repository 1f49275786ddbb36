"""C13: pre-training on text alone, then fine-tuning, against learning from labels alone."""

from pathlib import Path

from saccade.app.compare.runs import read_finished
from saccade.app.figures.claim import LectureClaim
from saccade.app.figures.finding import Finding, LinePanel, over_seeds
from saccade.app.figures.workshop import Workshop

LABELLED = (30, 100, 300, 1000)
PRETRAINED, TUNED = 1500, 150  # updates
FROM_BERT, FROM_NOTHING = "from BERT", "from nothing"


def tagger(work: Workshop, labels: int, seed: int, bert: Path | None) -> Path:
    """A BERT that tells parts of speech, from so many labelled sentences."""
    steps = work.share(TUNED)
    start = () if bert is None else ("--init", str(bert))
    return work.train(
        "bert-tag",
        *("--count", 2000, "--labelled", labels, *start),
        *("--train.steps", steps, "--train.validate-every", max(1, steps // 3)),
        seed=seed,
    )


def _runs(work: Workshop) -> dict[str, dict[int, list[Path]]]:
    """From each start, by labels, one for each seed."""
    steps = work.share(PRETRAINED)
    validated = "--train.validate-every", max(1, steps // 3)
    bert = work.train("bert", "--train.steps", steps, *validated, seed=work.seeds[0])
    return {
        name: {n: [tagger(work, n, seed, start) for seed in work.seeds] for n in LABELLED}
        for name, start in ((FROM_BERT, bert), (FROM_NOTHING, None))
    }


def _accuracy(run: Path) -> float:
    return 100 * read_finished(run, figure="accuracy", split="").value


def _measure(work: Workshop) -> Finding:
    lines = {
        name: tuple(over_seeds(labels, list(map(_accuracy, paths))) for labels, paths in by.items())
        for name, by in _runs(work).items()
    }
    tuned, alone = lines[FROM_BERT], lines[FROM_NOTHING]
    return Finding(
        verdict=f"With {LABELLED[0]} labelled sentences {tuned[0].mean:.1f} % of tags are right "
        f"after pre-training and {alone[0].mean:.1f} % from nothing; with {LABELLED[-1]:,} "
        f"{tuned[-1].mean:.1f} % and {alone[-1].mean:.1f} %.",
        holds=all(one.low > other.high for one, other in zip(tuned[:2], alone[:2])),
        head=("labelled sentences", *(f"{name}: tags right" for name in lines)),
        rows=tuple(
            (f"{labels:,}", *(f"{line[at].mean:.1f} %" for line in lines.values()))
            for at, labels in enumerate(LABELLED)
        ),
        lines=(
            LinePanel(
                title="Parts of speech of held-out sentences",
                x_title="labelled sentences to learn from",
                y_title="tags right in %",
                lines=lines,
                log_x=True,
            ),
        ),
    )


CLAIM = LectureClaim(
    key="C13",
    title="Pre-training then fine-tuning against from scratch",
    claim="A Transformer that has filled in hidden words of much text needs few labels for a task: "
    "fine-tuned it is better than one that learns from the labels alone.",
    expect="The line from BERT lies above the one from nothing, most of all on the left, where "
    "labels are few. One pre-trained run serves all; the seeds are those of fine-tuning.",
    seconds=480,
    measure=_measure,
    runs=_runs,
)
