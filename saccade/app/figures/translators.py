"""The two translators of C1 and C2: one that reads all through one vector, one that looks."""

from pathlib import Path

from saccade.app.figures.workshop import Workshop

LONGEST = 30  # words of a sentence that they learn from
STEPS, PAIRS = 2000, 40_000


def translator(work: Workshop, recipe: str, seed: int) -> Path:
    """Both learn from the same pairs, with the same tokens, for as many updates."""
    steps = work.share(STEPS)
    return work.train(
        recipe,
        *("--lingua.longest", LONGEST, "--pairs", work.share(PAIRS), "--vocabulary", 2000),
        *("--train.steps", steps, "--train.validate-every", max(1, steps // 2)),
        *("--train.batch-tokens", 1024),
        seed=seed,
    )
