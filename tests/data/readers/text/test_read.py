"""Bad rows are named by file and line, good rows survive untouched, and no line ever shifts."""

import gzip
import json
import os
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from saccade.data.readers import (
    PairsRead,
    Problem,
    TextsRead,
    read_pairs,
    read_texts,
)
from saccade.data.readers.text import lines
from saccade.errors import ConfigError, DataError
from tests.data.readers.text.packed import PACK

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Fill files of one folder from keywords: train_en=b"…" makes train.en."""

    def into(**files: bytes) -> Path:
        for name, raw in files.items():
            (tmp_path / name.replace("_", ".")).write_bytes(raw)
        return tmp_path

    return into


def pairs(folder: Path, *, skip_bad: int = 0) -> PairsRead:
    return read_pairs(folder, "train", source="en", target="de", skip_bad=skip_bad)


def refusal(read: Callable[[], object]) -> str:
    with pytest.raises(DataError) as caught:
        read()
    return str(caught.value)


BAD_LINES = [
    (b"", "empty"),
    (b" \t\xe2\x80\xa8\xc2\xa0", "empty"),
    (b"a\0b", "NUL character: at offset 1 of the line"),
    (b"a\rb", "carriage return inside the line"),
    (b"a\r\r", "carriage return inside the line"),
    (b"caf\xe9 x", "not UTF-8: byte 0xe9 at offset 3 of the line"),
    (b"\xed\xa0\x80", "not UTF-8: byte 0xed at offset 0 of the line"),
    (b"x" * 1_000_001, "too long: over 1,000,000 bytes"),
    (b"x" * 10_485_760, "too long: over 1,000,000 bytes"),
]


@pytest.mark.parametrize(("line", "reason"), BAD_LINES)
@pytest.mark.parametrize("packing", ["", ".gz", ".zst"])
def test_a_bad_line_is_named_and_the_next_line_keeps_its_number(
    tmp_path: Path, line: bytes, reason: str, packing: str
) -> None:
    raw = b"one\r\n" + line + b"\r\nthree\n" + line + b"\n"
    path = tmp_path / ("train.txt" + packing)
    path.write_bytes(PACK[packing](raw))
    read = read_texts(path, "train", skip_bad=2)
    assert read.texts == ["one", "three"]
    assert read.problems == [Problem(str(path), 2, reason), Problem(str(path), 4, reason)]
    assert f"{path}:2: {reason}\n" in refusal(lambda: read_texts(path, "train"))


@pytest.mark.parametrize(
    ("source", "target", "at_fault", "reason"),
    [
        (b"", b"b", "train.en", "one side empty: the source"),
        (b"a", b" ", "train.de", "one side empty: the target"),
        (b"", b"", "train.en", "empty"),
        (b"a", b"\xff", "train.de", "not UTF-8: byte 0xff at offset 0 of the line"),
        (b"a", b"b\rc", "train.de", "carriage return inside the line"),
        (b"a\0", b"b", "train.en", "NUL character: at offset 1 of the line"),
        (b"a", b"x" * 1_000_001, "train.de", "too long: over 1,000,000 bytes"),
    ],
)
def test_a_bad_side_takes_its_partner_with_it(
    write: Write, source: bytes, target: bytes, at_fault: str, reason: str
) -> None:
    folder = write(train_en=source + b"\ntwo\n", train_de=target + b"\nzwei\n")
    read = pairs(folder, skip_bad=1)
    assert read.pairs == [("two", "zwei")]
    assert read.problems == [Problem(str(folder / at_fault), 1, reason)]


def test_marks_that_are_not_newlines_stay_inside_their_line(write: Write) -> None:
    odd = "a\u2028b\u2029c\u0085d\ve\ff\x1cg"
    folder = write(train_en=f"{odd}\nlast".encode(), train_de=b"eins\r\nzwei\r\n")
    assert pairs(folder).pairs == [(odd, "eins"), ("last", "zwei")]


def test_a_byte_order_mark_is_dropped_at_the_start_only(write: Write) -> None:
    folder = write(train_txt="\ufeffa\n\ufeffb\n".encode())
    assert read_texts(folder, "train").texts == ["a", "\ufeffb"]
    assert read_texts(folder, "train", whole=True).texts == ["a\n\ufeffb\n"]


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("ending", [b"", b"\n", b"\r\n", b"\nnext", b"\r\nnext\n"])
def test_a_line_of_exactly_the_limit_is_good(write: Write, mark: bytes, ending: bytes) -> None:
    folder = write(train_txt=mark + b"x" * 1_000_000 + ending)
    expected = ["x" * 1_000_000] + ["next"] * (b"next" in ending)
    assert read_texts(folder, "train").texts == expected


def test_unequal_files_are_refused_with_both_counts_whatever_may_be_skipped(write: Write) -> None:
    folder = write(train_en=b"a\nb\n\nd\n", train_de=b"A\nB\n\n")
    told = refusal(lambda: pairs(folder, skip_bad=99))
    assert f"{folder / 'train.en'} has 4 lines but {folder / 'train.de'} has 3;" in told
    folder = write(train_en=b"a\n", train_de=b"A\n\n")
    assert "train.en has 1 lines but" in refusal(lambda: pairs(folder))


def test_the_refusal_sums_up_shows_ten_and_tells_the_way_on(write: Write) -> None:
    folder = write(train_en=b"\n" * 9 + b"\xff\n" * 5 + b"a\n", train_de=b"x\n" * 14 + b"b\n")
    told = refusal(lambda: pairs(folder, skip_bad=13)).split("\n")
    assert told[0] == (
        "train.en + train.de: 14 bad rows (9 one side empty, 5 not UTF-8); the first are:"
    )
    assert told[1] == f"  {folder / 'train.en'}:1: one side empty: the source"
    assert told[10] == f"  {folder / 'train.en'}:10: not UTF-8: byte 0xff at offset 0 of the line"
    assert told[11:] == ["mend them, or pass --skip-bad 14 to leave them out"]
    assert pairs(folder, skip_bad=14).pairs == [("a", "b")]


def test_nothing_good_is_refused_whatever_may_be_skipped(write: Write) -> None:
    told = refusal(lambda: read_texts(write(train_txt=b"\n \n"), "train", skip_bad=2))
    assert told.startswith("train.txt: 2 bad rows (2 empty); the first are:")
    assert told.endswith(
        "not one row is good: is this the data, and the form of it, that you meant?"
    )


def test_all_bad_rows_are_counted_but_a_thousand_held(write: Write) -> None:
    read = read_texts(write(train_txt=b"\n" * 2_500 + b"a\n"), "train", skip_bad=2_500)
    assert len(read.problems) == 1_000
    assert read.summary() == "1 text from train.txt; 2,500 bad rows skipped (2,500 empty)"


def test_the_summary_is_one_line_for_a_report(write: Write) -> None:
    rows = b"a\n" * 1_200 + b"\n\n\xff\n"
    folder = write(train_en=rows, train_de=rows)
    assert pairs(folder, skip_bad=3).summary() == (
        "1,200 pairs from train.en + train.de; "
        "3 bad rows skipped (2 empty, 1 not UTF-8); 1,199 duplicates kept"
    )
    assert TextsRead(["a"], [], 1, ["x/b.txt"]).summary() == "1 text from b.txt; 1 duplicate kept"
    assert str(Problem("a.txt", 7, "empty")) == "a.txt:7: empty"


def test_a_negative_allowance_is_refused(write: Write) -> None:
    with pytest.raises(ConfigError, match="skip_bad=-1 is below 0"):
        read_texts(write(train_txt=b"a\n"), "train", skip_bad=-1)


@pytest.mark.parametrize("raw", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("packed", [False, True])
def test_an_empty_file_is_refused(tmp_path: Path, raw: bytes, packed: bool) -> None:
    path = tmp_path / ("train.txt" + ".gz" * packed)
    path.write_bytes(gzip.compress(raw) if packed else raw)
    assert refusal(lambda: read_texts(path, "train")).startswith(
        f"{path} is empty: it holds no lines"
    )
    told = refusal(lambda: read_texts(path, "train", whole=True))
    assert told.startswith(f"{path} is empty: it holds no text")


def test_an_empty_side_is_refused(write: Write) -> None:
    folder = write(train_en=b"a\n", train_de=b"")
    assert f"{folder / 'train.de'} is empty" in refusal(lambda: pairs(folder))


def test_a_directory_in_place_of_a_file_is_refused(write: Write) -> None:
    folder = write(train_en=b"a\n")
    (folder / "train.de").mkdir()
    assert "train.de is a directory where a file should be" in refusal(lambda: pairs(folder))


@pytest.mark.timeout(20)
@pytest.mark.parametrize("ending", ["txt", "jsonl", "parquet", "txt.gz"])
def test_a_fifo_is_refused_without_waiting(tmp_path: Path, ending: str) -> None:
    os.mkfifo(tmp_path / f"train.{ending}")
    told = refusal(lambda: read_texts(tmp_path, "train"))
    assert f"train.{ending} is not a regular file; copy its content into one" in told
    assert "not a regular file" in refusal(
        lambda: read_texts(tmp_path / f"train.{ending}", "train")
    )


def test_a_device_is_refused() -> None:
    assert "/dev/zero is not a regular file" in refusal(
        lambda: read_texts(Path("/dev/zero"), "train")
    )


def test_a_missing_path_and_a_file_that_may_not_be_read_are_refused(tmp_path: Path) -> None:
    told = refusal(lambda: read_texts(tmp_path / "no.txt", "train"))
    assert told == f"{tmp_path / 'no.txt'} does not exist; check the path"
    (tmp_path / "train.txt").symlink_to(tmp_path / "train.txt")
    assert "cannot be read" in refusal(lambda: read_texts(tmp_path, "train"))


@pytest.mark.parametrize("whole", [False, True])
def test_damaged_gzip_is_refused(tmp_path: Path, whole: bool) -> None:
    path = tmp_path / "train.txt.gz"
    good = gzip.compress(os.urandom(3_000).hex().encode() + b"\n")
    flipped = good[:-6] + bytes([good[-6] ^ 1]) + good[-5:]  # the checksum
    for raw in (good[:-9], good[:5], b"plain text\n", flipped, good[:10] + b"\xff" * 90):
        path.write_bytes(raw)
        told = refusal(lambda: read_texts(path, "train", whole=whole))
        assert told.startswith(f"{path} is not a whole gzip file (")
        assert told.endswith("fetch or pack it again")
        assert "\n" not in told


def test_whole_text_is_kept_as_it_is(write: Write) -> None:
    raw = b"\n One\r\n\n\n two\rthree\xe2\x80\xa8 \n\n"
    assert read_texts(write(train_txt=raw), "train", whole=True).texts == [raw.decode()]


def test_whole_text_refuses_nul_and_broken_utf8_by_line(write: Write) -> None:
    folder = write(train_txt=b"a\nb\nc\xff\n")
    told = refusal(lambda: read_texts(folder, "train", whole=True))
    assert "train.txt:3: not UTF-8: byte 0xff at offset 5 of the text" in told
    folder = write(train_txt=b"a\nb\0\n")
    told = refusal(lambda: read_texts(folder, "train", whole=True, skip_bad=5))
    assert "train.txt:2: NUL character: at offset 3 of the text" in told


def test_whole_text_has_a_limit(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write(train_txt=b"x" * 11)
    monkeypatch.setattr(lines, "MAX_DOCUMENT", 10)
    told = refusal(lambda: read_texts(folder, "train", whole=True))
    assert told.endswith("train.txt holds over 10 bytes; cut it into pieces")


def test_a_line_that_unpacks_to_fifty_megabytes_is_never_held(tmp_path: Path) -> None:
    path = tmp_path / "train.txt.gz"
    path.write_bytes(gzip.compress(b"a" * 50_000_000 + b"\nb\n", 1))
    tracemalloc.start()
    read = read_texts(path, "train", skip_bad=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert read.texts == ["b"]
    assert peak < 10_000_000


@pytest.mark.slow
def test_a_million_lines_are_read_in_seconds(write: Write) -> None:
    folder = write(train_en=b"a\n" * 1_000_000, train_de=b"b\n" * 1_000_000)
    start = time.perf_counter()
    read = pairs(folder)
    assert time.perf_counter() - start < 20  # about 3 on an idle core
    assert (len(read.pairs), read.duplicates) == (1_000_000, 999_999)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("a", "not 2 columns: 1 found"),
        ("a\tb\tc", "not 2 columns: 3 found"),
        ("\tb", "one side empty: the source"),
        ("a\t ", "one side empty: the target"),
        ("\t", "empty"),
        ("", "empty"),
    ],
)
def test_bad_rows_of_tsv(write: Write, row: str, reason: str) -> None:
    folder = write(train_tsv=f'"x\ty"\n{row}\n'.encode())
    read = read_pairs(folder, "train", skip_bad=1)
    assert read.pairs == [('"x', 'y"')]
    assert [str(problem) for problem in read.problems] == [f"{folder}/train.tsv:2: {reason}"]


def test_a_header_of_tsv_picks_the_columns(write: Write) -> None:
    folder = write(train_tsv=b"id\tde\ten\n1\tzwei\ttwo\n2\tdrei\n")
    read = pairs(folder, skip_bad=1)
    assert read.pairs == [("two", "zwei")]
    assert read.problems[0].reason == "not 3 columns: 2 found"
    folder = write(train_tsv=b"source\ttarget\na\tb\n")
    assert read_pairs(folder, "train").pairs == pairs(folder).pairs == [("a", "b")]


BAD_RECORDS = [
    ("{", "not JSON: Expecting property name enclosed in double quotes at column 2"),
    ("[" * 200_000, "not JSON: nested too deeply"),
    ("9" * 5_000, "not JSON: a number has too many digits"),
    ("[]", "wrong type: the row is a list, not an object with keys"),
    ("7", "wrong type: the row is a number, not an object with keys"),
    ('{"text": null}', "wrong type: 'text' is null, not a string"),
    ('{"text": true}', "wrong type: 'text' is a boolean, not a string"),
    ('{"text": {}}', "wrong type: 'text' is an object, not a string"),
    ('{"txt": "a", "id": 1}', "missing key: no 'text'; it has 'txt', 'id'; give --field"),
    ("{}", "missing key: no 'text'; it has no keys"),
    ('{"text": " "}', "empty"),
    ("", "empty"),
    ('{"text": "a\\u0000"}', "NUL character: in 'text'"),
    ('{"text": "a\\ud800b"}', "lone surrogate: in 'text', half of a character"),
    ('{"text":\r"a"}', "carriage return inside the line"),
]


@pytest.mark.parametrize(("line", "reason"), BAD_RECORDS)
def test_bad_rows_of_jsonl(write: Write, line: str, reason: str) -> None:
    folder = write(train_jsonl=f'{{"text": "a\\n\\u2028b"}}\n{line}\n'.encode())
    read = read_texts(folder, "train", skip_bad=1)
    assert read.texts == ["a\n\u2028b"]
    assert [str(problem) for problem in read.problems] == [f"{folder}/train.jsonl:2: {reason}"]


RECORDS = [
    {"source": "a", "target": "b"},
    {"de": "b", "en": "a", "fr": "c"},
    {"translation": {"de": "b", "en": "a"}},
]


@pytest.mark.parametrize("record", RECORDS)
def test_each_shape_of_record_gives_the_pair_from_jsonl_and_parquet(
    tmp_path: Path, record: dict[str, object]
) -> None:
    (tmp_path / "train.jsonl").write_text(json.dumps(record))
    pq.write_table(pa.Table.from_pylist([record]), tmp_path / "valid.parquet")
    (tmp_path / "test.parquet.gz").write_bytes(
        gzip.compress((tmp_path / "valid.parquet").read_bytes())
    )
    for split in ("train", "valid", "test"):
        assert read_pairs(tmp_path, split, source="en", target="de").pairs == [("a", "b")]


def test_records_whose_order_is_unknown_are_refused(write: Write) -> None:
    folder = write(train_jsonl=b'{"translation": {"en": "a", "de": "b"}}\n')
    told = refusal(lambda: read_pairs(folder, "train", skip_bad=9))
    assert told == (
        f"{folder}/train.jsonl:1 has 'de', 'en': say which is the source: --source en --target de"
    )
    folder = write(train_jsonl=b'{"translation": {"\\ud800": "a", "x\\ny": "b"}}\n')
    told = refusal(lambda: read_pairs(folder, "train"))
    assert told.endswith(r"--source 'x\ny' --target '\ud800'")
    folder = write(train_jsonl=b'{"en": "a", "de": "b"}\n')
    told = refusal(lambda: read_pairs(folder, "train"))
    assert told.endswith(":1 has 'de', 'en': say which is the source: --source en --target de")
    folder = write(train_jsonl=b'{"a": "a", "b": "b"}\n')
    told = refusal(lambda: read_pairs(folder, "train"))
    assert "no 'source' and 'target'; it has 'a', 'b'; name yours with --source" in told
    folder = write(train_jsonl=b'{"en": "a", "de": "b"}\n')
    told = refusal(lambda: read_pairs(folder, "train", source="en", target="fr"))
    assert "train.jsonl:1: missing key: no 'fr'; it has 'en', 'de'\n" in told


def test_bad_rows_of_parquet(tmp_path: Path) -> None:
    path = tmp_path / "train.parquet"
    raw = pa.array([b"a", b"caf\xe9", None, b" ", b"x" * 1_000_001, b"z"])
    pq.write_table(pa.table({"text": raw.view(pa.string()), "id": range(6)}), path)
    read = read_texts(tmp_path, "train", skip_bad=4)
    assert read.texts == ["a", "z"]
    assert [str(problem) for problem in read.problems] == [
        f"{path}:2: not UTF-8",
        f"{path}:3: wrong type: 'text' is null, not a string",
        f"{path}:4: empty",
        f"{path}:5: too long: over 1,000,000 bytes",
    ]
    told = refusal(lambda: read_texts(tmp_path, "train", field="body"))
    assert told == f"{path} has no column 'body'; its columns are: 'text', 'id'"


def test_parquet_that_is_damaged_or_has_no_rows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "train.parquet"
    path.write_bytes(b"PAR1 not really PAR1")
    told = refusal(lambda: read_texts(tmp_path, "train"))
    assert told.startswith(f"{path} is not a whole Parquet file (")
    pq.write_table(pa.table({"text": pa.array([], pa.string())}), path)
    assert "train.parquet: no rows at all" in refusal(lambda: read_texts(tmp_path, "train"))


def test_parquet_without_pyarrow_tells_what_to_install(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(train_parquet=b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    assert refusal(lambda: read_texts(folder, "train")).endswith("pip install 'saccade[data]'")
