"""A claim of the lectures: what it says, and what measures it."""

from collections.abc import Callable
from dataclasses import dataclass

from saccade.app.figures.finding import Finding
from saccade.app.figures.workshop import Workshop


@dataclass(frozen=True, kw_only=True)
class LectureClaim:
    """One of the claims that the lectures argue by.

    `claim` is what they say in short, `expect` what one should see in the figure, `seconds` how
    long it takes on two CPU cores from nothing.
    """

    key: str
    title: str
    claim: str
    expect: str
    seconds: int
    measure: Callable[[Workshop], Finding]
