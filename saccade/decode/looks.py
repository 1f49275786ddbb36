"""Where decoding looked: one row of every site per word, and rows follow their hypotheses.

Every step keeps what all live rows saw. A hypothesis remembers the rows that it came through, as
it does its words, and at the end finds its own looks along that trail.
"""

from saccade.attention.look.glance import Glance, joined
from saccade.attention.look.looking import Trace


class Looks:
    """What was seen at each step, if anyone is looking."""

    def __init__(self, trace: Trace | None) -> None:
        self._trace = trace
        self._steps: list[dict[str, Glance]] = []

    @property
    def any(self) -> bool:
        """Whether anything was seen."""
        return bool(self._steps)

    def take(self) -> None:
        """Keep what the step that just ran has seen; its newest query is the word's."""
        if self._trace is not None:
            seen = self._trace.take()
            self._steps.append({site: calls[-1].newest().cpu() for site, calls in seen.items()})

    def along(self, trail: list[int]) -> dict[str, Glance]:
        """The looks of a hypothesis that was row `trail[t]` at step t."""
        steps = [
            {site: glance.row(row) for site, glance in step.items()}
            for step, row in zip(self._steps, trail)
        ]
        return {site: joined([step[site] for step in steps]) for site in (steps or [{}])[0]}
