"""The lectures' notebooks: each runs from top to bottom, and is stored with what it showed."""

import re
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

from tools.notebooks import FOLDER, PARAMETERS, run_notebook, slimmed  # noqa: E402

NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
LECTURES = 5
TINY = 0.02  # of the training
KILOBYTES = 1000
named = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem[0])


def small(source: str, *, tags: tuple[str, ...] = ()) -> object:
    cell = nbformat.v4.new_code_cell(source, metadata={"tags": list(tags)})
    return nbformat.v4.new_notebook(cells=[cell])


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("notebooks")


def test_every_lecture_has_one() -> None:
    assert [path.stem[0] for path in NOTEBOOKS] == [str(number) for number in range(LECTURES)]


@pytest.mark.slow
@named
def test_a_notebook_runs_from_top_to_bottom(
    path: Path, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    done = run_notebook(nbformat.read(path, as_version=4), runs, BUDGET=TINY)
    code = [cell for cell in done.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == [*range(1, len(code) + 1)]
    shown = sum("data" in output for cell in code for output in cell.outputs)
    stored = nbformat.read(path, as_version=4).cells
    assert shown == sum("data" in output for c in stored for output in c.get("outputs", []))


@pytest.mark.slow
def test_an_error_in_a_cell_is_not_passed_over(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="ZeroDivisionError"):
        run_notebook(small("1 / 0"), tmp_path)


@named
def test_it_is_stored_as_it_was_run(path: Path) -> None:
    code = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    assert [cell.execution_count for cell in code] == [*range(1, len(code) + 1)]
    kinds = {kind for cell in code for output in cell.outputs for kind in output.get("data", {})}
    assert kinds >= {"text/plain", "image/svg+xml"}
    assert "text/html" not in kinds
    assert all(output.output_type != "error" for cell in code for output in cell.outputs)
    assert all(output.get("name") != "stderr" for cell in code for output in cell.outputs)


@named
def test_it_is_small_and_says_nothing_of_the_machine(path: Path) -> None:
    assert path.stat().st_size < 600 * KILOBYTES
    for cell in nbformat.read(path, as_version=4).cells:
        for output in cell.get("outputs", []):
            assert len(str(output)) < 100 * KILOBYTES, cell.source[:60]
    assert not re.search(r"/(work|home|root|tmp|Users)/", path.read_text())


@named
def test_it_has_one_cell_that_says_how_much_is_trained(path: Path) -> None:
    cells = nbformat.read(path, as_version=4).cells
    (cell,) = [cell for cell in cells if PARAMETERS in cell.metadata.get("tags", [])]
    assert cell.source.startswith("BUDGET = 1.0")


@pytest.mark.slow
def test_a_parameter_is_replaced_in_its_cell_alone(tmp_path: Path) -> None:
    notebook = small("BUDGET = 1.0  # all\nother = 3", tags=(PARAMETERS,))
    notebook.cells.append(nbformat.v4.new_code_cell("print(BUDGET, other)"))
    done = run_notebook(notebook, tmp_path, BUDGET=0.5)
    assert done.cells[1].outputs[0].text == "0.5 3\n"


def test_a_page_is_left_out_where_there_is_a_drawing() -> None:
    notebook = small("look")
    drawn = {"text/html": "<iframe>", "image/svg+xml": "<svg/>"}
    alone = {"text/html": "<b>x</b>"}
    notebook.cells[0].outputs = [
        nbformat.v4.new_output("display_data", data=data) for data in (drawn, alone)
    ]
    first, second = slimmed(notebook).cells[0].outputs
    assert dict(first.data) == {"image/svg+xml": "<svg/>"}
    assert dict(second.data) == alone
