"""A small file that unpacks to much more is refused in little memory and time; honest ones read."""

import gzip
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from saccade.data.files import unpacking
from saccade.data.readers import read_images, read_pairs, read_texts
from saccade.data.readers import report as report_module
from saccade.data.readers.text import lines as lines_module
from saccade.errors import DataError

MOST = unpacking.FREE


def zigzag(number: int, *, width: int = 1) -> bytes:
    """A number as Thrift has it, in at least so many bytes."""
    number, found = number << 1, bytearray()
    while number > 127 or len(found) + 1 < width:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def cell(path: Path) -> None:
    text = pa.array(["x" * (2 * MOST)], pa.large_string())
    pq.write_table(pa.table({"text": text}), path, compression="zstd")


def lying_cell(path: Path) -> None:
    """The sums in the footer say that it is small."""
    cell(path)
    raw = path.read_bytes()
    about = pq.ParquetFile(path).metadata.row_group(0).column(0).total_uncompressed_size
    body, footer = raw[: -8 - (length := int.from_bytes(raw[-8:-4], "little"))], raw[-8 - length :]
    true = zigzag(about)
    assert true in footer
    path.write_bytes(body + footer.replace(true, zigzag(100, width=len(true))))
    assert pq.ParquetFile(path).metadata.row_group(0).column(0).total_uncompressed_size == 100


def same_cells(path: Path) -> None:
    pq.write_table(pa.table({"text": ["y" * 900_000] * 100}), path, compression="zstd")


def rows(path: Path) -> None:
    every = pa.DictionaryArray.from_arrays(pa.array([0] * 5_000_000, pa.int8()), pa.array(["a b"]))
    pq.write_table(pa.table({"text": every}), path, row_group_size=5_000_000)


def zipped_lines(line: bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with gzip.open(path, "wb") as file:
            for _ in range(70):
                file.write(line * -(-1_000_000 // len(line)))

    return write


BOMBS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "one cell": ("train.parquet", cell),
    "one cell and a lie": ("train.parquet", lying_cell),
    "the same cell again": ("train.parquet", same_cells),
    "five million rows": ("train.parquet", rows),
    "gzip, long lines": ("train.txt.gz", zipped_lines(b"word " * 100_000 + b"\n")),
    "gzip, short lines": ("train.txt.gz", zipped_lines(b"a\n")),
    "gzip, no line": ("train.txt.gz", zipped_lines(b"a")),
    "gzip, json": ("train.jsonl.gz", zipped_lines(b'{"text": "a"}\n')),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", BOMBS)
def test_a_bomb_is_refused_and_named(what: str, tmp_path: Path) -> None:
    name, write = BOMBS[what]
    write(tmp_path / name)
    with pytest.raises(
        DataError, match=rf"{name} takes up .* it looks like a bomb; if it is meant"
    ):
        read_texts(tmp_path / name, "train", skip_bad=10)


@pytest.mark.slow
def test_a_bomb_takes_little_memory(tmp_path: Path) -> None:
    """The whole process, with the libraries, which alone take half of it."""
    lying_cell(tmp_path / "train.parquet")
    zipped_lines(b"word " * 100_000 + b"\n")(tmp_path / "train.txt.gz")
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from saccade.data.readers import read_texts\n"
        "from saccade.errors import DataError\n"
        "for path in map(Path, sys.argv[1:]):\n"
        "    try:\n"
        "        read_texts(path, 'train')\n"
        "    except DataError as error:\n"
        "        assert 'a bomb' in str(error), error\n"
        "    else:\n"
        "        raise AssertionError\n"
        "print(Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, tmp_path.iterdir())],
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    assert int(done.stdout) / 1024 < 600


@pytest.mark.slow
def test_the_way_out_of_a_packed_file_works(tmp_path: Path) -> None:
    zipped_lines(b"a\n" * 1000)(tmp_path / "train.txt.gz")
    with pytest.raises(DataError, match="unpack it and give the plain file"):
        read_texts(tmp_path / "train.txt.gz", "train")
    with gzip.open(tmp_path / "train.txt.gz") as packed:
        (tmp_path / "train.txt").write_bytes(packed.read(1_000_000))
    assert len(read_texts(tmp_path / "train.txt", "train").texts) == 500_000


@pytest.mark.parametrize("name", ["train.jsonl.gz", "train.parquet", "train.parquet.gz"])
def test_what_packs_as_text_does_is_read_whatever_its_size(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking, "FREE", 1000)
    texts = [f"sentence {i} of {i * i % 997} and {i * 7919 % 9973}" for i in range(5000)]
    write(tmp_path / name, texts)
    assert read_texts(tmp_path / name, "train").texts == texts


def write(path: Path, texts: list[str]) -> None:
    if "jsonl" in path.name:
        path.write_bytes(gzip.compress("\n".join(json.dumps({"text": t}) for t in texts).encode()))
        return
    pq.write_table(pa.table({"text": texts}), path, row_group_size=1000, data_page_size=2000)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(path.read_bytes()))


@pytest.mark.parametrize("member", ["train/metadata.jsonl", "train/a.png"])
def test_a_member_of_an_archive_is_bounded_too(member: str, tmp_path: Path) -> None:
    row = {"file_name": "a.png", "text": "a dog"}
    with zipfile.ZipFile(tmp_path / "data.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, b" " * (MOST + 1))
        if member.endswith("png"):
            archive.writestr("train/metadata.jsonl", json.dumps(row))
    with pytest.raises(DataError, match=rf"{member} takes up .* unpack the archive to a folder"):
        read_images(tmp_path / "data.zip", "train").rows[0].image.read()


def endless(bad: int) -> Iterator[report_module.Problem | str]:
    yield "good"
    for number in range(bad):
        yield report_module.Problem("file", number, "empty")
    raise AssertionError("read on for ever")


@pytest.mark.parametrize("skip_bad", [0, 5])
def test_reading_stops_soon_after_too_many_bad_rows(skip_bad: int) -> None:
    enough = skip_bad + report_module.BEYOND
    with pytest.raises(DataError, match=rf"{enough:,} bad rows .*reading stopped there") as raised:
        report_module.collect(endless(enough), ["file"], report_module.TextsRead, skip_bad=skip_bad)
    assert "--skip-bad with as many" in str(raised.value)


def test_millions_of_blank_lines_are_not_all_read(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_bytes(b"a\tb\n" + b"\n" * 30_000_000)
    with pytest.raises(DataError, match=r"10,000 bad rows .* reading stopped there"):
        read_pairs(tmp_path / "train.tsv", "train")


def test_a_line_without_end_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines_module, "MAX_REST", 10_000_000)
    with (tmp_path / "train.txt").open("wb") as file:
        file.truncate(1 << 40)  # takes no room on the disk
    with pytest.raises(DataError, match="a line of over 10,000,000 bytes; it is no text"):
        read_texts(tmp_path / "train.txt", "train")


def test_a_hostile_name_is_spelt_out(tmp_path: Path) -> None:
    evil = tmp_path / "a\x1b[2J"
    evil.mkdir()
    (evil / "train.tsv").write_text("one\n")
    with pytest.raises(DataError) as raised:
        read_pairs(evil, "train")
    assert "\x1b" not in str(raised.value)
    assert "a\\x1b[2J/train.tsv:1" in str(raised.value)
