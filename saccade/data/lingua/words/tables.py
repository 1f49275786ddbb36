"""The word lists: tab-separated tables beside this file. A hyphen stands for nothing."""

from importlib.resources import files


def rows(name: str, *columns: str) -> list[tuple[str, ...]]:
    """The rows of NAME.tsv, whose first line names these columns; a # begins a remark."""
    text = files("saccade.data.lingua.words").joinpath(f"{name}.tsv").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    header, *found = (tuple(cell.strip("-") for cell in line.split("\t")) for line in lines)
    assert header == columns, f"{name}.tsv has the columns {header}, not {columns}"
    for row in found:
        assert len(row) == len(columns), f"{name}.tsv has {len(row)} cells in {row}"
    return found
