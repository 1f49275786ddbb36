"""Any bytes are read or refused with a DataError; XML neither grows nor reaches out."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saccade.data.readers import box_class_names, box_splits, read_boxes
from saccade.data.readers.images.boxes.xml import parse_xml
from saccade.data.readers.report import BadRow
from saccade.errors import DataError
from tests.data.boxes_made import TRAIN, blank, coco, corners, hugging_face, xml, yolo_line
from tests.data.images_made import in_folder

LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))
DOCTYPES = {
    "billion laughs": f'<!DOCTYPE a [<!ENTITY l0 "ha">{LAUGHS}]><a>&l11;</a>'.encode(),
    "in UTF-16": f'<!DOCTYPE a [<!ENTITY l0 "ha">{LAUGHS}]><a>&l11;</a>'.encode("utf-16"),
    "quadratic": b'<!DOCTYPE a [<!ENTITY x "' + b"x" * 10_000 + b'">]><a>' + b"&x;" * 9_999,
    "external": b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>',
    "parameter": b'<!DOCTYPE a [<!ENTITY % x SYSTEM "http://localhost/x"> %x;]><a/>',
    "of its own": b'<!DOCTYPE annotation SYSTEM "http://localhost/x.dtd"><annotation/>',
    "plain": b"<!DOCTYPE annotation><annotation/>",
}


@pytest.mark.parametrize("what", DOCTYPES)
def test_a_document_type_is_refused_before_anything_in_it_is_read(what: str) -> None:
    with pytest.raises(BadRow, match="DOCTYPE: it may hide entities, so it is not read; take"):
        parse_xml(DOCTYPES[what])


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (b"", "not XML: no element found at line 1, column 1; save it again"),
        (b"<a>\n<b>", "not XML: no element found at line 2, column 4; save it again"),
        (b"<a>\n</b>", "not XML: mismatched tag at line 2, column 3"),
        (b"<a>&x;</a>", "not XML: undefined entity at line 1"),
        (b'<?xml version="1.0" encoding="klingon"?><a/>', "not XML: unknown encoding"),
        (b"<a>\xff</a>", "not XML: not well-formed (invalid token) at line 1"),
    ],
)
def test_what_is_no_xml_is_told(raw: bytes, told: str) -> None:
    with pytest.raises(BadRow) as raised:
        parse_xml(raw)
    assert str(raised.value).startswith(told)


def test_a_bomb_among_good_files_is_one_bad_row(tmp_path: Path) -> None:
    files = {f"{place}.png": blank() for place in range(8)}
    bombs = {f"{place}.xml": raw for place, raw in enumerate(DOCTYPES.values())}
    read = read_boxes(
        in_folder(tmp_path, {**files, **bombs, "7.xml": xml("7.png", [])}), "train", skip_bad=7
    )
    assert read.skipped == {"DOCTYPE": 7}


def test_deep_nesting_is_no_trouble(tmp_path: Path) -> None:
    deep = b"<a>" * 200_000 + b"</a>" * 200_000
    files = {"a.xml": deep, "a.png": blank(), "b.xml": xml("b.png", []), "b.png": blank()}
    assert len(read_boxes(in_folder(tmp_path / "xml", files), "train").rows) == 2
    nested = b'{"images": ' + b"[" * 100_000
    with pytest.raises(DataError, match="not JSON: nested too deeply"):
        read_boxes(in_folder(tmp_path / "json", {"train.json": nested}), "train")


def test_an_annotation_of_one_image_is_bounded(tmp_path: Path) -> None:
    files = {"a.xml": b" " * 4_000_001, "a.png": blank(), "b.xml": xml("b.png", [])}
    read = read_boxes(in_folder(tmp_path, {**files, "b.png": blank()}), "train", skip_bad=2)
    assert "unreadable: " in read.problems[0].reason
    assert "4,000,001 bytes, over 4,000,000; make it smaller" in read.problems[0].reason


WHOLE = {
    "train.json": coco(TRAIN),
    "a.xml": xml("a.png", TRAIN["a.png"]),
    "train.jsonl": corners(TRAIN) + hugging_face(TRAIN),
    "a.txt": "".join(map(yolo_line, TRAIN["a.png"])).encode(),
    "data.yaml": b'names: ["dog", cat]\ntrain: .\nval: [a, "b\n',
}
PIECES = [
    *(b"[", b"]", b"{", b"}", b'"', b"'", b":", b",", b"<", b">", b"&", b"\n", b"\0", b"\xff"),
    *(b"<object>", b"<bndbox>", b"1e999", b"NaN", b"-1", b"null", b"9" * 4_400, b"- ", b"#"),
    *(b"names:", b"train: ..", b'"bbox": ', b"<!DOCTYPE a>", b"../", b"\\"),
]


@settings(deadline=None, max_examples=150)
@given(
    name=st.sampled_from(sorted(WHOLE)),
    cut=st.integers(0, 2_000),
    pieces=st.lists(st.tuples(st.integers(0, 2_000), st.sampled_from(PIECES)), max_size=4),
)
def test_any_damage_is_read_or_refused(
    name: str, cut: int, pieces: list[tuple[int, bytes]]
) -> None:
    raw = WHOLE[name][: cut or None]
    for place, piece in pieces:
        raw = raw[:place] + piece + raw[place:]
    files = {f"{one}.png": blank(9, 9) for one in "abc"}
    with tempfile.TemporaryDirectory() as root:
        extra = {"a.txt": WHOLE["a.txt"]} if name == "data.yaml" else {}
        data = in_folder(Path(root), {**files, **extra, name: raw})
        try:
            box_splits(data)
            box_class_names(read_boxes(data, "train", skip_bad=99))
        except DataError as error:
            str(error).encode()
