"""A report with a panel of every kind, as no measurement gives it."""

from saccade.app.figures.finding import (
    BarPanel,
    ClaimReport,
    Finding,
    HeatPanel,
    LinePanel,
    over_seeds,
)
from saccade.app.look.draw.chart import Mark


def finding(mark: Mark, *, holds: bool | None = True) -> Finding:
    other = over_seeds(mark.x + 1, [1.0, 2.0])
    return Finding(
        verdict="a & <b> hold",
        holds=holds,
        head=("x", "y"),
        rows=(("<one>", "1"), ("two", "2")),
        lines=(
            LinePanel(title="lines", x_title="x", y_title="y", lines={"<a>": (mark, other)}),
            LinePanel(
                title="more", x_title="x", y_title="y", lines={"b": (mark, other)}, spread="bar"
            ),
        ),
        bars=(
            BarPanel(
                title="bars",
                x_title="x",
                groups=("first", "second"),
                bars={"soft": (mark, other), "hard": (other, mark)},
            ),
        ),
        heats=(
            HeatPanel(
                title="heat",
                rows=("la", "zone"),
                columns=("the", "area"),
                values=((0.0, 1.0), (0.5, 0.25)),
                outlined=((0, 1),),
                x_title="x",
                y_title="y",
            ),
        ),
    )


def report(mark: Mark | None = None, *, key: str = "C3", holds: bool | None = True) -> ClaimReport:
    return ClaimReport(
        key=key,
        title="A title & more",
        claim="so they <say>",
        expect="a line",
        machine="CPU, 2 threads",
        seconds=1.5,
        seeds=(0, 1),
        ran=("saccade train <x>",),
        finding=finding(mark or over_seeds(1, [0.5, 0.7]), holds=holds),
    )
