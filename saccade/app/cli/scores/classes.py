"""A classifier's scores as small tables, and its confusion matrix as a picture."""

import math
from pathlib import Path
from typing import Any

from saccade.app.cli.output import show_table, tell
from saccade.app.look.draw.figure import save_by_ending
from saccade.app.look.draw.png import draw_png
from saccade.app.look.draw.svg import draw_svg
from saccade.errors import ConfigError

SHOWN = 20  # classes in the table; all are in the JSON
DRAWN = 100  # classes that a picture has room for
NAMES = {"top1": "top-1", "top5": "top-5", "mAP": "mean average precision", "loss": "loss"}


def print_class_scores(found: dict[str, Any]) -> None:
    """What `evaluate_classifier` found, for people; programs read it as JSON."""
    rate = found["images"] / max(found["seconds"], 1e-9)
    tell(
        f"{found['split']}: {found['images']:,} images of {found['classes']:,} classes, "
        f"{found['seconds']:.1f} s ({rate:,.0f} images/s)"
    )
    tell("")
    show_table([(label, f"{found[name]:.4f}") for name, label in NAMES.items() if name in found])
    print_by_class(found, unit="images")
    if "pointing" in found:
        _print_pointing(found["pointing"])


def print_by_class(found: dict[str, Any], *, unit: str) -> None:
    """How each class fares, and which are taken for one another; `unit` is what was counted."""
    if "calibration_error" in found:
        show_table([("calibration error", f"{found['calibration_error']:.4f}")])
    _print_classes(found["by_class"], unit)
    if found.get("confused"):
        tell("")
        rows = [
            (f"{p['label']} taken for {p['taken_for']}", f"{p[unit]:,}") for p in found["confused"]
        ]
        show_table(rows, head=("most often", unit))


def _print_pointing(found: dict[str, Any]) -> None:
    rows = [(kind, *map(_share, one.values())) for kind, one in found.items()]
    tell("")
    show_table(rows, head=("maps point", "inside", "near", "mass inside", "by chance"))


def _print_classes(by_class: dict[str, dict[str, Any]], unit: str) -> None:
    """Those that fare worst, where there are many."""
    columns = [name for name in next(iter(by_class.values())) if name != unit]
    worst = sorted(by_class.items(), key=lambda one: _or_zero(one[1][columns[-1]]))
    shown = dict(worst[:SHOWN]) if len(by_class) > SHOWN else by_class
    head = (
        f"the {SHOWN} of lowest recall" if len(by_class) > SHOWN else "class",
        *columns,
        unit,
    )
    tell("")
    show_table(
        [
            (name, *(_share(figures[column]) for column in columns), f"{figures[unit]:,}")
            for name, figures in shown.items()
        ],
        head=tuple(column.replace("_", " ") for column in head),
    )


def draw_confusion(found: dict[str, Any], out: Path, title: str) -> Path:
    """Rows are what is true, columns what it was taken for, as shares of each row."""
    return draw_counts(list(found["by_class"]), found["confusion"], out, title)


def draw_counts(names: list[str], counts: list[list[int]], out: Path, title: str) -> Path:
    """A square matrix, as shares of each row."""
    if len(names) > DRAWN:
        raise ConfigError(
            f"{len(names):,} classes do not fit on a picture, which has room for {DRAWN}; "
            "--json has the matrix"
        )
    shares = [[count / max(1, sum(row)) for count in row] for row in counts]
    drawn: dict[str, Any] = {"rows": names, "columns": names, "weights": shares, "title": title}
    writers = {".png": lambda: draw_png(**drawn), ".svg": lambda: draw_svg(**drawn).encode()}
    return save_by_ending(out, writers)


def _or_zero(value: float) -> float:
    return 0.0 if math.isnan(value) else value


def _share(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3f}"
