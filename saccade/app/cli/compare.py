"""`saccade compare RUN …`: runs beside one another, as a table and as a figure."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from saccade.app.cli.inputs import say_written
from saccade.app.cli.options import Output, RunArguments
from saccade.app.cli.output import counting, print_json, show_table, tell, warnings_said
from saccade.app.cli.scores.curves import describe_curve, draw_learning, print_curves
from saccade.app.compare.curves import curves_of, read_curve
from saccade.app.compare.runs import SERIES, SIZES, FinishedRun, SeedGroup, points_of, read_finished
from saccade.app.compare.seeds import ComparedRun, data_titles
from saccade.app.look.draw.canvas import Canvas
from saccade.app.look.draw.chart import Mark, Panel, draw_chart
from saccade.app.look.draw.figure import write
from saccade.errors import ConfigError
from saccade.printable import printable

Size = Literal["compute", "multiply-adds", "parameters", "seen", "labels"]
Series = Literal["family", "start"]
R = TypeVar("R", bound=ComparedRun)
TITLES = {
    "compute": "training compute in FLOPs",
    "multiply-adds": "multiply-adds of a forward pass",
    "parameters": "parameters",
    "seen": "{} learnt from",
    "labels": "labelled items",
}


def compare_command(
    runs: RunArguments,
    /,
    *,
    out: Output = None,
    x: Size | Literal["updates"] | None = None,
    by: Series | None = None,
    figure: str = "",
    split: str = "",
    json: bool = False,
) -> None:
    """Set finished runs beside one another: what each cost, and how well it does.

    The figure is that of the best validation; with --split test it is that of the test data, as
    `saccade eval RUN --keep` has kept it. Runs that differ in nothing but the seed are one point:
    their mean, with the smallest and the largest. Training compute is 3 · 2 · multiply-adds ·
    images learnt from: a backward pass costs two forward ones. With --out they are drawn, a
    line for each family of models, a panel for each data set. With --x labels they are set against
    how many labelled items there were to learn from, a line for each start.

    With --x updates it is how they learn: the figure of every validation, of runs that are still
    running too; a line for each run, or for those that differ in nothing but the seed.

    Args:
        runs: folders of runs.
        out: a .svg or .png file.
        x: what the figure is drawn against; training compute where all runs have it counted;
            updates for curves.
        by: what the runs of a line have in common: the family of models, or what they started
            from (--init), which is the default with --x labels.
        figure: such as top1; by default the one that decided which weights are best.
        split: of which data, by kept scores: test.
        json: print every point with its runs, as JSON.
    """
    if not runs:
        raise ConfigError("name runs to compare: saccade compare runs/*")
    if out is not None and out.suffix not in (".svg", ".png"):
        raise ConfigError(f"{printable(out.name)} must end in .svg or .png")
    if x == "updates":
        _refuse_beside_updates(by, split)
        _compare_curves(runs, out, figure, json=json)
        return
    found = _read(runs, lambda path: read_finished(path, figure=figure, split=split))
    against = _against(found, x)
    points = points_of(found, against=against, by=by or ("start" if x == "labels" else "family"))
    held_out = f"{found[0].label}, {split or 'validation'}"
    if json:
        print_json([_described(point, held_out) for point in points])
    else:
        _print(points, held_out)
    if out is not None:
        title = TITLES[against].format(found[0].recipe.task.budget_unit)
        _write(out, lambda: draw_chart(_panels(points), x_title=title, y_title=held_out))


def _refuse_beside_updates(by: Series | None, split: str) -> None:
    """What says nothing of a run that is still learning."""
    if split:
        raise ConfigError(
            f"--split {printable(split)}: with --x updates figures are those of validation, for "
            "others are not kept on the way; leave --split out, or --x updates"
        )
    if by is not None:
        raise ConfigError(
            f"--by {by}: with --x updates every run is a line, with its seeds; leave --by out"
        )


def _compare_curves(runs: Sequence[str], out: Path | None, figure: str, *, json: bool) -> None:
    found = _read(runs, lambda path: read_curve(path, figure=figure))
    curves, held_out = curves_of(found), f"{found[0].label}, validation"
    if json:
        print_json([describe_curve(curve, held_out) for curve in curves])
    else:
        print_curves(curves, held_out)
    if out is not None:
        _write(out, lambda: draw_learning(curves, held_out))


def _read(runs: Sequence[str], one: Callable[[Path], R]) -> list[R]:
    found: list[R] = []
    with counting("reading", shown=len(runs) > 1) as progress:
        for number, run in enumerate(runs):
            found.append(one(Path(run)))
            progress(number + 1, len(runs))
    return found


def _write(out: Path, draw: Callable[[], Canvas]) -> None:
    with warnings_said():
        canvas = draw()
        drawn = canvas.png() if out.suffix == ".png" else canvas.svg().encode()
    say_written(write(out, drawn))


def _against(runs: list[FinishedRun], asked: Size | None) -> Size:
    """What all runs have counted; refuses what one has not."""
    if asked is None:
        counted = all(run.compute is not None for run in runs)
        return "compute" if counted else "parameters"
    for run in runs:
        if SIZES[asked](run) is None:
            known = [name for name, size in SIZES.items() if all(size(r) is not None for r in runs)]
            raise ConfigError(
                f"--x {asked}: nobody has counted it of {printable(run.path)}; there are:"
                f" {', '.join(known)}"
            )
    return asked


def _panels(points: list[SeedGroup]) -> list[Panel]:
    """Points that their place tells apart need no names."""
    panels = {
        data: Panel(title, {})
        for data, title in data_titles(point.data for point in points).items()
    }
    for point in points:
        x, values = point.size(point.against), point.values
        assert x is not None
        name = "" if point.against == "labels" else point.name
        mark = Mark(name, x, point.mean, min(values), max(values))
        panels[point.data].series.setdefault(point.series, []).append(mark)
    for panel in panels.values():
        for marks in panel.series.values():
            marks.sort(key=lambda mark: mark.x)
    return list(panels.values())


def _print(points: list[SeedGroup], held_out: str) -> None:
    unit = points[0].runs[0].recipe.task.budget_unit
    asked = points[0].against == "labels"
    sizes = {
        **({"labels": TITLES["labels"]} if asked else {}),
        "parameters": "parameters",
        "multiply-adds": "multiply-adds",
        "seen": f"{unit} learnt from",
        "compute": "compute",
    }
    several = any(len(point.runs) > 1 for point in points)
    spread = ("runs", "smallest", "largest") if several else ()
    head = (points[0].by, "run", *sizes.values(), held_out, *spread)
    for number, (data, title) in enumerate(data_titles(point.data for point in points).items()):
        if number:
            tell("")
        tell(f"{title}:")
        rows = [_row(point, list(sizes))[: len(head)] for point in points if point.data == data]
        show_table(rows, head=head)


def _row(point: SeedGroup, sizes: Sequence[str]) -> tuple[str, ...]:
    return (
        point.series,
        point.name,
        *(_count(point.size(name), name) for name in sizes),
        f"{point.mean:.4f}",
        str(len(point.runs)),
        *(f"{one(point.values):.4f}" for one in (min, max)),
    )


def _count(value: float | None, of: str) -> str:
    if value is None:
        return "–"
    return f"{value:.2e}" if of == "compute" else f"{value:,.0f}"


def _described(point: SeedGroup, held_out: str) -> dict[str, Any]:
    return {
        **{by: of(point.runs[0]) for by, of in SERIES.items()},
        "name": point.name,
        "data": point.data[1],
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
