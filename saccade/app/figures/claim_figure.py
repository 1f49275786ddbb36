"""`saccade.figure("C3")`: a claim of the lectures, measured and drawn, from Python."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from saccade.app.figures import CLAIMS
from saccade.app.figures.charts import draw_finding
from saccade.app.figures.finding import ClaimReport, to_json
from saccade.app.figures.page import HOLDS
from saccade.app.figures.report import measured
from saccade.app.figures.workshop import Workshop
from saccade.app.look.draw.canvas import Canvas
from saccade.app.look.draw.figure import save_by_ending
from saccade.errors import ConfigError
from saccade.printable import printable
from saccade.train.devices.distributed import choose_device


@dataclass(frozen=True)
class ClaimFigure:
    """What was found of a claim; a notebook shows the drawing, `print` the verdict."""

    report: ClaimReport

    def save(self, path: str | Path) -> Path:
        """Write the drawing or the numbers, by the file's ending."""
        writers: dict[str, Callable[[], bytes]] = {
            ".svg": lambda: self._canvas().svg().encode(),
            ".png": lambda: self._canvas().png(),
            ".json": lambda: to_json(self.report).encode(),
        }
        return save_by_ending(path, writers)

    def __repr__(self) -> str:
        _, words = HOLDS[self.report.finding.holds]
        return f"{self.report.key} {words}{self.report.share}: {self.report.finding.verdict}"

    def _repr_svg_(self) -> str:
        """What a notebook shows."""
        return self._canvas().svg()

    def _canvas(self) -> Canvas:
        return draw_finding(self.report.finding, title=f"{self.report.key}  {self.report.title}")


def figure(
    claim: str,
    *,
    seeds: int = 2,
    budget: float = 1.0,
    device: str = "auto",
    folder: str | Path = "runs/figures",
) -> ClaimFigure:
    """Measure a claim of the lectures, as `saccade figures` does, and draw it.

    Runs that it needs are trained in the folder and kept. A `budget` below 1 is that share of
    updates and items: sooner there, and less sure.
    """
    if claim.upper() not in CLAIMS:
        raise ConfigError(
            f"there is no figure {printable(claim)!r}; there are: {', '.join(CLAIMS)}"
        )
    choose_device(device)  # refuses one that is not there, before any work
    work = workshop(Path(folder), seeds=seeds, budget=budget, device=device)
    return ClaimFigure(measured(CLAIMS[claim.upper()], work))


def workshop(folder: Path, *, seeds: int, budget: float, device: str) -> Workshop:
    """A workshop with values that somebody typed."""
    if seeds < 1:
        raise ConfigError(f"seeds={seeds} must be at least 1")
    if not 0 < budget <= 1:
        raise ConfigError(f"budget={budget} must be above 0 and at most 1")
    return Workshop(folder, tuple(range(seeds)), device, budget)
