"""`saccade figures C3`: a claim of the lectures, measured and drawn."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import tyro

from saccade.app.cli.output import (
    counting,
    print_json,
    say,
    show_table,
    tell,
    warnings_said,
)
from saccade.app.cli.pace import duration
from saccade.app.figures import CLAIMS
from saccade.app.figures.claim import LectureClaim
from saccade.app.figures.claim_figure import ClaimFigure, workshop
from saccade.app.figures.finding import ClaimReport
from saccade.app.figures.planned_run import PlannedRun
from saccade.app.figures.report import PAGE, measured, write_report
from saccade.app.figures.side_by_side import fitting_jobs, train_side_by_side
from saccade.app.figures.workshop import Workshop
from saccade.errors import ConfigError
from saccade.printable import printable
from saccade.train.devices.distributed import choose_device

EVERY = "all"


def figures_command(
    claims: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="C1 …")] = (),
    /,
    *,
    out: Path = Path("runs/figures"),
    seeds: int = 2,
    budget: float = 1.0,
    device: str = "auto",
    jobs: int = 0,
    json: bool = False,
) -> None:
    """Measure claims of the lectures, draw them, and say whether they hold here.

    Each is a table, a sentence, a drawing (.svg and .png), its numbers (.json), and a part of
    figures.html, which opens without a network. Runs that a claim needs are trained in the folder
    and kept: stopped, the same command goes on, and a claim that has its runs is measured at once.
    Without a claim those that there are are listed.

    Args:
        claims: such as C1 C7, or all.
        out: folder of drawings, numbers, the page and the runs.
        seeds: how many times what has chance in it is done.
        budget: share of the updates and items of every run; less is sooner there and less sure.
        device: cpu, cuda …; auto takes the fastest there is.
        jobs: how many runs are trained beside one another; 0 is as many as this machine has cores
            for, at most 12, and a GPU memory. 1 shows each training as it goes.
        json: print what was found, or which claims there are, as JSON.
    """
    work = workshop(out, seeds=seeds, budget=budget, device=device)
    if not claims:
        _list(json=json)
        return
    chosen = _chosen(claims)
    if jobs < 0:
        raise ConfigError(f"jobs={jobs} must be 0 or more; 0 is as many as fit this machine")
    at_once = jobs or fitting_jobs(choose_device(device))
    if len(chosen) > 1:
        say(f"{len(chosen)} claims, about {_about(chosen)} on two CPU cores if nothing is there")
    if at_once > 1:
        _train(_missing(chosen, work), at_once, device)
    reports: list[ClaimReport] = []
    for claim in chosen:
        say(f"{claim.key}  {claim.title} (about {_about([claim])} on two CPU cores)")
        report = measured(claim, work)
        reports.append(report)
        with warnings_said():
            written = write_report(report, out)
        if not json:
            _tell(report)
        say(f"written: {', '.join(map(str, written))}\n")
    if json:
        print_json([asdict(report) for report in reports])


def _missing(claims: list[LectureClaim], work: Workshop) -> list[PlannedRun]:
    """What there is to train, the longest first, as far as claims know how long they take."""
    seconds: dict[PlannedRun, float] = {}
    for claim in claims:
        runs = work.missing(claim.runs)
        seconds |= {one: claim.seconds / len(runs) for one in runs}
    return sorted(seconds, key=lambda one: -seconds[one])


def _train(runs: list[PlannedRun], jobs: int, device: str) -> None:
    if len(runs) < 2:
        return  # one that is alone is shown as it goes
    jobs = min(jobs, len(runs))
    say(f"{len(runs)} runs to train, {jobs} at a time")
    with counting("updates") as progress:
        train_side_by_side(runs, jobs=jobs, device=device, watch=progress)
    say("")


def _chosen(names: tuple[str, ...]) -> list[LectureClaim]:
    """Claims by their names, in the order of the lectures."""
    wanted = [name.upper() for name in names]
    for name, key in zip(names, wanted):
        if key not in CLAIMS and key != EVERY.upper():
            raise ConfigError(
                f"there is no figure {printable(name)!r}; there are: {', '.join(CLAIMS)}, {EVERY}"
            )
    every = EVERY.upper() in wanted
    return [claim for key, claim in CLAIMS.items() if every or key in wanted]


def _about(claims: list[LectureClaim]) -> str:
    return duration(float(sum(claim.seconds for claim in claims)))


def _list(*, json: bool) -> None:
    if json:
        every = CLAIMS.values()
        print_json([{"key": o.key, "title": o.title, "seconds": o.seconds} for o in every])
        return
    rows = [(claim.key, claim.title, _about([claim])) for claim in CLAIMS.values()]
    rows.append((EVERY, f"the page of all is {PAGE}", _about(list(CLAIMS.values()))))
    show_table([(f"{key}  {title}", about) for key, title, about in rows], head=("figure", "about"))


def _tell(report: ClaimReport) -> None:
    finding = report.finding
    show_table(finding.rows, head=finding.head)
    tell(str(ClaimFigure(report)))
