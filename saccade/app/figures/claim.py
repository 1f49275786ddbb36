"""A claim of the lectures: what it says, and what measures it."""

from collections.abc import Callable
from dataclasses import dataclass

from saccade.app.figures.finding import Finding
from saccade.app.figures.workshop import Workshop


def no_runs(work: Workshop) -> None:
    """What a claim needs that is measured at once."""


@dataclass(frozen=True, kw_only=True)
class LectureClaim:
    """One of the claims that the lectures argue by.

    `claim` is what they say in short, `expect` what one should see in the figure, `seconds` how
    long it takes on two CPU cores from nothing. `runs` asks the workshop for all the runs that
    `measure` will, and for nothing else: so they can be trained beside one another before.
    """

    key: str
    title: str
    claim: str
    expect: str
    seconds: int
    measure: Callable[[Workshop], Finding]
    runs: Callable[[Workshop], object] = no_runs
