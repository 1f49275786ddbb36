"""Every claim on a tiny budget: what it finds has the shape that is told, drawn and written."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from saccade.app.figures import CLAIMS
from saccade.app.figures.finding import from_json
from saccade.app.figures.report import measured, write_report
from saccade.app.figures.workshop import Workshop
from tests.app.test_cli import Capture, Patch, run

AT_ONCE = ("C3", "C4", "C5", "C6", "C8", "C9")
TRAINED = tuple(key for key in CLAIMS if key not in AT_ONCE)


def check(key: str, folder: Path, *, seeds: tuple[int, ...] = (0, 1)) -> None:
    work = Workshop(folder, seeds, "cpu", 0.005)
    planned = [one.command for one in work.missing(CLAIMS[key].runs)]
    report = measured(CLAIMS[key], work)
    assert planned == list(dict.fromkeys(work.ran))
    finding = report.finding
    assert finding.rows
    assert all(len(row) == len(finding.head) for row in finding.rows)
    assert any(letter.isdigit() for letter in finding.verdict)
    assert finding.lines or finding.bars or finding.heats
    svg, png, numbers, page = write_report(report, folder)
    ElementTree.parse(svg)
    assert png.stat().st_size > 1000
    assert from_json(numbers.read_text(), where="x") == report
    assert f'<section id="{report.name}">' in page.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("key", AT_ONCE)
def test_a_claim_that_needs_no_run(key: str, tmp_path: Path) -> None:
    check(key, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("key", TRAINED)
def test_a_claim_that_trains(key: str, tmp_path: Path) -> None:
    check(key, tmp_path, seeds=(0,))


@pytest.mark.slow
@pytest.mark.parametrize("key", ["C3", "C4", "C5", "C6", "C9"])
def test_what_follows_from_formulas_holds(key: str, tmp_path: Path) -> None:
    assert CLAIMS[key].measure(Workshop(tmp_path, (0, 1, 2), "cpu")).holds


def test_claims_are_in_the_order_of_the_lectures_and_fit_their_time() -> None:
    assert list(CLAIMS) == sorted(CLAIMS, key=lambda key: int(key[1:]))
    assert all(claim.key == key for key, claim in CLAIMS.items())
    assert max(claim.seconds for claim in CLAIMS.values()) <= 15 * 60
    assert sum(claim.seconds for claim in CLAIMS.values()) <= 90 * 60


def test_without_a_claim_all_are_listed(monkeypatch: Patch, capsys: Capture) -> None:
    assert run(["figures"], monkeypatch) == 0
    out = capsys.readouterr().out
    assert all(f"{key}  {claim.title}" in out for key, claim in CLAIMS.items())
    assert run(["figures", "--json"], monkeypatch) == 0
    assert [one["key"] for one in json.loads(capsys.readouterr().out)] == list(CLAIMS)


@pytest.mark.slow
def test_a_claim_is_told_and_written(tmp_path: Path, monkeypatch: Patch, capsys: Capture) -> None:
    assert run(["figures", "c6", "--out", str(tmp_path), "--device", "cpu"], monkeypatch) == 0
    captured = capsys.readouterr()
    assert "C6 holds here: With fixed weights" in captured.out
    assert "about 0:0" in captured.err
    assert {path.name for path in tmp_path.iterdir()} == {
        "c06.json",
        "c06.png",
        "c06.svg",
        "figures.html",
    }


@pytest.mark.slow
def test_findings_are_printed_as_json(tmp_path: Path, monkeypatch: Patch, capsys: Capture) -> None:
    named = ["figures", "C6", "C3", "--out", str(tmp_path), "--device", "cpu", "--json"]
    assert run(named, monkeypatch) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["key"] for one in found] == ["C3", "C6"]
    assert found[0]["finding"]["holds"] is True
