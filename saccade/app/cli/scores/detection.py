"""A detector's scores as small tables, its precision over recall and its confusions as pictures."""

from pathlib import Path
from typing import Any

from saccade.app.cli.output import show_table, tell
from saccade.app.cli.scores.classes import SHOWN, draw_counts
from saccade.app.look.draw.curves import MOST, Curve, CurvePanel, draw_curves
from saccade.app.look.draw.figure import save_by_ending

OVERALL = {
    "ap": "AP (IoU 0.50 to 0.95)",
    "ap50": "AP50 (IoU 0.50)",
    "ap75": "AP75 (IoU 0.75)",
    "ap_small": "AP, small (to 32² pixels)",
    "ap_medium": "AP, medium (to 96² pixels)",
    "ap_large": "AP, large",
    "ar1": "AR, one box per class",
    "ar10": "AR, ten boxes",
    "ar100": "AR, a hundred boxes",
}
NOTHING = "nothing"
CONFUSIONS = 10  # in the table


def print_detection_scores(found: dict[str, Any]) -> None:
    """What `DetectionScores.as_dict` says, with the split and the seconds; JSON is for programs.

    Where there are a `threshold` with its `f1`, and the `confusion` there, they come too.
    """
    rate = found["images"] / max(found["seconds"], 1e-9)
    tell(
        f"{found['split']}: {found['objects']:,} objects of {len(found['by_class']):,} classes in "
        f"{found['images']:,} images, {found['seconds']:.1f} s ({rate:,.0f} images/s)"
    )
    tell("")
    rows = [(label, _share(found[name])) for name, label in OVERALL.items()]
    if "threshold" in found:
        rows.append((f"F1 at a confidence of {found['threshold']:.2f}", _share(found["f1"])))
    show_table(rows)
    _print_classes(found["by_class"])
    if "confusion" in found:
        _print_confusions(found["confusion"], list(found["by_class"]))


def _print_classes(by_class: dict[str, dict[str, Any]]) -> None:
    """Those that fare worst, where there are many."""
    shown = list(by_class.items())
    if many := len(shown) > SHOWN:
        there = [one for one in shown if one[1]["objects"]]
        shown = sorted(there, key=lambda one: one[1]["ap"])[:SHOWN]
    head = (f"the {len(shown)} of lowest AP" if many else "class", "AP", "AP50", "objects")
    rows = [
        (name, _share(one["ap"]), _share(one["ap50"]), f"{one['objects']:,}") for name, one in shown
    ]
    tell("")
    show_table(rows, head=head)


def _print_confusions(counts: list[list[int]], classes: list[str]) -> None:
    names = [*classes, NOTHING]
    pairs = [
        (count, row, column)
        for row, line in enumerate(counts)
        for column, count in enumerate(line)
        if row != column and count
    ]
    pairs.sort(key=lambda one: (-one[0], *one[1:]))
    if not pairs:
        return
    tell("")
    rows = [(_mistake(names[y], names[x]), f"{count:,}") for count, y, x in pairs[:CONFUSIONS]]
    show_table(rows, head=("most often", "boxes"))


def _mistake(true: str, said: str) -> str:
    if said == NOTHING:
        return f"{true} not found"
    return f"{said} where nothing is" if true == NOTHING else f"{true} taken for {said}"


def draw_precision_recall(out: Path, found: dict[str, Any], title: str) -> Path:
    """A panel for each overlap, a curve for each class, and their mean; .svg or .png.

    Where there are more classes than names fit, the best and the worst are named.
    """
    curves = found["precision_recall"]
    overlaps = [name for name in curves if name != "recall"]
    panels = [_panel(overlap, curves[overlap], curves["recall"]) for overlap in overlaps]
    canvas = draw_curves(panels, title=title, x_title="recall", y_title="precision")
    return save_by_ending(out, {".png": canvas.png, ".svg": lambda: canvas.svg().encode()})


def _panel(overlap: str, at: dict[str, Any], recall: list[float]) -> CurvePanel:
    ap = {name: sum(curve) / len(curve) for name, curve in at["by_class"].items()}
    ranked = sorted(ap, key=lambda name: -ap[name])
    best = (MOST - 1) // 2
    named = set(ranked if len(ranked) < MOST else [*ranked[:best], *ranked[best + 1 - MOST :]])
    mean = sum(at["mean"]) / len(at["mean"])
    curves = [
        Curve(f"{name} {ap[name]:.2f}", _reached(recall, curve), named=name in named)
        for name, curve in at["by_class"].items()
    ]
    whole = Curve(f"all classes {mean:.2f}", _reached(recall, at["mean"]), main=True)
    rest = "" if len(named) == len(ap) else f"; {len(ap) - len(named)} classes in grey"
    return CurvePanel(f"IoU {overlap}{rest}", [*curves, whole])


def _reached(recall: list[float], precision: list[float]) -> list[tuple[float, float]]:
    """Up to the last recall that was reached."""
    last = max((at for at, value in enumerate(precision) if value), default=0)
    return list(zip(recall, precision))[: last + 1]


def draw_box_confusion(out: Path, found: dict[str, Any], title: str) -> Path:
    """Rows are what is there, columns what was said, as shares of each row; .svg or .png."""
    return draw_counts([*found["by_class"], NOTHING], found["confusion"], out, title)


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
