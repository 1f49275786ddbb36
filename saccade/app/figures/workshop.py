"""Where claims are measured: the folder, the seeds, the device, and how runs are trained there.

A run is trained once, by the command that a reader can type; stopped, it goes on where it was.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from saccade.app.figures.planned_run import PlannedRun, planned_run

LEAST = 2  # of anything that is counted, however small the budget


@dataclass(frozen=True)
class Workshop:
    """What a claim is measured with; `ran` are the commands that its runs are trained by.

    A `budget` below 1 is that share of updates and of items: sooner there, and less sure. A run
    that is not there is handed to `carry_out`, with the device: trained here and now by default.
    """

    folder: Path
    seeds: tuple[int, ...] = (0, 1)
    device: str = "auto"
    budget: float = 1.0
    ran: list[str] = field(default_factory=list[str])
    carry_out: Callable[[PlannedRun, str], None] = PlannedRun.train

    def share(self, full: int) -> int:
        """How many of something the budget allows."""
        return max(LEAST, round(full * self.budget))

    def train(self, name: str, *options: str | int | float, seed: int) -> Path:
        """The finished run of a recipe with options of the command line."""
        one = planned_run(self.folder / "runs", name, tuple(map(str, options)), seed)
        self.ran.append(one.command)
        if not one.finished:
            self.carry_out(one, self.device)
        return one.out

    def missing(self, runs: Callable[["Workshop"], object]) -> list[PlannedRun]:
        """What `runs` would have trained here and now."""
        planned: dict[PlannedRun, str] = {}
        runs(replace(self, ran=[], carry_out=planned.__setitem__))
        return list(planned)
