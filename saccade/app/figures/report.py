"""From a claim to its files: measured, drawn, written, and put on the page of all."""

import time
from pathlib import Path

import torch

from saccade.app.bench.timing import machine_name
from saccade.app.figures.charts import draw_finding
from saccade.app.figures.claim import LectureClaim
from saccade.app.figures.finding import ClaimReport, read_reports, to_json
from saccade.app.figures.page import page_of
from saccade.app.figures.workshop import Workshop
from saccade.app.look.draw.figure import write
from saccade.errors import WriteError
from saccade.train.devices.distributed import choose_device

PAGE = "figures.html"


def measured(claim: LectureClaim, work: Workshop) -> ClaimReport:
    """What is found of a claim now."""
    begun = time.perf_counter()
    work.ran.clear()
    finding = claim.measure(work)
    machine = machine_name(choose_device(work.device))
    return ClaimReport(
        key=claim.key,
        title=claim.title,
        claim=claim.claim,
        expect=claim.expect,
        machine=f"{machine}, torch {torch.__version__}",
        seconds=round(time.perf_counter() - begun, 1),
        seeds=work.seeds,
        ran=tuple(work.ran),
        finding=finding,
        budget=work.budget,
    )


def write_report(report: ClaimReport, folder: Path) -> list[Path]:
    """Its drawing in two forms, its numbers, and the page of all that are there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteError(f"cannot write {folder}: {error.strerror}") from error
    canvas = draw_finding(report.finding, title=f"{report.key}  {report.title}")
    return [
        write(folder / f"{report.name}.svg", canvas.svg().encode()),
        write(folder / f"{report.name}.png", canvas.png()),
        write(folder / f"{report.name}.json", to_json(report).encode()),
        write(folder / PAGE, page_of(read_reports(folder)).encode()),
    ]
