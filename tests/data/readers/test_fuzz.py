"""Any bytes are read or refused with a DataError; clean text comes back as it was written."""

import gzip
import io
import json
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saccade.data.readers import read_pairs, read_texts, splits
from saccade.errors import DataError

FRAGMENTS = [
    *(b"\n", b"\r\n", b"\r", b"\t", b"\0", b" ", b"a", b"\xef\xbb\xbf", b"\xff", b"\xc3\xa9"),
    *("\u2028".encode(), "\u0085".encode(), b"{", b"}", b"[", b"]", b":", b",", b'"'),
    *(b'{"source": "a", "target": "b"}\n', b'{"translation": {"en": "a", "de": "b"}}\n'),
    *(b'{"text": "a"}\n', b'{"text": "\\ud800"}', b'"source"', b'"text"', b"source\ttarget\n"),
    *(b"\\u0000", b"1e999", b"9" * 4_400, b"[" * 3_000, b"PAR1", b"\x1f\x8b\x08", b"-1", b"null"),
]
FORMS = ["txt", "tsv", "jsonl", "parquet"]
likely = st.lists(st.sampled_from(FRAGMENTS) | st.binary(max_size=4), max_size=25).map(b"".join)
content = st.binary(max_size=200) | likely
damage = st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=4)


def damaged(raw: bytes, spots: list[tuple[int, int]], cut: int) -> bytes:
    changed = bytearray(raw)
    for place, value in spots:
        changed[place % len(raw)] = value
    return bytes(changed[: len(raw) - cut])


def table(*rows: dict[str, object]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows)), sink)
    return sink.getvalue()


TABLES = [
    table({"source": "a", "target": "b", "text": "c"}, {"source": "é" * 9, "text": None}),
    table({"translation": {"en": "a", "de": "b"}, "text": ["c", "d"]}),
    table({"text": "a", "source": 1, "target": b"\xff"}),
]


def read_every_way(folder: Path, file: Path) -> None:
    """Whatever the readers do with this, they may raise nothing but a DataError."""
    tries = [
        splits,
        lambda data: read_pairs(data, "train"),
        lambda data: read_pairs(data, "train", source="en", target="de", skip_bad=3),
        lambda data: read_texts(data, "train"),
        lambda data: read_texts(data, "train", skip_bad=100),
        lambda data: read_texts(data, "train", whole=True),
    ]
    for data in (folder, file):
        for attempt in tries:
            try:
                attempt(data)
            except DataError as error:
                str(error).encode()  # a message that cannot be printed would be a second failure


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@settings(deadline=None, max_examples=60)
@given(raw=content)
def test_any_bytes_in_any_form(form: str, raw: bytes) -> None:
    for name, stored in {
        f"train.{form}": raw,
        f"train.{form}.gz": gzip.compress(raw, 1),
    }.items():
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / name
            file.write_bytes(stored)
            read_every_way(Path(folder), file)


@pytest.mark.parametrize("form", FORMS)
@settings(deadline=None, max_examples=40)
@given(raw=content, spots=damage, cut=st.integers(0, 30), pack=st.booleans())
def test_any_damage_to_gzip(
    form: str, raw: bytes, spots: list[tuple[int, int]], cut: int, pack: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"train.{form}.gz"
        file.write_bytes(damaged(gzip.compress(raw, 1), spots, cut) if pack else raw)
        read_every_way(Path(folder), file)


@settings(deadline=None, max_examples=150)
@given(raw=st.sampled_from(TABLES), spots=damage, cut=st.integers(0, 9))
def test_any_damage_to_parquet(raw: bytes, spots: list[tuple[int, int]], cut: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "train.parquet"
        file.write_bytes(damaged(raw, spots, cut if cut < 4 else 0))
        read_every_way(Path(folder), file)


@settings(deadline=None, max_examples=100)
@given(source=content, target=content, packed=st.booleans())
def test_any_bytes_on_either_side(source: bytes, target: bytes, packed: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, raw in {"train.en": source, "train.de": target}.items():
            stored = gzip.compress(raw, 1) if packed else raw
            (Path(folder) / (name + ".gz" * packed)).write_bytes(stored)
        read_every_way(Path(folder), Path(folder))


clean = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\t\0\ufeff"), min_size=1
).filter(str.strip)
clean_pairs = st.lists(st.tuples(clean, clean), min_size=1, max_size=8)


@settings(deadline=None)
@given(
    pairs=clean_pairs,
    ending=st.sampled_from(["\n", "\r\n"]),
    last=st.booleans(),
    mark=st.sampled_from(["", "\ufeff"]),
    packed=st.booleans(),
)
def test_clean_pairs_survive_every_form(
    pairs: list[tuple[str, str]], ending: str, last: bool, mark: str, packed: bool
) -> None:
    named = [{"source": s, "target": t} for s, t in pairs]
    columns = [[s for s, _ in pairs], [t for _, t in pairs], [f"{s}\t{t}" for s, t in pairs]]
    columns.append([json.dumps(row, ensure_ascii=packed) for row in named])
    text = [(mark + ending.join(rows) + ending * last).encode() for rows in columns]
    names = ["a_train.src", "a_train.tgt", "dev.tsv", "test.jsonl"]
    with tempfile.TemporaryDirectory() as folder:
        for name, raw in [*zip(names, text, strict=True), ("extra.parquet", table(*named))]:
            stored = gzip.compress(raw, 1) if packed else raw
            (Path(folder) / (name + ".gz" * packed)).write_bytes(stored)
        for split in ("train", "valid", "test", "extra"):
            read = read_pairs(Path(folder), split)
            assert read.pairs == pairs
            assert read.duplicates == len(pairs) - len(set(pairs))


BAD = [b"", b" ", b"\xff", b"a\0", b"a\rb", b"a\r\r", "\u2028".encode()]


@settings(deadline=None)
@given(
    rows=st.lists(
        st.tuples(clean.map(str.encode) | st.sampled_from(BAD), clean.map(str.encode)),
        min_size=1,
    ),
    swap=st.booleans(),
)
def test_bad_rows_go_and_the_good_keep_their_order_and_partners(
    rows: list[tuple[bytes, bytes]], swap: bool
) -> None:
    good = [(s.decode(), t.decode()) for s, t in rows if s not in BAD]
    bad = [number for number, (s, _) in enumerate(rows, start=1) if s in BAD]
    names = ("train.de", "train.en") if swap else ("train.en", "train.de")
    with tempfile.TemporaryDirectory() as folder:
        for name, side in zip(names, zip(*rows, strict=True), strict=True):
            (Path(folder) / name).write_bytes(b"".join(line + b"\n" for line in side))
        source, target = (name[-2:] for name in names)
        if not good:
            with pytest.raises(DataError, match="not one row is good"):
                read_pairs(Path(folder), "train", source=source, target=target, skip_bad=len(rows))
            return
        read = read_pairs(Path(folder), "train", source=source, target=target, skip_bad=len(bad))
        assert read.pairs == good
        assert [problem.line for problem in read.problems] == bad
        if bad:
            with pytest.raises(DataError, match=f"pass --skip-bad {len(bad)} "):
                read_pairs(
                    Path(folder), "train", source=source, target=target, skip_bad=len(bad) - 1
                )
