"""Read a split of pairs or of texts, whatever form the user has it in."""

from collections.abc import Iterator
from pathlib import Path

from saccade.data.readers.report import PairsRead, Problem, TextsRead, collect
from saccade.data.readers.text.find import Found, find_pairs, find_texts
from saccade.data.readers.text.parallel import parallel_pairs
from saccade.data.readers.text.parquet import parquet_records
from saccade.data.readers.text.plain import line_texts, whole_text
from saccade.data.readers.text.records import (
    HUGGING_FACE,
    Names,
    json_records,
    record_pairs,
    record_texts,
)
from saccade.data.readers.text.tsv import tsv_pairs


def read_pairs(
    data: Path, split: str, *, source: str = "", target: str = "", skip_bad: int = 0
) -> PairsRead:
    """All pairs of a split, in order; `source` and `target` are endings, columns or keys.

    Over `skip_bad` bad rows stop the reading with a list of them; fewer are left out and counted.
    """
    found = find_pairs(data, split, source=source, target=target)
    names = [(source, target)] if source else []
    rows = _pairs(found, [*names, ("source", "target")])
    got = collect(rows, found.paths, skip_bad=skip_bad)
    files = [str(path) for path in found.paths]
    return PairsRead(got.rows, got.problems, got.duplicates, files, got.skipped)


def read_texts(
    data: Path, split: str, *, field: str = "text", whole: bool = False, skip_bad: int = 0
) -> TextsRead:
    """All texts of a split, in order: lines of plain text, or the `field` of each record.

    With `whole`, a file of plain text is one text with its newlines kept.
    """
    found = find_texts(data, split)
    rows = _texts(found, field=field, whole=whole)
    got = collect(rows, found.paths, skip_bad=skip_bad)
    files = [str(path) for path in found.paths]
    return TextsRead(got.rows, got.problems, got.duplicates, files, got.skipped)


def _pairs(found: Found, names: Names) -> Iterator[tuple[str, str] | Problem]:
    path = found.paths[0]
    if found.form == "parallel":
        return parallel_pairs(*found.paths)
    if found.form == "tsv":
        return tsv_pairs(path, names)
    if found.form == "jsonl":
        return record_pairs(json_records(path), path, names)
    wanted = {HUGGING_FACE, *(name for both in names for name in both)}
    return record_pairs(parquet_records(path, wanted), path, names)


def _texts(found: Found, *, field: str, whole: bool) -> Iterator[str | Problem]:
    path = found.paths[0]
    if found.form == "jsonl":
        return record_texts(json_records(path), path, field)
    if found.form == "parquet":
        return record_texts(parquet_records(path, {field}), path, field)
    return whole_text(path) if whole else line_texts(path)
