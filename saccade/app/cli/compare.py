"""`saccade compare RUN …`: finished runs beside one another, as a table and as a figure."""

from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from saccade.app.cli.inputs import say_written
from saccade.app.cli.output import counting, print_json, show_table, tell, warnings_said
from saccade.app.compare.runs import SIZES, FinishedRun, SeedGroup, points_of, read_finished
from saccade.app.look.draw.chart import Mark, Panel, draw_chart
from saccade.app.look.draw.figure import write
from saccade.errors import ConfigError
from saccade.printable import printable

Size = Literal["compute", "multiply-adds", "parameters", "seen"]
TITLES = {
    "compute": "training compute in FLOPs",
    "multiply-adds": "multiply-adds of a forward pass",
    "parameters": "parameters",
    "seen": "{} learnt from",
}


def compare_command(
    runs: tyro.conf.Positional[tuple[str, ...]],
    /,
    *,
    out: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None,
    x: Size | None = None,
    figure: str = "",
    split: str = "",
    json: bool = False,
) -> None:
    """Set finished runs beside one another: what each cost, and how well it does.

    The figure is that of the best validation; with --split test it is that of the test data, as
    `saccade eval RUN --keep` has kept it. Runs that differ in nothing but the seed are one point:
    their mean, with the smallest and the largest. Training compute is 3 · 2 · multiply-adds ·
    images learnt from: a backward pass costs two forward ones. With --out they are drawn, a
    line for each family of models, a panel for each data set.

    Args:
        runs: folders of runs.
        out: a .svg or .png file.
        x: what the figure is drawn against; training compute where all runs have it counted.
        figure: such as top1; by default the one that decided which weights are best.
        split: of which data, by kept scores: test.
        json: print every point with its runs, as JSON.
    """
    if not runs:
        raise ConfigError("name runs to compare: saccade compare runs/*")
    if out is not None and out.suffix not in (".svg", ".png"):
        raise ConfigError(f"{printable(out.name)} must end in .svg or .png")
    found: list[FinishedRun] = []
    with counting("reading", shown=len(runs) > 1) as progress:
        for number, run in enumerate(runs):
            found.append(read_finished(Path(run), figure=figure, split=split))
            progress(number + 1, len(runs))
    points = points_of(found)
    against = _against(points, x)
    held_out = f"{found[0].label}, {split or 'validation'}"
    if json:
        print_json([_described(point, held_out) for point in points])
    else:
        _print(points, held_out)
    if out is not None:
        unit = found[0].recipe.task.budget_unit
        with warnings_said():
            titles = {"x_title": TITLES[against].format(unit), "y_title": held_out}
            canvas = draw_chart(_panels(points, against), **titles)
            drawn = canvas.png() if out.suffix == ".png" else canvas.svg().encode()
        say_written(write(out, drawn))


def _against(points: list[SeedGroup], asked: Size | None) -> str:
    """What all points have counted; refuses what one has not."""
    for point in points if asked else ():
        if point.size(asked or "") is None:
            known = [name for name in SIZES if all(p.size(name) is not None for p in points)]
            raise ConfigError(
                f"--x {asked}: nobody has counted it of {printable(point.runs[0].path)}; there are:"
                f" {', '.join(known)}"
            )
    counted = all(point.size("compute") is not None for point in points)
    return asked or ("compute" if counted else "parameters")


def _titles(points: list[SeedGroup]) -> dict[tuple[str, str], str]:
    """What each of the data is called: its name, or where it lies if another has the name too."""
    every = dict.fromkeys(point.runs[0].data for point in points)
    names = [name for _, name in every]
    return {
        (place, name): name if names.count(name) == 1 else f"{name}: {printable(place)}"
        for place, name in every
    }


def _panels(points: list[SeedGroup], against: str) -> list[Panel]:
    panels = {data: Panel(title, {}) for data, title in _titles(points).items()}
    for point in points:
        x, values = point.size(against), point.values
        assert x is not None
        mark = Mark(point.name, x, point.mean, min(values), max(values))
        panels[point.runs[0].data].series.setdefault(point.series, []).append(mark)
    for panel in panels.values():
        for marks in panel.series.values():
            marks.sort(key=lambda mark: mark.x)
    return list(panels.values())


def _print(points: list[SeedGroup], held_out: str) -> None:
    unit = points[0].runs[0].recipe.task.budget_unit
    sizes = "parameters", "multiply-adds", f"{unit} learnt from", "compute"
    several = any(len(point.runs) > 1 for point in points)
    spread = ("runs", "smallest", "largest") if several else ()
    head = ("family", "run", *sizes, held_out, *spread)
    for number, (data, title) in enumerate(_titles(points).items()):
        if number:
            tell("")
        tell(f"{title}:")
        rows = [_row(point)[: len(head)] for point in points if point.runs[0].data == data]
        show_table(rows, head=head)


def _row(point: SeedGroup) -> tuple[str, ...]:
    sizes = [_count(point.size(name)) for name in ("parameters", "multiply-adds", "seen")]
    compute = point.size("compute")
    return (
        point.series,
        point.name,
        *sizes,
        "–" if compute is None else f"{compute:.2e}",
        f"{point.mean:.4f}",
        str(len(point.runs)),
        *(f"{one(point.values):.4f}" for one in (min, max)),
    )


def _count(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


def _described(point: SeedGroup, held_out: str) -> dict[str, Any]:
    return {
        "family": point.series,
        "name": point.name,
        "data": point.runs[0].data[1],
        **{name.replace("-", "_"): point.size(name) for name in SIZES},
        "figure": held_out,
        "mean": point.mean,
        "smallest": min(point.values),
        "largest": max(point.values),
        "runs": [
            {"run": str(run.path), "seed": run.recipe.train.seed, "value": run.value}
            for run in point.runs
        ],
    }
