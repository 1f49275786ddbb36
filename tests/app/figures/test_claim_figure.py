"""A claim from Python: measured as the command does, shown by a notebook, saved by its ending."""

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

import saccade
from saccade.app.figures.charts import draw_finding
from saccade.app.figures.claim_figure import ClaimFigure
from saccade.app.figures.page import page_of
from saccade.errors import ConfigError
from tests.app.figures.reports import report as a_report


def test_a_claim_is_measured_by_its_name(tmp_path: Path) -> None:
    figure = saccade.figure("c3", folder=tmp_path, seeds=1, device="cpu")
    assert figure.report.key == "C3"
    assert figure.report.seeds == (0,)
    assert repr(figure) == f"C3 holds here: {figure.report.finding.verdict}"


def test_a_verdict_of_smaller_runs_says_so() -> None:
    report = a_report()
    assert repr(ClaimFigure(report)).startswith("C3 holds here: ")
    small = ClaimFigure(replace(report, budget=0.02))
    assert repr(small).startswith("C3 holds here, with 2% of updates and items: ")
    page, whole = (page_of([one]) for one in (small.report, report))
    assert "holds here, with 2% of updates and items</span>" in page
    assert "saccade figures C3 --budget 0.02; seeds" in page
    assert "holds here?</span></li>" in page
    assert "--budget" not in whole
    assert "holds here?" not in whole


def test_a_notebook_shows_the_drawing_of_the_command() -> None:
    report = a_report()
    title = f"{report.key}  {report.title}"
    shown = ClaimFigure(report)._repr_svg_()
    assert shown == draw_finding(report.finding, title=title).svg()
    ElementTree.fromstring(shown)


def test_it_is_saved_by_its_ending(tmp_path: Path) -> None:
    figure = ClaimFigure(a_report())
    assert figure.save(tmp_path / "c.svg").read_text() == figure._repr_svg_()
    assert figure.save(tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads(figure.save(tmp_path / "c.json").read_text())["key"] == figure.report.key
    with pytest.raises(ConfigError, match=r"c.gif: a look is saved as .svg, .png, .json, not .gif"):
        figure.save(tmp_path / "c.gif")


def test_what_cannot_be_is_refused_in_a_line() -> None:
    with pytest.raises(ConfigError, match=r"no figure 'C15'; there are: C1, .*C14"):
        saccade.figure("C15")
    with pytest.raises(ConfigError, match="seeds=0 must be at least 1"):
        saccade.figure("C3", seeds=0)
    with pytest.raises(ConfigError, match=r"budget=2\.0 must be above 0 and at most 1"):
        saccade.figure("C3", budget=2.0)
    with pytest.raises(ConfigError, match="device"):
        saccade.figure("C3", device="abacus")
