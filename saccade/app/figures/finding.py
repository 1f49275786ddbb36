"""What a claim's measurement found: plain data, from which all forms of a figure are made."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from saccade.app.look.draw.chart import Mark
from saccade.config import from_dict, to_dict
from saccade.errors import RunError
from saccade.printable import printable


@dataclass(frozen=True, kw_only=True)
class LinePanel:
    """Lines over numbers, each point a mean over seeds with the smallest and the largest.

    The spread is drawn as a band around the line, or as a bar at each point.
    """

    title: str
    x_title: str
    y_title: str
    lines: dict[str, tuple[Mark, ...]]
    log_x: bool = False
    log_y: bool = False
    spread: Literal["band", "bar"] = "band"


@dataclass(frozen=True, kw_only=True)
class BarPanel:
    """Bars in groups; a bar of a series stands in each of them. Marks have no x."""

    title: str
    x_title: str
    groups: tuple[str, ...]
    bars: dict[str, tuple[Mark, ...]]
    log_x: bool = False


@dataclass(frozen=True, kw_only=True)
class HeatPanel:
    """A matrix from white (`low`) to dark (`high`); some of its cells may be outlined."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    low: float = 0.0
    high: float = 1.0
    x_title: str = ""
    y_title: str = ""
    outlined: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What was measured, and what it says of the claim; `holds` is None where it says nothing."""

    verdict: str
    holds: bool | None
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    lines: tuple[LinePanel, ...] = ()
    bars: tuple[BarPanel, ...] = ()
    heats: tuple[HeatPanel, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ClaimReport:
    """A claim with what was found, and where: all that the page needs."""

    key: str
    title: str
    claim: str
    expect: str
    machine: str
    seconds: float
    seeds: tuple[int, ...]
    ran: tuple[str, ...]
    finding: Finding
    budget: float = 1.0

    @property
    def share(self) -> str:
        """What is said where the runs were smaller than a verdict needs."""
        return "" if self.budget == 1 else f", with {self.budget:.0%} of updates and items"

    @property
    def name(self) -> str:
        """Of its files, in the order of the claims."""
        return file_name(self.key)


def file_name(key: str) -> str:
    """C3 → c03."""
    return f"c{int(key[1:]):02}"


def over_seeds(x: float | int, values: Sequence[float]) -> Mark:
    """The mean of some values, with the smallest and the largest."""
    return Mark("", float(x), math.fsum(values) / len(values), min(values), max(values))


def to_json(report: ClaimReport) -> str:
    """The inverse of `from_json`."""
    return json.dumps(to_dict(report), ensure_ascii=False, indent=1, allow_nan=False)


def from_json(text: str, *, where: str) -> ClaimReport:
    """A report from text that nobody vouches for."""
    try:
        table: Any = json.loads(text)
    except ValueError as error:
        raise RunError(f"{printable(where)} is not JSON: {error}; delete it") from error
    return from_dict(ClaimReport, table, where=where)


def read_reports(folder: Path) -> list[ClaimReport]:
    """All that there are in a folder, in the order of the claims."""
    paths = sorted(folder.glob("c[0-9][0-9].json"))
    return [from_json(path.read_text(encoding="utf-8"), where=str(path)) for path in paths]
