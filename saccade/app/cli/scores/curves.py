"""How runs learn, as `saccade compare RUN … --x updates` tells it: a table, JSON, a drawing."""

from collections.abc import Sequence
from typing import Any

from saccade.app.cli.output import show_table
from saccade.app.compare.curves import SeedCurve
from saccade.app.compare.seeds import data_titles
from saccade.app.look.draw.canvas import Canvas
from saccade.app.look.draw.curves import MOST, Curve, CurvePanel, draw_curves
from saccade.app.look.draw.scale import count_scale, plain_scale

SPREAD = "; a line is the mean over seeds, its band from the smallest to the largest"
MARKED = 25  # points that are seen one by one; more would hide their line


def print_curves(curves: Sequence[SeedCurve], held_out: str) -> None:
    """A row for each curve: how far it goes, its best and its last figure."""
    titles = data_titles(curve.data for curve in curves)
    several = any(len(curve.runs) > 1 for curve in curves)
    head = ("data", "run", "updates", f"best {held_out}", "after", "last")
    rows = [
        (
            titles[curve.data],
            curve.name,
            f"{curve.last.update:,}",
            f"{curve.best.mean:.4f}",
            f"{curve.best.update:,}",
            f"{curve.last.mean:.4f}",
            *([str(len(curve.runs))] if several else []),
        )
        for curve in curves
    ]
    show_table(rows, head=(*head, "runs") if several else head)


def describe_curve(curve: SeedCurve, held_out: str) -> dict[str, Any]:
    """For programs: the curve, and those of its runs."""
    return {
        "name": curve.name,
        "data": curve.data[1],
        "figure": held_out,
        "updates": curve.last.update,
        "best": curve.best._asdict(),
        "last": curve.last._asdict(),
        "points": [point._asdict() for point in curve.points],
        "runs": [
            {
                "run": str(run.path),
                "seed": run.recipe.train.seed,
                "points": [{"update": at, "value": value} for at, value in run.values.items()],
            }
            for run in curve.runs
        ],
    }


def draw_learning(curves: Sequence[SeedCurve], held_out: str) -> Canvas:
    """A panel for each data set. Of more curves than names fit the best ones are named."""
    panels = [
        _panel(title, [curve for curve in curves if curve.data == data])
        for data, title in data_titles(curve.data for curve in curves).items()
    ]
    several = any(len(curve.runs) > 1 for curve in curves)
    spread = (
        "; a line is the mean over seeds, its band from the smallest to the largest"
        if several
        else ""
    )
    return draw_curves(panels, title=held_out + spread, x_title="updates", y_title=held_out)


def _panel(title: str, curves: list[SeedCurve]) -> CurvePanel:
    higher = curves[0].runs[0].higher
    ranked = sorted(curves, key=lambda curve: curve.best.mean, reverse=higher)
    points = [point for curve in curves for point in curve.points]
    rest = "" if len(curves) <= MOST else f"; {len(curves) - MOST} runs in grey"
    return CurvePanel(
        title + rest,
        [_curve(curve, named=curve in ranked[:MOST]) for curve in curves],
        count_scale(max(point.update for point in points)),
        plain_scale([value for _, _, low, high in points for value in (low, high)]),
    )


def _curve(curve: SeedCurve, *, named: bool) -> Curve:
    points = curve.points
    banded = points if len(curve.runs) > 1 else []
    return Curve(
        curve.name,
        [(float(point.update), point.mean) for point in points],
        named=named,
        marked=len(points) <= MARKED,
        low=tuple((float(point.update), point.smallest) for point in banded),
        high=tuple((float(point.update), point.largest) for point in banded),
    )
