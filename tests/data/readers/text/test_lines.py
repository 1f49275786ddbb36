"""Packed files: read as plain ones are, and refused where they are damaged or a bomb."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from saccade.data.readers import read_pairs, read_texts, stream_pairs
from saccade.errors import DataError
from tests.data.readers.text.packed import PACK, zstandard


def refusal(read: Callable[[], object]) -> str:
    with pytest.raises(DataError) as caught:
        read()
    return str(caught.value)


@pytest.mark.parametrize("whole", [False, True])
def test_damaged_zst_is_refused(tmp_path: Path, whole: bool) -> None:
    path, good = tmp_path / "train.txt.zst", zstandard(os.urandom(3_000).hex().encode() + b"\n")
    for raw in (good[:-9], b"plain text\n", good[:40] + b"\xff" * 90):
        path.write_bytes(raw)
        told = refusal(lambda: read_texts(path, "train", whole=whole))
        assert told.startswith(f"{path} is not a whole zst file (")
        assert told.endswith("fetch or pack it again")
        assert "\n" not in told


def test_a_bomb_in_zst_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "train.txt.zst"
    path.write_bytes(zstandard(b"a" * 65_000_000))
    told = refusal(lambda: read_texts(path, "train", skip_bad=1))
    assert "it looks like a bomb; if it is meant, unpack it" in told


@pytest.mark.parametrize("form", ["tsv", "jsonl", "parquet", "tsv.zst"])
def test_a_stream_gives_the_same_rows_in_every_pass_and_counts_them(
    tmp_path: Path, form: str
) -> None:
    pairs, path = [(f"a {i}", f"b {i}") for i in range(200)], tmp_path / f"train.{form}"
    records = [{"source": source, "target": target} for source, target in pairs]
    match form:
        case "jsonl":
            path.write_text("".join(json.dumps(record) + "\n" for record in records))
        case "parquet":
            pq.write_table(pa.Table.from_pylist(records), path)
        case _:
            raw = "".join(f"{source}\t{target}\n" for source, target in pairs).encode()
            path.write_bytes(PACK[path.suffix if path.suffix == ".zst" else ""](raw))
    stream = stream_pairs(tmp_path, "train")
    for _ in range(2):
        good = stream.good()
        assert list(good) == pairs == read_pairs(tmp_path, "train").pairs
        assert good.count == stream.count() == len(pairs)


def test_zst_without_pyarrow_names_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "train.txt.zst"
    path.write_bytes(zstandard(b"a\n"))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    told = refusal(lambda: read_texts(path, "train"))
    assert told.endswith("needs pyarrow, which is not installed: pip install 'saccade[data]'")
