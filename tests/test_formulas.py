"""Every name in docs/formulas.md exists where it says."""

import importlib
import re
from functools import reduce
from pathlib import Path

import pytest

PAGE = (Path(__file__).parent.parent / "docs" / "formulas.md").read_text()
ROWS = [
    line
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith("| Formula |")
]
NAMES = re.findall(r"`(saccade/[\w/]+\.py)::([\w.]+)`", PAGE)


def test_every_row_names_a_place_and_cells_are_not_broken() -> None:
    assert len(ROWS) > 50
    for row in ROWS:
        assert re.search(r"\| `saccade/[\w/]+\.py::[\w.]+` \|$", row), row
        assert row.count("|") == 4, row


@pytest.mark.parametrize(("file", "name"), NAMES, ids="::".join)
def test_every_name_exists(file: str, name: str) -> None:
    module = importlib.import_module(file.removesuffix(".py").replace("/", "."))
    assert reduce(getattr, name.split("."), module) is not None


@pytest.mark.parametrize(
    "folder", ["attention/ladder.py", "attention/scores.py", "blocks/positions.py"]
)
def test_every_formula_of_these_files_is_on_the_page(folder: str) -> None:
    module = importlib.import_module(f"saccade.{folder.removesuffix('.py').replace('/', '.')}")
    public = {
        name
        for name, value in vars(module).items()
        if getattr(value, "__module__", "") == module.__name__ and not name.startswith("_")
    }
    plumbing = {"Score", "Encoding", "PositionKind", "FixedPositions", "GridPositions"}
    plumbing |= {"make_positions", "Positions"}
    assert public - plumbing <= {name for _, name in NAMES}
