"""Any bytes are read or refused with a DataError."""

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saccade.data.readers import asked_splits, read_asked
from saccade.errors import DataError
from tests.data.asked_made import FORMS, PICTURES, WRITERS
from tests.data.images_made import in_folder, rows

KEYS = ("image", "question", "answer", "answers", "phrase", "box", "boxes", "sentences", "right")
odd = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["a.png", "", " ", "1", "\ud800", "\0", "[1]", 10**300, -(10**300)])
    | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner),
    max_leaves=8,
)
PIECES = [
    *(b"[", b"]", b"{", b"}", b'"', b":", b",", b"\n", b"\t", b"\0", b"\xff", b"null", b"-1"),
    *(b"1e999", b"NaN", b"9" * 4_400, b"[" * 3_000, b'"box": ', b"../", b"\\", b"\\ud800"),
]


def read_or_refuse(data: Path, name: str) -> None:
    form = FORMS[name][0]
    try:
        asked_splits(data, form)
        read = read_asked(data, "train", form, skip_bad=99)
        assert len(read.images) == len(read.regions)
        assert {item.image for item in read.items} == set(range(len(read.images)))
        read.summary().encode()
    except DataError as error:
        str(error).encode()


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMS)
@settings(deadline=None, max_examples=80)
@given(changes=st.lists(st.dictionaries(st.sampled_from(KEYS), odd), max_size=4), bare=odd)
def test_odd_values_are_read_or_refused(
    name: str, changes: list[dict[str, Any]], bare: object
) -> None:
    good = FORMS[name][1][0]
    with tempfile.TemporaryDirectory() as root:
        files = {**PICTURES, "train.jsonl": rows(good, *({**good, **one} for one in changes), bare)}
        read_or_refuse(in_folder(Path(root), files), name)


@pytest.mark.parametrize("name", FORMS)
@settings(deadline=None, max_examples=60)
@given(
    form=st.sampled_from(["jsonl", "csv", "tsv", "json"]),
    cut=st.integers(0, 400),
    pieces=st.lists(st.tuples(st.integers(0, 400), st.sampled_from(PIECES)), max_size=4),
)
def test_any_damage_is_read_or_refused(
    name: str, form: str, cut: int, pieces: list[tuple[int, bytes]]
) -> None:
    raw = WRITERS[form](FORMS[name][1])[: cut or None]
    for place, piece in pieces:
        raw = raw[:place] + piece + raw[place:]
    with tempfile.TemporaryDirectory() as root:
        read_or_refuse(in_folder(Path(root), {**PICTURES, f"train.{form}": raw}), name)
